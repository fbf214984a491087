"""Heat tables: policies by settings, each number a mean along the axis, colored by its ratio to a baseline's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dbcare.lab.curves import Curve, Floats, Panel, format_loss
from dbcare.lab.experiment import Experiment
from dbcare.lab.tables import Cell, Table
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
