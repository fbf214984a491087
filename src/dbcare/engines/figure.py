"""An evaluation as a figure: what its risk consists of, and how many pulls a run takes."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from dbcare.base.figures import ACCENT, LOSS, MUTED, DisplayedFigure, drawing_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbcare.engines.evaluation import Evaluation

MAX_LINES = 3  # of the title


def draw_evaluation(evaluation: Evaluation) -> DisplayedFigure:
    """Draw both risks as expected loss plus cost of pulls, with 2 standard errors, and quantiles of the pulls."""
    with drawing_figure(8.4, 3.6) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _draw_risks(left, evaluation)
        _draw_pulls(right, evaluation)
        lines = textwrap.wrap(evaluation.policy, 100, max_lines=MAX_LINES)
        figure.suptitle("\n".join(lines), fontsize=10, parse_math=False)
    return figure


def _draw_risks(axes: Axes, evaluation: Evaluation) -> None:
    losses = sorted(evaluation.risks, key=lambda loss: loss is not evaluation.loss)  # the one asked for comes first
    spend = evaluation.spend.value
    loss = [max(evaluation.losses[each].value, 0.0) for each in losses]  # an estimate may be negative, a loss not
    error = [2.0 * evaluation.risks[each].standard_error for each in losses]
    places = range(len(losses))
    axes.barh(places, loss, color=LOSS, height=0.5, label="expected loss of the choice")
    axes.barh(
        places, spend, left=loss, color=ACCENT, height=0.5, label="expected cost of pulls",
        xerr=error if any(error) else None, capsize=3,
        ecolor="black",
    )  # fmt: skip
    for place, each in enumerate(losses):
        risk = max(evaluation.risks[each].value, 0.0)
        axes.annotate(
            f"{risk:.4g}", (risk + error[place], place), xytext=(5, 0), textcoords="offset points", va="center"
        )
    axes.margins(x=0.25)
    axes.set_xlim(left=0.0)
    axes.set_yticks(places, [str(each).replace("_", "\n") for each in losses])
    axes.invert_yaxis()
    axes.set_xlabel("risk, in units of the loss" + (" (whiskers: 2 standard errors)" if any(error) else ""))
    axes.grid(True, axis="x", alpha=0.25)
    figure = axes.figure
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)


def _draw_pulls(axes: Axes, evaluation: Evaluation) -> None:
    pulls = evaluation.pulls
    levels = {f"{100.0 * level:g}%": value for level, value in pulls.quantiles.items()}
    axes.plot(list(levels.values()), list(levels), "o-", color=ACCENT, linewidth=1.8)
    axes.axvline(pulls.mean, color=MUTED, linestyle="--", linewidth=1.2)
    axes.annotate(
        f"mean {pulls.mean:,.4g}", (pulls.mean, 0.0), xycoords=("data", "axes fraction"), xytext=(4, 5),
        textcoords="offset points", color=MUTED,
    )  # fmt: skip
    axes.set_xlabel("pulls of a run")
    axes.set_ylabel("share of runs with no more")
    axes.grid(True, alpha=0.25)
