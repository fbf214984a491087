"""The paper's figure of bounds (Section 2): what theory says of two arms, against the gap.

The paper does not state the cost or sigma of this figure; ours are those of its two-arm experiments. The upper curve
of DBCARE is the piecewise one behind the corollaries, which shows the transition the text describes.
"""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from dbcare.risk import Loss
from dbcare.theory import lower, upper

COST = 1e-4
SIGMA = 1.0
GAPS = np.geomspace(3e-3, 3.0, 400)
BOUND = 3.0  # the largest gap shown; it enters a logarithm only

# Okabe and Ito's colours, told apart with any colour vision.
CURVES = {
    "guess": ("Guess", "#CC79A7", "--"),
    "dbcare": ("DBCARE, upper bound", "#0072B2", "-"),
    "oracle": ("known-gap oracle, upper bound", "#D55E00", "-."),
    "lower": ("any policy, lower bound", "#000000", "-"),
}


def curves(loss: Loss) -> dict[str, npt.NDArray[np.float64]]:
    """Each curve's risk over GAPS."""
    return {
        "guess": np.asarray(upper.two_arm_guess(loss, GAPS)),
        "dbcare": np.asarray(upper.two_arm_curve(loss, GAPS, COST, SIGMA, bound=BOUND)),
        "oracle": np.asarray(upper.oracle(loss, GAPS, COST, SIGMA)),
        "lower": np.asarray(lower.two_arm(loss, GAPS, COST, SIGMA)),
    }


def draw_bounds(folder: Path) -> list[Path]:
    """Write the figure as SVG and PNG, and its numbers as CSV; returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "dbcare", "font.size": 10}):
        figure = Figure(figsize=(10.0, 4.6), layout="constrained")
        rows = [["loss", "gap", *CURVES]]
        for place, loss in enumerate(Loss, start=1):
            axes = figure.add_subplot(1, 2, place)
            found = curves(loss)
            for name, (label, colour, line) in CURVES.items():
                axes.loglog(GAPS, found[name], color=colour, linestyle=line, label=label, linewidth=1.8)
            axes.set_title(str(loss).replace("_", " "))
            axes.set_xlabel("gap \N{GREEK CAPITAL LETTER DELTA}")
            axes.set_ylabel("risk")
            axes.grid(True, which="major", alpha=0.25)
            rows += [[str(loss), *map(repr, values)] for values in zip(GAPS.tolist(), *_lists(found), strict=True)]
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
        figure.suptitle(f"Two arms, cost {COST:g} a pull, sigma {SIGMA:g}")
        written = [folder / f"bounds.{kind}" for kind in ("svg", "png", "csv")]
        figure.savefig(written[0], metadata={"Date": None})
        figure.savefig(written[1], dpi=150)
    with written[2].open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return written


def _lists(found: dict[str, npt.NDArray[np.float64]]) -> list[list[float]]:
    return [found[name].tolist() for name in CURVES]
