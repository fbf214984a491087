"""Figures of a study as people read them, in terminals, notebooks and reports alike."""

from __future__ import annotations

from dbcare.base.numbers import Money, format_chance, round_together
from dbcare.base.times import format_duration
from dbcare.live.count_descriptions import describe_uncounted
from dbcare.live.recommendation import ArmStatus, Recommendation
from dbcare.live.settings import Settings
from dbcare.live.status import Status

UNKNOWN = "-"


def format_capped(status: Status) -> str:
    """Return how many rewards of each arm were above the cap."""
    return ", ".join(f"{arm.name} {arm.capped:,}" for arm in status.arms)


def format_best(arm: ArmStatus) -> str:
    """Return the probability of being best."""
    return UNKNOWN if arm.probability_best is None else format_chance(arm.probability_best)


def format_lift(arm: ArmStatus) -> str:
    """Return the lift over the control, relative to it where that makes sense; a star marks what beats it."""
    lift = arm.lift
    if lift is None:
        return UNKNOWN
    value = f"{lift.absolute:+.3g}" if lift.relative is None else f"{100.0 * lift.relative:+.3g}%"
    return f"{value}{'*' if lift.beats else ''}"


def format_counts(settings: Settings, status: Status) -> str:
    """Return how many rewards are counted, what else was charged, and how many trials are pending and held."""
    oldest = "" if status.oldest is None or status.oldest < 1.0 else f" (oldest: {format_duration(status.oldest)})"
    uncounted = "".join(f", {phrase}" for phrase in describe_uncounted(status, settings.currency))
    counts = f"{status.rewards:,} counted{uncounted}, {status.waiting:,} pending{oldest}, {status.held:,} held"
    return counts if status.blocks_used is None else f"{counts}; {format_blocks(status)}"


def format_blocks(status: Status) -> str:
    """Return how many blocks have been used: of a pool, or rounds."""
    if status.blocks is not None:
        return f"{status.blocks_used:,} of {status.blocks:,} blocks used"
    return "1 round" if status.blocks_used == 1 else f"{status.blocks_used:,} rounds"


def format_spending(settings: Settings, choice: Recommendation) -> str:
    """Return what has been spent, and what stopping is expected to lose."""
    spent = str(Money(choice.spent, settings.currency))
    if choice.expected_loss is None:
        return spent
    loss = Money(choice.expected_loss, settings.currency)
    return f"{spent}; expected loss of {'the choice' if choice.final else 'stopping now'}: {loss}"


def format_number(number: float | None) -> str:
    """Return a number with four digits."""
    return UNKNOWN if number is None else f"{number:.4g}"


def format_estimate(arm: ArmStatus) -> tuple[str, str]:
    """Return an arm's estimate and its interval, with digits that the interval supports."""
    if arm.estimate is None or arm.interval is None:
        return UNKNOWN, UNKNOWN
    estimate, low, high = round_together(arm.estimate, *arm.interval, digits=3)
    return estimate, f"{low} to {high}"
