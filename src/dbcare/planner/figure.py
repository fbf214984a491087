"""A plan as a figure: total loss against the gap, both on logarithmic axes, one line per policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dbcare.base.figures import DisplayedFigure, drawing_figure
from dbcare.planner.presentation import title
from dbcare.planner.strategies import find_label, find_strategy
from dbcare.policies.registry import DEFAULT_POLICY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbcare.planner.outlook import Outlook
    from dbcare.planner.plan import Plan

TITLE_LETTERS = 75  # of a line
TWO_DECADES_AND_A_HALF = 10**2.5  # over more of them, powers of ten are enough numbers on an axis


def draw_plan(plan: Plan) -> DisplayedFigure:
    """Draw the figure, with bands of +- 2 standard errors."""
    # After the check that it is installed:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator  # noqa: PLC0415

    with drawing_figure(7.2, 4.8) as figure:
        axes = figure.add_subplot()
        for name in plan.policies:
            strategy, outlooks = find_strategy(name), plan.of(name)
            gaps = [outlook.gap for outlook in outlooks]
            known = np.array([outlook.measured_total.is_known for outlook in outlooks])
            loss = np.where(known, [outlook.total_loss for outlook in outlooks], np.nan)
            margin = 2.0 * np.array([outlook.standard_error for outlook in outlooks])
            color, marker = next(iter(strategy.look.colors), None), strategy.look.marker or "s"
            (line,) = axes.loglog(
                gaps, loss, color=color, linestyle=strategy.dashes, marker=marker, markersize=5,
                markerfacecolor="white" if strategy.look.hollow else color, linewidth=1.8,
                label=find_label(name, plan.setting),
                zorder=3 if name == DEFAULT_POLICY else 2,
            )  # fmt: skip
            # The spend is known far better than the chance of a rare error, and no total is below it.
            low = np.maximum(loss - margin, np.minimum(loss, [outlook.spend for outlook in outlooks]))
            axes.fill_between(gaps, low, loss + margin, color=line.get_color(), alpha=0.15, linewidth=0.0)
            for outlook in (outlook for outlook, is_known in zip(outlooks, known, strict=True) if not is_known):
                _draw_limit(axes, outlook, line.get_color())
        axes.set_xlabel("gap \N{GREEK CAPITAL LETTER DELTA} between the best arm and the others")
        setting = plan.setting
        currency = (setting.currency or "in money") if setting.is_in_money else "in units of the loss"
        axes.set_ylabel(f"expected total loss, {currency}")
        if _have_room(plan.gaps):
            axes.set_xticks(plan.gaps, [f"{gap:g}" for gap in plan.gaps])
            axes.xaxis.set_minor_locator(NullLocator())
        low_end, high_end = axes.get_ylim()
        if high_end < TWO_DECADES_AND_A_HALF * low_end:
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(True, which="major", alpha=0.25)
        words = title(plan)
        words = words.replace("; ", ";\n") if len(words) > TITLE_LETTERS else words
        axes.set_title(words, fontsize=10, parse_math=False)
        if not all(outlook.measured_total.is_known for outlook in plan.outlooks):
            axes.plot([], [], color="black", marker=r"$\downarrow$", linestyle="", label="below this limit")
        if plan.outlooks:
            axes.legend(frameon=False, handlelength=3.5)
    return figure


def _draw_limit(axes: Axes, outlook: Outlook, color: Any) -> None:
    """Draw an arrow down from the upper end of what the total may be."""
    limit = outlook.largest_loss
    axes.plot(outlook.gap, limit, color=color, marker="_", markersize=9, linestyle="")
    axes.annotate(
        "", (outlook.gap, limit), (0, -22), textcoords="offset points",
        arrowprops={"arrowstyle": "<-", "color": color, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip


def _have_room(gaps: Sequence[float]) -> bool:
    """Return whether each gap can have its number below the axis without touching the next."""
    steps = np.diff(np.log(gaps))
    return bool(np.all(steps >= steps.sum() / 14.0))
