"""A plan in words and tables: each figure with its error, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.table import Table

from dbcare.base.times import SECONDS_PER_DAY, spell_duration
from dbcare.planner.outlook import Measured, MeasuredChance
from dbcare.planner.setting import BEST_SIZE, DECIDE_NOW, find_label, strategy_names
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES

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
    """Return the chance of a wrong choice with its error, or the limit that the number of runs allows."""
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


Pairs = Sequence[tuple["Outlook", "Outlook"]]  # of two policies at the same gaps


def give_advice(plan: Plan) -> tuple[str, ...]:
    """Say whether to experiment, what that saves, the most that is spent, how long it takes, and what is missing."""
    omitted = describe_omissions(plan)
    if DEFAULT_POLICY not in plan.policies:
        return omitted
    sentences = []
    if guesses := _pair_up(plan, DECIDE_NOW.name):
        sentences.append(judge_worth(plan, guesses))
    if plan.setting.control is not None and plan.max_spend != 0.0:
        sentences.append(judge_best_control(plan, plan.setting.control.name))
    if plan.max_spend != 0.0 and (sized := _pair_up(plan, BEST_SIZE.name)):
        sentences.append(compare_with_best_size(plan, sized))
    ours = plan.of(DEFAULT_POLICY)
    sentences.append(describe_spending(plan, ours))
    if plan.without_waiting:
        sentences.append(price_waiting(plan, ours))
    if plan.setting.per_day is not None and plan.max_spend != 0.0:
        sentences.append(describe_duration(plan.setting.per_day, ours))
    return (*sentences, *omitted)


def judge_worth(plan: Plan, pairs: Pairs) -> str:
    """Say at which gaps the default policy beats a choice without data, by more than two standard errors."""
    setting = plan.setting
    choice = find_label(DECIDE_NOW.name, setting)
    instead = "deciding now" if setting.control is None else f"keeping {setting.control.name}"
    one_each = setting.money(setting.loss_value * math.fsum(setting.risk.costs(setting.arms)))
    if pairs[0][0].policy.max_pulls == 0:
        return (
            f"Experimenting is not worth it at all: {choice}. One observation of each arm would cost {one_each}, "
            "and a choice without data loses no more."
        )
    pays = [one.gap for one, other in pairs if _clearly_less(one, other)]
    costs = [one.gap for one, other in pairs if _clearly_less(other, one)]
    unclear = [one.gap for one, _ in pairs if one.gap not in (*pays, *costs)]
    gain, extra = _most_saved(plan, pairs), _most_saved(plan, _swap(pairs))
    if len(costs) == len(plan.gaps):
        return (
            f"Experimenting is not worth it at any of these gaps: {choice}. {_label()} would lose up to {extra} more."
        )
    groups = []
    if pays:
        premise = (
            "" if setting.control is None else f", if another arm is better than {setting.control.name} by that much"
        )
        groups.append(
            f"Experimenting pays {_where(plan, pays)}{premise}: {_label()} loses up to {gain} less than {instead}."
        )
    if costs:
        groups.append(f"It does not pay {_where(plan, costs)}, where it loses up to {extra} more.")
    if unclear:
        groups.append(f"It is too close to call {_where(plan, unclear)}.")
    return " ".join(groups)


def judge_best_control(plan: Plan, control: str) -> str:
    """Say what an experiment loses if the control is the best arm by such a gap; keeping it loses nothing then."""
    flipped = [outlook for outlook in plan.if_control_best if outlook.name == DEFAULT_POLICY]
    outlooks = flipped or plan.of(
        DEFAULT_POLICY
    )  # the same for other rewards: which arm is the best makes no difference
    worst = max(outlooks, key=lambda outlook: outlook.largest_loss)
    most = str(plan.setting.money(worst.largest_loss))
    where = f"at a gap of {worst.gap:g}, where " if len(outlooks) > 1 else ""
    chance = worst.measured_chance
    wrong = format_percent(chance.value) if chance.is_known else format_chance(chance)
    return (
        f"If {control} is the best itself, keeping it loses nothing, and {_label()} loses up to {most}: {where}it "
        f"spends {plan.setting.money(worst.spend)} and wrongly switches in {wrong} of runs."
    )


def compare_with_best_size(plan: Plan, pairs: Pairs) -> str:
    """Compare the total losses of the default policy and of the equal size that loses least, told the gap."""
    better = [pair for pair in pairs if _clearly_less(*pair)]
    worse = [(one, other) for one, other in pairs if _clearly_less(other, one)]
    if not better and not worse:
        return f"{_label()} and the best fixed size, which is told the gap, lose about the same."
    sentences = []
    if better:
        sentences.append(
            f"{_label()} loses {_range_of_savings(better)} less than the best fixed size, which is told the gap, "
            f"{_where(plan, [one.gap for one, _ in better])}."
        )
    if worse:
        told = "" if better else ", which is told the gap,"
        sentences.append(
            f"The best fixed size{told} loses {_range_of_savings(_swap(worse))} less "
            f"{_where(plan, [one.gap for one, _ in worse])}."
        )
    return " ".join(sentences)


def _range_of_savings(pairs: Pairs) -> str:
    """Return by how many percent, from least to most, the first of a pair surely loses less than the second."""
    shares = sorted(100.0 * (1.0 - one.largest_loss / other.least_loss) for one, other in pairs)
    least, most = f"{shares[0]:.0f}%", f"{shares[-1]:.0f}%"
    return least if least == most else f"{least} to {most}"


def describe_spending(plan: Plan, ours: Sequence[Outlook]) -> str:
    """State the guarantee, and what nearly all runs stay below."""
    assert plan.max_spend is not None
    if plan.max_spend == 0.0:
        return f"{_label()} spends nothing."
    most = max(outlook.evaluation.pulls.quantiles[0.95] for outlook in ours)
    usual = f"makes at most {most:,.0f} observations"
    if not plan.setting.risk.costs_differ:
        cost = plan.setting.loss_value * plan.setting.risk.single_cost
        usual = f"spends at most {plan.setting.money(most * cost)}"
    where = "at the gaps shown" if len(ours) == len(plan.gaps) else _where(plan, [outlook.gap for outlook in ours])
    if math.isinf(plan.max_spend):
        return (
            f"No limit on what {_label()} spends is known in advance; {where} it {usual} in 95% of runs. "
            "Give the study a budget to set one."
        )
    return (
        f"{_label()} never spends more than {plan.setting.money(plan.max_spend)} if trials are made one at a time, "
        f"whatever the truth; {where} it {usual} in 95% of runs."
    )


def price_waiting(plan: Plan, ours: Sequence[Outlook]) -> str:
    """Say what it costs, or saves, not to stop before a number of observations."""
    free = {outlook.gap: outlook for outlook in plan.without_waiting}
    pairs = [(one, free[one.gap]) for one in ours if one.gap in free]
    dearer = [one.gap for one, other in pairs if _clearly_less(other, one)]
    cheaper = [one.gap for one, other in pairs if _clearly_less(one, other)]
    parts = []
    if dearer:
        parts.append(f"costs up to {_most_saved(plan, _swap(pairs))} more {_where(plan, dearer)}")
    if cheaper:
        parts.append(f"saves up to {_most_saved(plan, pairs)} {_where(plan, cheaper)}")
    difference = ", and ".join(parts) or "makes no clear difference to the total loss"
    return f"Not stopping before {plan.setting.not_before:,} observations {difference}."


def describe_duration(per_day: float, ours: Sequence[Outlook]) -> str:
    """Say how long a run takes at the gap where it takes longest."""
    longest = max(ours, key=lambda outlook: outlook.observations)
    where = "" if len(ours) == 1 else f" at a gap of {longest.gap:g}, where it takes longest"
    mean, most = (
        spell_duration(SECONDS_PER_DAY * pulls / per_day)
        for pulls in (longest.observations, longest.evaluation.pulls.quantiles[0.95])
    )
    return f"At {per_day:,g} observations a day, a run takes about {mean}{where}; in 95% of runs at most {most}."


def describe_omissions(plan: Plan) -> tuple[str, ...]:
    """Say what did not fit into the budget of work, how much it is, and what to do about it."""
    sentences = []
    for name in dict.fromkeys(omission.name for omission in plan.omissions):
        omissions = [omission for omission in plan.omissions if omission.name == name and not omission.control_is_best]
        if not omissions:
            continue
        # The largest gap takes the least work.
        there = "" if len(omissions) == 1 else f"at a gap of {omissions[-1].gap:g}, "
        sentences.append(
            f"{find_label(name, plan.setting)} is left out {_where(plan, [omission.gap for omission in omissions])}: "
            f"{there}{omissions[-1].why}."
        )
    if sentences:
        sentences.append(
            "That is more work than a plan takes by default: choose larger gaps, or state the number of `runs` "
            "to `dbcare plan` or `dbcare.plan`, which then have no limit."
        )
    return tuple(sentences)


def _label() -> str:
    return POLICIES[DEFAULT_POLICY].label


def _clearly_less(one: Outlook, other: Outlook) -> bool:
    return other.least_loss - one.largest_loss > 2.0 * math.hypot(one.standard_error, other.standard_error)


def _pair_up(plan: Plan, name: str) -> Pairs:
    """Return the default policy and another one at each gap that has both."""
    others = {outlook.gap: outlook for outlook in plan.outlooks if outlook.name == name}
    return [(one, others[one.gap]) for one in plan.of(DEFAULT_POLICY) if one.gap in others]


def _most_saved(plan: Plan, pairs: Pairs) -> str:
    """Return the largest amount by which the first of a pair clearly loses less than the second."""
    saved = [other.least_loss - one.largest_loss for one, other in pairs if _clearly_less(one, other)]
    return str(plan.setting.money(max(saved, default=0.0)))


def _swap(pairs: Pairs) -> Pairs:
    return [(other, one) for one, other in pairs]


def _where(plan: Plan, holds: Collection[float]) -> str:
    """Return the gaps where something holds, in words."""
    places = [place for place, gap in enumerate(plan.gaps) if gap in holds]
    gaps = [f"{plan.gaps[place]:g}" for place in places]
    if len(places) == len(plan.gaps):
        return "at every gap shown" if len(gaps) > 1 else f"at a gap of {gaps[0]}"
    if len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        return f"at gaps from {gaps[0]} to {gaps[-1]}"
    return f"at a gap of {gaps[0]}" if len(gaps) == 1 else f"at gaps of {', '.join(gaps[:-1])} and {gaps[-1]}"
