"""What a study says of itself: its recommendation, and where it stands."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from dbcare.live.events import Kind
from dbcare.live.ledger import Ledger
from dbcare.policies import breakeven_rule
from dbcare.policies.breakeven import Breakeven
from dbcare.theory.normal import tail_of

LEVEL = 0.95  # of intervals
CLEAR = 0.05  # a rival less likely to be better leaves a clear winner


@dataclass(frozen=True)
class ArmStatus:
    """What has been counted of an arm; `interval` is the 95% one of its mean, infinite before two rewards."""

    name: str
    trials: int
    mean: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Recommendation:
    """The arm to choose as things stand."""

    arm: str
    mean: float
    interval: tuple[float, float]
    expected_loss: float | None  # of choosing it over its strongest rival, in money; None where the policy has none
    spent: float
    reason: str
    final: bool
    verdict: str  # "clear winner", "too close to be worth more", or "undecided" while it goes on

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
    reason: str


def arms_of(ledger: Ledger) -> tuple[ArmStatus, ...]:
    """Means with intervals, by arm."""
    quantile = NormalDist().inv_cdf(0.5 + LEVEL / 2.0)
    found = []
    for name, tally in zip(ledger.settings.arms, ledger.tallies, strict=True):
        margin = math.inf
        if tally.trials > 1:
            margin = quantile * math.sqrt(tally.squares / (tally.trials - 1) / tally.trials)
        found.append(ArmStatus(name, tally.trials, tally.mean, (tally.mean - margin, tally.mean + margin)))
    return tuple(found)


def reason_of(ledger: Ledger) -> str:
    """Why it stopped, or what it waits for, with the arms by name."""
    return named(ledger.stopped or ledger.run.why(), ledger.settings.arms)


def named(text: str, names: Sequence[str]) -> str:
    """A policy's sentence, which knows its arms by number only, with their names."""
    return re.sub(r"\barm (\d+)\b", lambda found: names[int(found[1])], text)


def recommendation_of(ledger: Ledger) -> Recommendation:
    """The policy's choice."""
    settings = ledger.settings
    chosen = ledger.run.recommendation()
    arm = arms_of(ledger)[chosen]
    final = ledger.stopped is not None
    verdict = "undecided"
    if final:
        verdict = "clear winner" if doubt(ledger, chosen) <= CLEAR else "too close to be worth more"
    return Recommendation(
        arm.name,
        arm.mean,
        arm.interval,
        expected_loss(ledger),
        ledger.spent * (settings.value or 1.0),
        reason_of(ledger),
        final,
        verdict,
    )


def expected_loss(ledger: Ledger) -> float | None:
    """The largest loss that Breakeven weighs, in money."""
    policy, state = ledger.settings.made, ledger.run.state
    if not isinstance(policy, Breakeven) or state[breakeven_rule.SEEN] < policy.arms:
        return None
    rival = int(state[breakeven_rule.RIVAL])
    return float(state[breakeven_rule.section(policy.tables, breakeven_rule.LOSS) + rival]) * (
        ledger.settings.value or 1.0
    )


def doubt(ledger: Ledger, chosen: int) -> float:
    """The chance that the strongest rival is better, by a normal approximation; 1/2 if too little is known."""
    best = ledger.tallies[chosen]
    worst = 0.0
    for arm, tally in enumerate(ledger.tallies):
        if arm == chosen:
            continue
        if min(best.trials, tally.trials) < 2:
            return 0.5 if tally.trials else worst
        variance = sum(each.squares / (each.trials - 1) / each.trials for each in (best, tally))
        ahead = ledger.settings.sign * (best.mean - tally.mean)
        if variance > 0.0:
            worst = max(worst, tail_of(ahead / math.sqrt(variance)))
        elif ahead <= 0.0:
            worst = max(worst, 0.5)
    return worst


def status_of(name: str, ledger: Ledger, now: float) -> Status:
    """All of it at a glance."""
    waiting = [each for each in ledger.open.values() if each.status is Kind.ASKED]
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
        reason=reason_of(ledger),
    )
