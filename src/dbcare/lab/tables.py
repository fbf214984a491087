"""The numbers behind a figure, as rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dbcare.lab.curves import Panel
from dbcare.lab.figures import Plot

Cell = str | float


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers under named columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def write(self, path: Path) -> Path:
        """As comma-separated values, numbers in full precision."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)
        return path


def results_table(panels: Sequence[Panel], axis: str) -> Table:
    """Every point of every curve."""
    rows = [
        (panel.title, str(panel.loss), label, *numbers)
        for panel in panels
        for label, curve in panel.curves.items()
        for numbers in zip(
            *(
                column.tolist()
                for column in (panel.x, curve.risk, curve.standard_error, curve.error, curve.pulls, panel.lower)
            ),
            strict=True,
        )
    ]
    names = ("setting", "loss", "policy", axis, "risk", "standard error", "error", "pulls", "lower bound")
    return Table(names, tuple(rows))


def plots_table(plots: Sequence[Plot], axis: str) -> Table:
    """Every line of every plot."""
    rows = [
        (plot.title, line.label, x, y)
        for plot in plots
        for line in plot.lines
        for x, y in zip(plot.x.tolist(), line.y.tolist(), strict=True)
    ]
    return Table(("plot", "line", axis, "value"), tuple(rows))
