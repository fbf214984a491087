"""What a study says of itself: its recommendation, and where it stands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from dbcare.live.diagnostics import notes_of
from dbcare.live.events import EventKind
from dbcare.live.ledger import Ledger
from dbcare.theory.normal import tail_of

LEVEL = 0.95  # of intervals, as if the number of trials had been fixed beforehand
# A clear winner leaves the others no more than this chance in all. Among equal arms, studies by Breakeven then say that
# there is one in about 4 of 100 cases (two arms), or fewer (more arms).
CLEAR = 0.01


@dataclass(frozen=True)
class ArmStatus:
    """What has been counted of an arm."""

    name: str
    trials: int
    mean: float | None  # None before the first reward
    interval: tuple[float, float] | None  # of the mean, 95%; None while nothing is known of it
    expected_loss: float | None  # of choosing the leader over it, as in `Recommendation`
    out: int  # trials asked and not counted yet
    left: str | None  # why it is no longer in the race: dropped by the policy, or retired


@dataclass(frozen=True)
class Recommendation:
    """The arm to choose as things stand."""

    arm: str
    mean: float | None
    interval: tuple[float, float] | None
    expected_loss: float | None  # of choosing it over its strongest rival, in money; None where the policy has none
    spent: float
    reason: str
    final: bool
    verdict: str  # "clear winner", "too close to be worth more", "only one left"; "undecided" if ended before that

    def __str__(self) -> str:
        return f"{self.arm} ({'final' if self.final else 'so far'}, {self.verdict}): {self.reason}"


@dataclass(frozen=True)
class Status:
    """Where a study stands: what is counted, and what is still out."""

    name: str
    state: str  # "running", "paused" or "stopped"
    arms: tuple[ArmStatus, ...]
    asked: int
    counted: int
    waiting: int  # asked, not told yet
    held: int  # told, but behind one that is not
    oldest: float | None  # seconds since the oldest of those waiting was asked
    spent: float  # in money, or units of the loss
    expected_loss: float | None  # of stopping now, as in `Recommendation`
    reason: str
    notes: tuple[str, ...]  # what the data say against what was taken for granted


@dataclass(frozen=True)
class Pending:
    """A trial that has not been counted: not told yet, or told before an earlier one was."""

    trial: int
    arm: str
    worker: str | None
    age: float  # seconds since it was asked
    left: float | None  # seconds until its lease runs out, below 0 if that has happened; None: never
    told: bool


@dataclass(frozen=True)
class HistoryPoint:
    """How a study stood once so many rewards had been counted; amounts as in `Status`."""

    rewards: int
    spent: float
    expected_loss: float | None


def arms_of(ledger: Ledger) -> tuple[ArmStatus, ...]:
    """Means with intervals, by arm."""
    quantile = NormalDist().inv_cdf(0.5 + LEVEL / 2.0)
    losses = ledger.decision.losses() or {}
    left = {event.arm: event.text for event in ledger.decision.dropped()} | {
        arm: f"retired: {reason}" for arm, reason in ledger.withdrawn.items()
    }
    found = []
    for arm, (name, tally) in enumerate(zip(ledger.settings.arms, ledger.tallies, strict=True)):
        margin = quantile * math.sqrt(variance_of_mean(ledger, arm))
        interval = None if math.isinf(margin) else _within(ledger, tally.mean - margin, tally.mean + margin)
        found.append(
            ArmStatus(
                name,
                tally.trials,
                tally.mean if tally.trials else None,
                interval,
                _money(ledger, losses.get(arm)),
                ledger.decision.out[arm],
                left.get(arm),
            )
        )
    return tuple(found)


def _within(ledger: Ledger, low: float, high: float) -> tuple[float, float]:
    """An interval, cut at the bounds that rewards stay within."""
    lowest, highest = ledger.settings.bounds or (-math.inf, math.inf)
    return max(low, lowest), min(high, highest)


def _money(ledger: Ledger, amount: float | None) -> float | None:
    """An amount of loss in money, where there is a value."""
    return None if amount is None else amount * (ledger.settings.value or 1.0)


def reason_of(ledger: Ledger) -> str:
    """Why it stopped, or what it waits for, with the arms by name."""
    return ledger.stopped or ledger.decision.why()


def explanation_of(ledger: Ledger) -> list[str]:
    """Every arm that left the race, and the stop, a sentence each."""
    names = ledger.settings.arms
    said = [f"{names[event.arm]} {event.text}" for event in ledger.decision.dropped()]
    said += [f"{names[arm]} was retired: {reason}" for arm, reason in ledger.withdrawn.items()]
    return said if ledger.stopped is None else [*said, ledger.stopped]


def recommendation_of(ledger: Ledger) -> Recommendation:
    """The policy's choice."""
    chosen = ledger.decision.recommended
    arm = arms_of(ledger)[chosen]
    final = ledger.stopped is not None
    return Recommendation(
        arm.name,
        arm.mean,
        arm.interval,
        _money(ledger, ledger.expected_loss),
        ledger.spent * (ledger.settings.value or 1.0),
        reason_of(ledger),
        final,
        verdict_of(ledger) if final else "undecided",
    )


def verdict_of(ledger: Ledger) -> str:
    """What a study that has stopped has found out."""
    if len(ledger.decision.racing) == 1:
        return "only one left"
    if doubt(ledger, ledger.decision.recommended) <= CLEAR:
        return "clear winner"
    return "too close to be worth more" if ledger.decision.stopped else "undecided"


def doubt(ledger: Ledger, chosen: int) -> float:
    """The chances that each other arm is better, added up, as if the numbers of trials had been fixed beforehand."""
    best = ledger.tallies[chosen]
    total = 0.0
    for arm in ledger.decision.racing:
        if arm != chosen:
            variance = variance_of_mean(ledger, chosen) + variance_of_mean(ledger, arm)
            ahead = ledger.settings.sign * (best.mean - ledger.tallies[arm].mean)
            total += tail_of(ahead / math.sqrt(variance)) if 0.0 < variance < math.inf else 0.5
    return total


def variance_of_mean(ledger: Ledger, arm: int) -> float:
    """Of an arm's mean; infinite where nothing is known.

    From the rewards, but no less than by a stated sigma; for rewards within bounds with the squares of four more, two
    at either end, so that a few that happen to be alike are not taken for certain.
    """
    tally, settings = ledger.tallies[arm], ledger.settings
    if tally.trials == 0:
        return math.inf
    if settings.sigma is not None:
        spread = max(settings.sigma**2, tally.variance if tally.trials > 1 else 0.0)
    elif settings.bounds is not None:
        width = settings.bounds[1] - settings.bounds[0]
        spread = (tally.squares + width**2) / (tally.trials + 1)
    else:
        spread = tally.variance
    return spread / tally.trials


def status_of(name: str, ledger: Ledger, now: float) -> Status:
    """All of it at a glance."""
    waiting = [each for each in ledger.open.values() if each.status is EventKind.ASKED]
    state = "stopped" if ledger.stopped is not None else "paused" if ledger.paused else "running"
    return Status(
        name=name,
        state=state,
        arms=arms_of(ledger),
        asked=ledger.asked,
        counted=ledger.counted,
        waiting=len(waiting),
        held=len(ledger.open) - len(waiting),
        oldest=max((now - each.asked for each in waiting), default=None),
        spent=ledger.spent * (ledger.settings.value or 1.0),
        expected_loss=_money(ledger, ledger.expected_loss),
        reason=reason_of(ledger),
        notes=notes_of(ledger),
    )


def pending_of(ledger: Ledger, now: float) -> list[Pending]:
    """Trials that have not been counted, in the order asked."""
    return [
        Pending(
            number,
            ledger.settings.arms[each.arm],
            each.worker,
            now - each.asked,
            None if each.expires is None else each.expires - now,
            each.status is not EventKind.ASKED,
        )
        for number, each in sorted(ledger.open.items())
    ]


def history_of(ledger: Ledger) -> list[HistoryPoint]:
    """How spending and expected loss went, in 100 to 200 points of a longer study, the last of them now."""
    points = ledger.history.points
    if points and points[-1] != ledger.standing():
        points = [*points, ledger.standing()]
    return [
        HistoryPoint(int(rewards or 0), _money(ledger, spent) or 0.0, _money(ledger, loss))
        for rewards, spent, loss in points
    ]
