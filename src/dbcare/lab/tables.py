"""The numbers of a figure, as rows."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dbcare.base.files import defuse_formula
from dbcare.lab.curves import Panel
from dbcare.lab.figures import Plot

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
