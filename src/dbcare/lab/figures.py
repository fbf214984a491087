"""Figures and tables of an experiment."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dbcare.base.files import defuse_formula
from dbcare.base.look import BLACK, DASHES, PALETTE, VIOLET, Look, PolicyKind
from dbcare.lab.curves import Floats, Panel
from dbcare.policies.registry import POLICIES

THEORY = "theory"

DEEPEST = 0.5  # of the lowest point of all curves: how far down a band is drawn, as it may end at 0 or below

WIDTH, HEIGHT = 4.4, 3.6  # of one plot including margins, in inches

SPARE_MARKERS = ("", "s", "^", "D")  # of policies without one of their own: by how many lines had the color before

AXIS = {"gap": "gap \N{GREEK CAPITAL LETTER DELTA}", "cost": "cost of a pull"}


@dataclass(frozen=True)
class PlotLine:
    """One curve, with a band around it if it is an estimate; `kind` is a policy's name, or THEORY."""

    label: str
    kind: str
    y: Floats
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True)
class Plot:
    """One pair of axes, both logarithmic."""

    title: str
    x: Floats
    x_label: str
    y_label: str
    lines: tuple[PlotLine, ...]


def make_risk_plot(panel: Panel, axis: str, *, with_bound: bool = True) -> Plot:
    """Plot every policy's risk, and the lower bound if wanted."""
    lines = [PlotLine(label, curve.policy, curve.risk, curve.low, curve.high) for label, curve in panel.curves.items()]
    if with_bound:
        lines.append(PlotLine("lower bound", THEORY, panel.lower))
    return Plot(panel.heading, panel.x, AXIS[axis], "risk", tuple(lines))


def make_ratio_plot(panel: Panel, axis: str, baseline: str | None = None) -> Plot:
    """Plot every policy's risk as a multiple of a baseline's, or of the lower bound."""
    if baseline is not None:
        return _divide_plot(panel, axis, panel.curves[baseline].risk, f"risk / {baseline}'s", ())
    bound = np.where(panel.lower > 0.0, panel.lower, np.nan)
    line = PlotLine("lower bound", THEORY, np.where(panel.lower > 0.0, 1.0, np.nan))
    return _divide_plot(panel, axis, bound, "risk / lower bound", (line,))


def _divide_plot(panel: Panel, axis: str, divisor: Floats, y_label: str, more: tuple[PlotLine, ...]) -> Plot:
    lines = [
        PlotLine(label, curve.policy, curve.risk / divisor, curve.low / divisor, curve.high / divisor)
        for label, curve in panel.curves.items()
    ]
    return Plot(panel.heading, panel.x, AXIS[axis], y_label, (*lines, *more))


def draw(stem: Path, title: str, plots: Sequence[Plot], columns: int) -> list[Path]:
    """Write `stem`.svg and .png, with `columns` plots per row and one legend below; return both paths."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    written = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    rows = -(-len(plots) // columns)
    width = columns * WIDTH
    kinds = {line.label: line.kind for plot in plots for line in plot.lines}  # not all policies are in all plots
    styles = dict(zip(kinds, _choose_styles(list(kinds.values())), strict=True))
    labels = list(kinds)
    per_row = max(1, min(len(labels), int(width / (0.65 + 0.075 * max(map(len, labels))))))
    bottom = 0.65 + 0.24 * -(-len(labels) // per_row)  # room for the x labels and the legend
    height = rows * HEIGHT + bottom - 0.1
    with mpl.rc_context({"svg.hashsalt": "dbcare", "font.size": 10}):
        figure = Figure(figsize=(width, height))
        # Margins are set by hand, in inches: automatic layout would take longer than the drawing.
        figure.subplots_adjust(
            left=0.7 / width, right=1.0 - 0.15 / width, bottom=bottom / height, top=1.0 - 0.75 / height,
            wspace=0.85 / (WIDTH - 0.85), hspace=0.85 / (HEIGHT - 0.85),
        )  # fmt: skip
        lines: dict[str, Line2D] = {}
        for place, plot in enumerate(plots, start=1):
            lines |= _draw_plot(figure.add_subplot(rows, columns, place), plot, styles)
        legend = figure.legend(
            [lines[label] for label in labels], labels, loc="lower center", ncols=per_row, frameon=False
        )
        for text in legend.get_texts():
            text.set_parse_math(False)  # a dollar sign means money
        figure.suptitle(title, y=1.0 - 0.12 / height, va="top", parse_math=False)
        figure.savefig(written[0], metadata={"Date": None})
        figure.savefig(written[1], dpi=110)
    return written


def _draw_plot(axes: Axes, plot: Plot, styles: Mapping[str, LineStyle]) -> dict[str, Line2D]:
    """Draw a plot and return its lines by label, for the legend."""
    lines = {}
    bottom = _find_bottom(plot)
    for line in plot.lines:
        style = styles[line.label]
        (lines[line.label],) = axes.loglog(
            plot.x, line.y, color=style.color, linestyle=style.dashes, linewidth=style.width,
            marker=style.marker or ("o" if len(plot.x) == 1 else ""), markevery=max(1, len(plot.x) // 8),
            markersize=4.5, markerfacecolor="white" if style.hollow else style.color,
        )  # fmt: skip
        if line.low is not None and line.high is not None and np.any(line.high > line.low):
            axes.fill_between(
                plot.x, np.maximum(line.low, bottom), line.high, color=style.color, alpha=0.2, linewidth=0.0
            )
            if np.any(line.low < bottom):
                axes.set_ylim(bottom=bottom)
    # Without a fixed y, placing the title would take longer than drawing the curves.
    axes.set_title(plot.title, fontsize=10, y=1.0, parse_math=False)
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.minorticks_off()
    axes.grid(True, which="major", alpha=0.25)
    return lines


def _find_bottom(plot: Plot) -> float:
    """Return where the y axis ends if bands reach that far down; 0 if no curve has a positive number."""
    drawn = np.concatenate([line.y for line in plot.lines])
    return DEEPEST * float(drawn[drawn > 0.0].min()) if np.any(drawn > 0.0) else 0.0


class LineStyle(NamedTuple):
    """How a line is drawn."""

    color: str
    dashes: str
    width: float
    marker: str = ""
    hollow: bool = False


def _choose_styles(kinds: Sequence[str]) -> list[LineStyle]:
    """Give each policy its preferred color, or the least used one, and thinner lines to repeated dashes."""
    styles: list[LineStyle] = []
    for kind in kinds:
        if kind == THEORY:
            styles.append(LineStyle(BLACK, "-", 1.0))
            continue
        look = Look() if ":" in kind else POLICIES.entry(kind).look
        dashes = DASHES.get(POLICIES.kind(kind), "-")
        if POLICIES.kind(kind) is PolicyKind.OURS:
            styles.append(LineStyle(VIOLET, dashes, 1.4, look.marker, look.hollow))
            continue
        used = [style.color for style in styles]
        color = min((*look.colors, *PALETTE), key=used.count)
        marker = look.marker or SPARE_MARKERS[min(used.count(color), len(SPARE_MARKERS) - 1)]
        # If two curves coincide, the thinner one leaves the other visible.
        alike = sum(style.dashes == dashes and style.color != BLACK for style in styles)
        styles.append(LineStyle(color, dashes, max(0.8, 2.2 - 0.8 * alike), marker, look.hollow))
    return styles


Cell = str | float | int


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers with named columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def write(self, path: Path) -> Path:
        """Write comma-separated values, with numbers in full precision and formulas defused."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            for row in (self.columns, *self.rows):
                writer.writerow([defuse_formula(cell) if isinstance(cell, str) else cell for cell in row])
        return path


def make_results_table(panels: Sequence[Panel], axis: str) -> Table:
    """Return a table with every point of every curve."""
    rows = []
    for panel in panels:
        for label, curve in panel.curves.items():
            plain_runs = [_describe_plain_runs(count) for count in curve.plain_runs.tolist()]
            before, after = (panel.x, curve.risk, curve.standard_error), (curve.error, curve.pulls, panel.lower)
            numbers = zip(*(c.tolist() for c in before), plain_runs, *(c.tolist() for c in after), strict=True)
            rows += [(panel.title, str(panel.loss), label, *row) for row in numbers]
    measures = ("risk", "standard error", "plain runs", "error", "pulls", "lower bound")
    return Table(("setting", "loss", "policy", axis, *measures), tuple(rows))


def _describe_plain_runs(count: float) -> Cell:
    """Return how many plain runs an estimate is worth, `exact`, or nothing where its error is unknown."""
    if math.isfinite(count):
        return round(count)
    return "" if math.isnan(count) else "exact"


def make_plots_table(plots: Sequence[Plot], axis: str) -> Table:
    """Return a table with every point of every line."""
    rows = [
        (plot.title, line.label, x, y)
        for plot in plots
        for line in plot.lines
        for x, y in zip(plot.x.tolist(), line.y.tolist(), strict=True)
    ]
    return Table(("plot", "line", axis, "value"), tuple(rows))
