"""Figures of risk against gap, with their numbers beside them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any colour vision.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One curve: what it shows, and how it looks."""

    label: str
    colour: str
    style: str
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Panel:
    """One pair of axes, both logarithmic."""

    title: str
    lines: tuple[Line, ...]


def draw(folder: Path, name: str, title: str, panels: list[Panel]) -> list[Path]:
    """Write `name`.svg, .png and .csv into `folder`; returns what was written. Panels share one legend."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.{kind}" for kind in ("svg", "png", "csv")]
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context({"svg.hashsalt": "dbcare", "font.size": 10}):
        figure = Figure(figsize=(5.0 * columns, 4.0 * rows + 0.6), layout="constrained")
        for place, panel in enumerate(panels, start=1):
            axes = figure.add_subplot(rows, columns, place)
            for line in panel.lines:
                axes.loglog(line.x, line.y, color=line.colour, linestyle=line.style, label=line.label, linewidth=1.8)
            axes.set_title(panel.title)
            axes.set_xlabel("gap \N{GREEK CAPITAL LETTER DELTA}")
            axes.set_ylabel("risk")
            axes.grid(True, which="major", alpha=0.25)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False)
        figure.suptitle(title)
        figure.savefig(written[0], metadata={"Date": None})
        figure.savefig(written[1], dpi=150)
    with written[2].open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["panel", "line", "gap", "risk"])
        for panel in panels:
            for line in panel.lines:
                table.writerows(
                    [panel.title, line.label, gap, risk]
                    for gap, risk in zip(line.x.tolist(), line.y.tolist(), strict=True)
                )
    return written
