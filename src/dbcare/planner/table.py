"""A plan as a table, and its figures as people read them: each with its error, or a limit where runs are too few."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.table import Table

from dbcare.planner.precision import Measured, MeasuredChance
from dbcare.planner.strategies import find_label, strategy_names

if TYPE_CHECKING:
    from dbcare.planner.outlook import Outlook
    from dbcare.planner.plan import Plan
    from dbcare.planner.setting import PlanSetting

OMITTED = "left out"
LEFT = ("policy", "")  # columns that are not numbers


class PlanLine(NamedTuple):
    """A line of the table."""

    cells: list[str]
    is_best: bool
    ends_section: bool


def make_table(plan: Plan) -> Table:
    """Return a section per gap with a line per policy; a star marks the lowest total loss."""
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    for header in list_headers(plan):
        table.add_column(header, justify="left" if header in LEFT else "right", no_wrap=True)
    for line in list_lines(plan):
        table.add_row(*line.cells, style="bold" if line.is_best else None, end_section=line.ends_section)
    return table


def list_headers(plan: Plan) -> list[str]:
    """Return the headers of the columns."""
    days = [] if plan.setting.per_day is None else ["days"]
    currency = f" ({plan.setting.currency})" if plan.setting.is_in_money and plan.setting.currency else ""
    return ["gap", "policy", "observations", *days, f"spend{currency}", "wrong", f"total loss{currency}", "runs", ""]


def list_lines(plan: Plan) -> Iterator[PlanLine]:
    """Yield the lines of the table."""
    width = len(list_headers(plan))
    for gap in plan.gaps:
        outlooks = {outlook.name: outlook for outlook in plan.outlooks if outlook.gap == gap}
        omitted = {omission.name for omission in plan.omissions if omission.gap == gap}
        names = [name for name in strategy_names() if name in outlooks or name in omitted]
        best = find_lowest(plan, gap)
        for place, name in enumerate(names):
            is_best = name == best
            figures = list(format_figures(plan.setting, outlooks[name]).values()) if name in outlooks else [OMITTED]
            figures += [""] * (width - 3 - len(figures))
            cells = [f"{gap:g}" if place == 0 else "", find_label(name, plan.setting), *figures, "*" if is_best else ""]
            yield PlanLine(cells, is_best, place == len(names) - 1)


def find_lowest(plan: Plan, gap: float) -> str | None:
    """Return the policy with the lowest total loss at a gap; None if there is only one, or if nobody knows."""
    outlooks = [outlook for outlook in plan.outlooks if outlook.gap == gap]
    if len(outlooks) < 2 or any(omission.gap == gap for omission in plan.omissions):
        return None
    best = min(outlooks, key=lambda outlook: outlook.largest_loss)
    is_clear = all(other is best or other.least_loss >= best.largest_loss for other in outlooks)
    return best.name if is_clear else None


def format_figures(setting: PlanSetting, outlook: Outlook) -> dict[str, str]:
    """Return the figures of an outlook as people read them, in the order of the table's columns."""

    def in_money(amount: float) -> str:
        money = setting.money(outlook.loss_value * amount)
        return str(money if money.currency is None else replace(money, currency=""))  # the header names it

    pulls = outlook.measured_pulls
    return {
        "observations": _with_error(pulls, lambda count: f"{count:,.0f}"),
        **({} if outlook.per_day is None else {"days": _format_days(pulls, outlook.per_day)}),
        "spend": _with_error(outlook.measured_spend, in_money),
        "wrong": format_chance(outlook.measured_chance),
        "total_loss": _with_error(outlook.measured_total, in_money),
        "runs": format_runs(outlook),
    }


def _with_error(measured: Measured, format_amount: Callable[[float], str]) -> str:
    """Return a figure with its error in percent of it, or the upper end of its interval if the error is too large."""
    if not measured.is_known:
        return f"<{format_amount(measured.high)}"
    return f"{format_amount(measured.value)}{_format_error(measured)}"


def _format_days(pulls: Measured, per_day: float) -> str:
    """Return the duration in days, whose error is that of the observations."""
    days = (pulls.value if pulls.is_known else pulls.high) / per_day
    text = f"{days:,.0f}" if days >= 99.5 else f"{days:.2g}"
    return text if pulls.is_known else f"<{text}"


def _format_error(measured: Measured) -> str:
    """Return the error in whole percent, rounded up; nothing for an exact figure."""
    percent = math.ceil(100.0 * measured.error - 1e-9)
    return f"\N{PLUS-MINUS SIGN}{percent}%" if percent else ""


def format_chance(chance: MeasuredChance) -> str:
    """Return the chance of a wrong choice with its error, or the limit that so many runs allow."""
    if chance.is_small or not chance.is_known:
        return f"<{math.ceil(1_000.0 * chance.high - 1e-9) / 10.0:.1f}%"
    return f"{format_percent(chance.value)}{_format_error(chance)}"


def format_percent(share: float) -> str:
    """Return a share in percent; one that rounds to nothing or all is said to be near it."""
    if share < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= share < 1.0 else f"{100.0 * share:.1f}%"


def format_runs(outlook: Outlook) -> str:
    """Return on how many runs the figures rest, by their weights."""
    return "exact" if outlook.runs == 0 else _shorten(round(outlook.effective_runs))


def _shorten(runs: int) -> str:
    """Return a number of runs in a few characters: 4k, 130k, 2.1M; beyond a thousand million, 3e+10."""
    for size, unit in ((10**6, "M"), (1_000, "k")):
        if size <= runs < 1_000 * size:
            return f"{runs / size:.{1 if runs < 10 * size else 0}f}".removesuffix(".0") + unit
    return f"{runs:.2g}" if runs >= 10**9 else str(runs)
