"""What follows from a plan, in sentences."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from dbcare.base.times import SECONDS_PER_DAY, spell_duration
from dbcare.planner.strategies import BEST_SIZE, DECIDE_NOW, find_label
from dbcare.planner.table import format_chance, format_percent
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES

if TYPE_CHECKING:
    from dbcare.planner.outlook import Outlook
    from dbcare.planner.plan import Plan

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
