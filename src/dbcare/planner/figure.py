"""A plan as a figure: total loss against the gap, both on logarithmic axes, a line for each policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from dbcare.lab.figures import AXIS, BLACK, BLUE, RED, VIOLET
from dbcare.planner.presentation import LABELS, title

if TYPE_CHECKING:
    from dbcare.planner.plan import Plan


class Look(NamedTuple):
    """How a line is drawn; dashes and markers tell the policies apart without colour."""

    colour: str
    dashes: str
    marker: str


LOOKS = {
    "breakeven": Look(VIOLET, "-", "o"),
    "dbcare": Look(BLUE, "--", "s"),
    "fixed-size-test": Look(RED, "-.", "^"),
    "decide-now": Look(BLACK, ":", "x"),
}


def draw(plan: Plan, path: Path) -> Path:
    """Write the figure, with bands of +- 2 standard errors, in the format that the file's name ends in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "dbcare", "font.size": 10}):
        figure = Figure(figsize=(7.2, 4.8), layout="constrained")
        axes = figure.add_subplot()
        for name in plan.policies:
            look = LOOKS[name]
            outlooks = plan.of(name)
            loss = np.array([each.total_loss for each in outlooks])
            margin = 2.0 * np.array([each.standard_error for each in outlooks])
            axes.loglog(
                plan.gaps, loss, color=look.colour, linestyle=look.dashes, marker=look.marker, markersize=5,
                linewidth=1.8, label=LABELS[name], zorder=3 if name == "breakeven" else 2,
            )  # fmt: skip
            # The spend is known far better than the chance of a rare error, and no total is below it.
            low = np.maximum(loss - margin, np.minimum(loss, [each.spend for each in outlooks]))
            axes.fill_between(plan.gaps, low, loss + margin, color=look.colour, alpha=0.15, linewidth=0.0)
        axes.set_xlabel(AXIS["gap"] + " of the best arm to the others")
        in_money = plan.setting.risk.value is not None
        axes.set_ylabel("expected total loss, in money" if in_money else "expected total loss, in units of the loss")
        if _apart(plan.gaps):
            axes.set_xticks(plan.gaps, [f"{gap:g}" for gap in plan.gaps])
            axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,g}"))
        axes.grid(True, which="major", alpha=0.25)
        axes.set_title(title(plan), fontsize=10, parse_math=False)
        axes.legend(frameon=False, handlelength=3.5)
        figure.savefig(path, dpi=150, metadata=None if path.suffix.lower() == ".png" else _undated(path))
    return path


def _apart(gaps: Sequence[float]) -> bool:
    """Whether each gap can have its number below the axis without touching the next."""
    steps = np.diff(np.log(gaps))
    return bool(np.all(steps >= steps.sum() / 14.0))


def _undated(path: Path) -> dict[str, None]:
    """So that the same plan gives the same file."""
    return {"Date" if path.suffix.lower() == ".svg" else "CreationDate": None}
