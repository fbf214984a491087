"""The numbers of a study's report, each with what it means."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from dbcare.base.numbers import Money, format_chance, round_together
from dbcare.live.recommendation import Lift, Recommendation
from dbcare.live.settings import Settings
from dbcare.live.settings_texts import describe_settings
from dbcare.live.status import Status
from dbcare.live.status_texts import format_blocks

ASSUMPTIONS = (
    "What a study assumes about prices, rewards, and missing answers, what happens where that fails, and what to do "
    'instead: the page "Assumptions and limitations" of dbcare\'s documentation, docs/explanation/assumptions.md.'
)


class Number(NamedTuple):
    """A number as people read it, and what it means."""

    name: str
    value: str
    meaning: str


def list_results(settings: Settings, status: Status, choice: Recommendation) -> Iterator[Number]:
    """Yield what is known of the recommended arm."""
    currency = settings.currency
    if choice.arm is None:
        return
    yield Number("Recommended arm", choice.arm, "The arm to choose." if choice.final else "The arm that leads so far.")
    yield Number("Verdict", choice.verdict, "The outcome in a few words.")
    if choice.probability_best is not None:
        yield Number(
            "Probability of being best",
            format_chance(choice.probability_best),
            "How likely this arm has the best mean of all, given the rewards. Above 90%, see its lead instead.",
        )
    if choice.expected_loss is not None:
        yield Number(
            "Expected loss",
            Money(choice.expected_loss, currency).rough(),
            "What choosing this arm is expected to lose against the unknown best, all rivals together.",
        )
    if status.policy_loss is not None:
        yield Number(
            "Weighed by the policy",
            Money(status.policy_loss, currency).rough(),
            "What choosing the leader is expected to lose to its strongest rival alone; the policy compares that with "
            "what was spent.",
        )
    if choice.estimate is not None and choice.interval is not None:
        yield Number(
            "Mean reward",
            _format_interval(choice.estimate, choice.interval),
            "The arm's mean, corrected for having been picked, with a 95% interval that allows for that too.",
        )
    if choice.mean is not None:
        yield Number(
            "Naive mean",
            f"{choice.mean:.4g}",
            "The mean of its counted rewards, which is too high on average: the arm was picked for it.",
        )
    if choice.lead is not None and choice.lead_interval is not None:
        yield Number(
            f"Lead over {choice.rival}",
            _format_interval(choice.lead, choice.lead_interval),
            "By how much its mean is better than that of the control or, without one, of the best other arm; corrected "
            "for selection, with a 95% interval.",
        )
    if choice.anytime_interval is not None:
        _, low, high = round_together(0.0, *choice.anytime_interval)
        yield Number(
            "Anytime interval",
            f"{low} to {high}",
            "A wider 95% interval of its mean, which holds however often one looked, for all arms together."
            if settings.spread.range is not None
            else "A wider, approximate 95% interval of its mean for those who look often, for all arms together, as if "
            "rewards were normal with the variance seen.",
        )
    if choice.lift is not None:
        yield from _list_lift(choice.lift, currency)


def _list_lift(lift: Lift, currency: str | None) -> Iterator[Number]:
    if lift.relative is not None and lift.relative_interval is not None:
        relative = _format_interval(*_in_percent(lift.relative, lift.relative_interval), unit="%")
        yield Number(f"Lift over {lift.control}", relative, "The lead over the control, as a share of its estimate.")
    if lift.money is not None and lift.money_interval is not None:
        low, high = (Money(end, currency).rough() for end in lift.money_interval)
        value = f"{Money(lift.money, currency).rough()} (95% interval {low} to {high})"
        yield Number("Lift in money", value, "The lead over the control, times what one unit of reward is worth.")
    if lift.probability is not None:
        yield Number(
            f"Probability of beating {lift.control}",
            format_chance(lift.probability),
            "How likely this arm is better than the control. It beats the control only if the whole interval of its "
            "lead is above 0.",
        )


COST_OF_TESTING = (
    "Cost of testing: all trials that were charged, at the stated prices unless others were told. It is an estimate if "
    "the stated price is one."
)


def list_counts(settings: Settings, status: Status) -> Iterator[Number]:
    """Yield what was asked, counted and paid."""

    def with_cost(count: int, cost: float) -> str:
        return f"{count:,}, for {Money(cost, settings.currency)}"

    yield Number("Spent", str(Money(status.spent, settings.currency)), COST_OF_TESTING)
    yield Number("Trials asked", f"{status.asked:,}", "Trials that were handed out, and observations made elsewhere.")
    yield Number("Rewards counted", f"{status.rewards:,}", "Rewards that the decision rests on.")
    if status.blocks_used is not None:
        yield Number("Blocks", format_blocks(status), "Blocks in which some arm has had a trial.")
    if status.waiting or status.held:
        yield Number(
            "Pending", f"{status.waiting:,} not told, {status.held:,} held", "Trials whose outcome is not counted yet."
        )
    if status.late:
        expired = f", {status.late_expired:,} of them expired" if status.late_expired else ""
        yield Number(
            "After the stop",
            with_cost(status.late, status.late_cost) + expired,
            "Rewards of trials that were under way at the stop: paid, without effect.",
        )
    if status.failed:
        yield Number(
            "Failed", with_cost(status.failed, status.failed_cost), "Trials without a reward that were charged anyway."
        )
    if status.surplus:
        yield Number(
            "After their lease",
            with_cost(status.surplus, status.surplus_cost),
            "Rewards that came after their trial had been replaced: paid, without effect.",
        )


# By the labels of `describe_settings`.
SETTING_MEANINGS = {
    "Price of a trial": "What one observation costs.",
    "One unit of reward is worth": "What a mean reward higher by 1 is worth over all future use.",
    "A wrong choice costs": "What choosing any arm but the best loses.",
    "A wrong choice loses": "The loss that is weighed against spending.",
    "Goal": "Whether large or small rewards are good.",
    "Control": "The arm in use today, with which the others are compared.",
    "Rewards": "What was stated about the spread of the rewards.",
    "Policy": "The rule that decides what to try next and when to stop.",
    "Does not stop before": "The earliest stop.",
    "Budget": "The study stops before it spends more.",
    "Max pending trials": "How many trials may be under way at the same time.",
    "Expired trials": "What happens to trials that are not told within their lease.",
    "Blocks": "What arms share, so that they are compared within it only.",
    "Seed": "Random seed for breaking ties.",
}


def list_settings(settings: Settings, status: Status) -> Iterator[Number]:
    """Yield what the study was asked to decide."""
    yield Number("Arms", ", ".join(settings.arms), f"The {len(settings.arms):,} options to choose from.")
    for label, text in describe_settings(settings, status.max_ahead):
        yield Number(label, text, SETTING_MEANINGS[label])


def list_promises(settings: Settings) -> Iterator[Number]:
    """Yield what was known before the first trial."""
    policy = settings.built_policy
    limit = min(policy.max_spend, math.inf if settings.max_spend is None else settings.max_spend)
    yield Number(
        "Most that can be spent",
        "no limit is known" if math.isinf(limit) else str(settings.money(limit)),
        "What the study never exceeds at the stated prices, whatever the truth; trials under way at the stop, and "
        "failed ones, come on top.",
    )
    yield Number("One trial of each arm", str(settings.money(math.fsum(settings.costs))), "What the first look costs.")


def _in_percent(value: float, interval: tuple[float, float]) -> tuple[float, tuple[float, float]]:
    return 100.0 * value, (100.0 * interval[0], 100.0 * interval[1])


def _format_interval(value: float, interval: tuple[float, float], unit: str = "") -> str:
    middle, low, high = round_together(value, *interval)
    return f"{middle}{unit} (95% interval {low}{unit} to {high}{unit})"
