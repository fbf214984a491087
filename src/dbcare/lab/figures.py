"""Figures: curves on logarithmic axes, with bands of +- 2 standard errors, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dbcare.lab.curves import Floats, Panel

# Okabe and Ito's colours, told apart with any colour vision, and dashes for those who see none.
BLACK = "#000000"
COLOURS = ("#0072B2", "#CC79A7", "#E69F00", "#D55E00", "#56B4E9", "#009E73", "#8C6D00")
DASHES = ("-", ":", "--", "--", "-.", "-.", (0, (6, 1, 1, 1, 1, 1)))

WIDTH, HEIGHT = 4.4, 3.6  # of one plot with its margins, in inches

AXIS = {"gap": "gap \N{GREEK CAPITAL LETTER DELTA}", "cost": "cost of a pull"}


@dataclass(frozen=True)
class Line:
    """One curve, with a band around it where it is an estimate."""

    label: str
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    theory: bool = False  # drawn in black


@dataclass(frozen=True)
class Plot:
    """One pair of axes, both logarithmic."""

    title: str
    x: Floats
    x_label: str
    y_label: str
    lines: tuple[Line, ...]


def risk_plot(panel: Panel, axis: str) -> Plot:
    """Every policy's risk, and the lower bound."""
    lines = [Line(label, curve.risk, curve.low, curve.high) for label, curve in panel.curves.items()]
    lines.append(Line("lower bound", panel.lower, theory=True))
    return Plot(panel.heading, panel.x, AXIS[axis], "risk", tuple(lines))


def ratio_plot(panel: Panel, axis: str) -> Plot:
    """The same as multiples of the lower bound."""
    least = np.where(panel.lower > 0.0, panel.lower, np.nan)
    lines = [
        Line(label, curve.risk / least, curve.low / least, curve.high / least) for label, curve in panel.curves.items()
    ]
    lines.append(Line("lower bound", np.where(panel.lower > 0.0, 1.0, np.nan), theory=True))
    return Plot(panel.heading, panel.x, AXIS[axis], "risk / lower bound", tuple(lines))


def draw(stem: Path, title: str, plots: Sequence[Plot], columns: int) -> list[Path]:
    """Write `stem`.svg and .png, so many plots in a row, with one legend below all; returns what was written."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    written = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    rows = -(-len(plots) // columns)
    labels = [line.label for line in plots[0].lines]
    in_a_row = min(len(labels), 2 if columns == 1 else 4)
    below = 0.65 + 0.24 * -(-len(labels) // in_a_row)  # the last x label, then the legend
    width, height = columns * WIDTH, 0.4 + rows * HEIGHT + below - 0.5
    with mpl.rc_context({"svg.hashsalt": "dbcare", "font.size": 10}):
        figure = Figure(figsize=(width, height))
        # Margins in inches, as set by hand: finding them automatically would take longer than the drawing.
        figure.subplots_adjust(
            left=0.7 / width, right=1.0 - 0.15 / width, bottom=below / height, top=1.0 - 0.75 / height,
            wspace=0.85 / (WIDTH - 0.85), hspace=0.85 / (HEIGHT - 0.85),
        )  # fmt: skip
        for place, plot in enumerate(plots, start=1):
            _fill(figure.add_subplot(rows, columns, place), plot)
        handles, _ = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=in_a_row, frameon=False)
        figure.suptitle(title, y=1.0 - 0.12 / height, va="top")
        figure.savefig(written[0], metadata={"Date": None})
        figure.savefig(written[1], dpi=110)
    return written


def _fill(axes: Axes, plot: Plot) -> None:
    single = len(plot.x) == 1
    estimates = 0
    for line in plot.lines:
        style = estimates % len(COLOURS)
        colour, dashes = (BLACK, "-") if line.theory else (COLOURS[style], DASHES[style])
        axes.loglog(
            plot.x, line.y, color=colour, linestyle=dashes, label=line.label, linewidth=1.0 if line.theory else 1.7,
            marker="o" if single else "",
        )  # fmt: skip
        if line.low is not None and line.high is not None and np.any(line.high > line.low):
            axes.fill_between(plot.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0.0)
        estimates += not line.theory
    axes.set_title(plot.title, fontsize=10)
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.grid(True, which="major", alpha=0.25)
