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


def tabulate_plan(plan: Plan) -> Table:
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
    """Yield the lines of the table; those with a control that is the best arm come last, with negative gaps."""
    for flipped in (False, True):
        for gap in plan.gaps:
            yield from _list_section(plan, gap, flipped)


def _list_section(plan: Plan, gap: float, flipped: bool) -> Iterator[PlanLine]:
    width = len(list_headers(plan))
    outlooks = {outlook.name: outlook for outlook in find_outlooks(plan, gap, flipped)}
    omitted = find_omitted(plan, gap, flipped)
    names = [name for name in strategy_names() if name in outlooks or name in omitted]
    best = find_lowest(plan, gap, flipped)
    for place, name in enumerate(names):
        figures = list(format_figures(plan.setting, outlooks[name]).values()) if name in outlooks else [OMITTED]
        figures += [""] * (width - 3 - len(figures))
        shown = f"{-gap if flipped else gap:g}" if place == 0 else ""
        cells = [shown, find_label(name, plan.setting), *figures, "*" if name == best else ""]
        yield PlanLine(cells, name == best, place == len(names) - 1)


def find_outlooks(plan: Plan, gap: float, flipped: bool) -> list[Outlook]:
    """Return the outlooks at a gap; `flipped` where the control is the best arm."""
    return [outlook for outlook in (plan.if_control_best if flipped else plan.outlooks) if outlook.gap == gap]


def find_omitted(plan: Plan, gap: float, flipped: bool) -> set[str]:
    """Return the names of the policies that are left out there."""
    return {each.name for each in plan.omissions if each.gap == gap and each.control_is_best == flipped}


def find_lowest(plan: Plan, gap: float, flipped: bool = False) -> str | None:
    """Return the policy with the lowest total loss at a gap; None if there is only one, or if nobody knows."""
    outlooks = find_outlooks(plan, gap, flipped)
    if len(outlooks) < 2 or find_omitted(plan, gap, flipped):
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
    if chance.is_small:
        return "<0.1%"
    if not chance.is_known:
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
