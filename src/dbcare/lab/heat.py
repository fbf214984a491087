"""Tables of heat colors: policies by instances, as numbers and as pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from pathlib import Path
from textwrap import fill

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dbcare.base.look import BLUE, RED
from dbcare.lab.curves import Curve, Floats, Panel, format_loss
from dbcare.lab.experiments.experiment import Experiment
from dbcare.lab.figures import Cell, Table
from dbcare.problem.risk import Loss

HOTTEST = 10.0  # ratios of at least this, or at most its inverse, have the full color
ALL, WORST = "all", "worst"


@dataclass(frozen=True)
class HeatCell:
    """A number as it is shown, and its ratio to the baseline's, which decides the color: above 1 is worse."""

    text: str
    ratio: float
    best: bool  # in its column

    @property
    def heat(self) -> float:
        """The strength of the color, from -1 (better by HOTTEST or more) through 0 (as the baseline) to 1."""
        if self.ratio <= 0.0:
            return -1.0
        return float(np.clip(math.log(self.ratio) / math.log(HOTTEST), -1.0, 1.0))


@dataclass(frozen=True)
class HeatRow:
    """A policy in a heat table; a cell is None where the policy does not take part."""

    group: str
    label: str
    cells: tuple[HeatCell | None, ...]


@dataclass(frozen=True)
class HeatTable:
    """One measure of all policies under one loss, next to that of a baseline."""

    measure: str
    loss: Loss
    columns: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    baseline: str | None = None  # by whose risks the table divides, if it does

    @property
    def title(self) -> str:
        """The measure and the loss."""
        return f"{self.measure}, {format_loss(self.loss)}"


@dataclass(frozen=True)
class Summary:
    """A policy and a baseline over all points of one or more panels."""

    ratio: float  # of the risks: geometric mean
    ratio_error: float  # its standard error, as if no two points shared runs
    worst: float  # the largest ratio at a point
    risk: float  # geometric mean
    error: float  # mean
    pulls: float  # geometric mean


def summarize(panels: Sequence[Panel], label: str, baseline: str) -> Summary | None:
    """Compare a policy with a baseline in all panels that it takes part in; None if in none."""
    pairs = [(panel.curves[label], panel.curves[baseline]) for panel in panels if label in panel.curves]
    if not pairs:
        return None

    def join(read: Callable[[Curve], Floats], which: int) -> Floats:
        return np.concatenate([read(pair[which]) for pair in pairs])

    risk = join(lambda curve: curve.risk, 0)
    ratios = risk / join(lambda curve: curve.risk, 1)
    relative = [join(lambda curve: curve.standard_error / curve.risk, which) for which in (0, 1)]
    ratio = geometric_mean(ratios)
    return Summary(
        ratio=ratio,
        ratio_error=0.0 if label == baseline else ratio * math.sqrt(float(np.sum(np.square(relative)))) / len(ratios),
        worst=float(ratios.max()),
        risk=geometric_mean(risk),
        error=float(join(lambda curve: curve.error, 0).mean()),
        pulls=geometric_mean(join(lambda curve: curve.pulls, 0)),
    )


def geometric_mean(values: Floats) -> float:
    """Return the geometric mean of positive numbers."""
    return float(np.exp(np.mean(np.log(values))))


def make_heat_tables(experiment: Experiment, panels: Sequence[Panel]) -> list[HeatTable]:
    """Return the tables of an experiment: risks over those of each baseline, then errors and pulls, by loss."""
    tables = []
    for baseline in experiment.baselines:
        for loss in experiment.losses:
            own = [panel for panel in panels if panel.loss is loss]
            groups = [[panel] for panel in own] + [own]
            numbers = {}
            for label in experiment.contenders:
                found = [summarize(group, label, baseline) for group in groups]
                ratios = [math.nan if summary is None else summary.ratio for summary in found]
                numbers[label] = [*ratios, math.nan if found[-1] is None else found[-1].worst]
            columns = (*(panel.title for panel in own), ALL, WORST)
            measure = f"Risk over {baseline}'s"
            table = _fill_table(experiment, measure, loss, columns, numbers, None, _show_ratio)
            tables.append(replace(table, baseline=baseline))
    measures: tuple[tuple[str, Callable[[Summary], float], Callable[[float], str]], ...] = (
        ("Mean error", lambda summary: summary.error, lambda value: f"{value:.1%}"),
        ("Pulls, geometric mean", lambda summary: summary.pulls, lambda value: f"{value:,.0f}"),
    )
    for baseline in experiment.baselines[:1]:
        for name, read, show in measures:
            for loss in experiment.losses:
                own = [panel for panel in panels if panel.loss is loss]
                numbers = {}
                for label in experiment.contenders:
                    found = [summarize([panel], label, baseline) for panel in own]
                    numbers[label] = [math.nan if summary is None else read(summary) for summary in found]
                columns = tuple(panel.title for panel in own)
                tables.append(_fill_table(experiment, name, loss, columns, numbers, baseline, show))
    return tables


def _fill_table(
    experiment: Experiment,
    measure: str,
    loss: Loss,
    columns: tuple[str, ...],
    numbers: dict[str, list[float]],
    baseline: str | None,
    show: Callable[[float], str],
) -> HeatTable:
    """Return a table of the policies that have a number; without a baseline, the numbers are ratios already."""
    shown = {label: values for label, values in numbers.items() if not np.all(np.isnan(values))}
    best = np.nanmin(np.array(list(shown.values())), axis=0)
    rows = []
    for label, values in shown.items():
        bases = [1.0] * len(values) if baseline is None else numbers[baseline]
        cells = tuple(
            None if math.isnan(value) else HeatCell(show(value), _divide(value, base), value == least)
            for value, base, least in zip(values, bases, best, strict=True)
        )
        rows.append(HeatRow(experiment.contenders[label].group, label, cells))
    return HeatTable(measure, loss, columns, tuple(rows))


def _divide(value: float, base: float) -> float:
    if base == 0.0:
        return 1.0 if value == 0.0 else math.inf
    return value / base


def _show_ratio(value: float) -> str:
    return f"{value:,.2f}" if value < 9.995 else f"{value:,.1f}" if value < 99.95 else f"{value:,.0f}"


def make_summary_table(experiment: Experiment, panels: Sequence[Panel]) -> Table:
    """Return the numbers of all heat tables, and the standard errors of the ratios, as rows."""
    ratios = [
        f"{what} {label}'s" for label in experiment.baselines for what in ("over", "standard error, over", "worst over")
    ]
    rows: list[tuple[Cell, ...]] = []
    for panel in panels:
        for label in panel.curves:
            found = [summary for base in experiment.baselines if (summary := summarize([panel], label, base))]
            numbers = [number for one in found for number in (one.ratio, one.ratio_error, one.worst)]
            place = (panel.title, str(panel.loss), experiment.contenders[label].group, label)
            rows.append((*place, found[0].risk, found[0].error, found[0].pulls, *numbers))
    return Table(("setting", "loss", "group", "policy", "risk", "error", "pulls", *ratios), tuple(rows))


STRONGEST = 0.75  # opacity of the full color, on which text of either mode is still readable
KEY = (
    f"Blue is better than the baseline, orange is worse; full color from a factor of {HOTTEST:g}. The best of each "
    "column is bold. Empty: the policy does not take part."
)
EXPLANATION = (
    "Each number is a geometric mean over the points of a setting (errors: a plain mean), “all” one over all points of "
    f"the policy, and “worst” the largest ratio at any point. {KEY}"
)
ROW, CELL, LABEL = 0.25, 0.62, 2.5  # inches: height of a row, width of a column and of the labels
LETTERS = 9  # that fit into the head of a column


def format_heat_table(table: HeatTable) -> str:
    """Return a heat table as HTML; colors are in the report's style sheet."""
    columns = [escape(column).replace(" = ", "&#160;=&#160;") for column in table.columns]  # "K = 8" stays together
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    parts = [f'<thead><tr><th scope="col">policy</th>{head}</tr></thead>']
    for group, rows in groupby(table.rows, key=lambda row: row.group):
        lines = []
        if group:
            lines.append(f'<tr class="group"><th colspan="{len(table.columns) + 1}">{escape(group)}</th></tr>')
        for row in rows:
            cells = "".join(map(_format_cell, row.cells))
            lines.append(f'<tr><th scope="row">{escape(row.label)}</th>{cells}</tr>')
        parts.append(f"<tbody>{''.join(lines)}</tbody>")
    return f'<div class="scroll"><table class="heat">{"".join(parts)}</table></div>'


def _format_cell(cell: HeatCell | None) -> str:
    if cell is None:
        return "<td></td>"
    side = "worse" if cell.heat > 0.0 else "better"
    text = f"<b>{cell.text}</b>" if cell.best else cell.text
    return f'<td class="{side}" style="--heat: {STRONGEST * abs(cell.heat):.3f}">{text}</td>'


def draw_heat_tables(stem: Path, title: str, tables: Sequence[HeatTable]) -> list[Path]:
    """Write tables below each other as `stem`.svg and .png; return both paths."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    written = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    width = LABEL + CELL * max(len(table.columns) for table in tables) + 0.1
    heights = [(_count_lines(table) + 3.4) * ROW for table in tables]
    height = sum(heights) + 0.9
    with mpl.rc_context({"svg.hashsalt": "dbcare", "font.size": 9}):
        figure = Figure(figsize=(width, height))
        figure.suptitle(title, x=0.1 / width, y=1.0 - 0.1 / height, ha="left", va="top", fontsize=11, parse_math=False)
        top = height - 0.4
        for table, own in zip(tables, heights, strict=True):
            axes = figure.add_axes((0.0, (top - own) / height, 1.0, own / height))
            axes.set_xlim(0.0, width)
            axes.set_ylim(own, 0.0)
            axes.axis("off")
            _draw_table(axes, table)
            top -= own
        figure.text(0.1 / width, 0.1 / height, KEY, fontsize=8, color="#5c6570", wrap=True)
        figure.savefig(written[0], metadata={"Date": None})
        figure.savefig(written[1], dpi=110)
    return written


def _count_lines(table: HeatTable) -> int:
    return len(table.rows) + len({row.group for row in table.rows if row.group})


def _draw_table(axes: Axes, table: HeatTable) -> None:
    """Draw a table, in inches from the top left corner."""
    y = 0.9 * ROW
    axes.text(0.1, y, table.title, weight="bold", va="center", parse_math=False)
    y += 2.1 * ROW
    for place, column in enumerate(table.columns):
        lines = fill(column.replace(" = ", "="), LETTERS)
        axes.text(LABEL + CELL * (place + 0.5), y, lines, ha="center", va="bottom", fontsize=7.5, parse_math=False)
    y += 0.15 * ROW
    for group, rows in groupby(table.rows, key=lambda row: row.group):
        if group:
            axes.text(0.1, y + 0.55 * ROW, group, va="center", fontsize=8, style="italic", color="#5c6570")
            y += ROW
        for row in rows:
            axes.text(0.2, y + 0.5 * ROW, row.label, va="center", parse_math=False)
            for place, cell in enumerate(row.cells):
                if cell is None:
                    continue
                x = LABEL + CELL * place
                color = (*to_rgb(RED if cell.heat > 0.0 else BLUE), STRONGEST * abs(cell.heat))
                axes.add_patch(Rectangle((x, y), CELL, ROW, facecolor=color, edgecolor="white", linewidth=1.0))
                weight = "bold" if cell.best else "normal"
                axes.text(x + 0.5 * CELL, y + 0.5 * ROW, cell.text, ha="center", va="center", weight=weight)
            y += ROW
