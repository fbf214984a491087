"""What a study reports: its recommendation, its status, and how it got there."""

from __future__ import annotations

import math
from statistics import NormalDist

from dbcare.live.diagnostics import list_contradictions
from dbcare.live.events import EventKind
from dbcare.live.ledger import Ledger
from dbcare.live.standing import Standing
from dbcare.live.status import RETIRED, ArmStatus, HistoryPoint, Pending, Recommendation, Status
from dbcare.live.stores.base import StudyRecord
from dbcare.theory.normal import tail_of

UNDECIDED = "undecided"  # the verdict until a study stops
INTERVAL_LEVEL = 0.95  # as if the number of trials had been fixed in advance
# A clear winner leaves the others no more than this chance in all. Among equal arms, studies by Breakeven then claim
# that there is one in about 4 of 100 cases (two arms), or fewer (more arms).
MAX_CLEAR_DOUBT = 0.01


def list_arms(ledger: Ledger) -> tuple[ArmStatus, ...]:
    """Return the arms with their means and intervals."""
    quantile = NormalDist().inv_cdf(0.5 + INTERVAL_LEVEL / 2.0)
    losses = ledger.decision.expected_losses() or {}
    left = {event.arm: event.text for event in ledger.decision.dropped()} | {
        arm: f"{RETIRED}{reason}" for arm, reason in ledger.withdrawn.items()
    }
    arms = []
    for arm, (name, statistics) in enumerate(zip(ledger.settings.arms, ledger.statistics, strict=True)):
        margin = quantile * math.sqrt(estimate_variance(ledger, arm))
        known = not math.isinf(margin)
        arms.append(
            ArmStatus(
                name,
                statistics.trials,
                statistics.mean if statistics.trials else None,
                _clip(ledger, statistics.mean - margin, statistics.mean + margin) if known else None,
                _in_money(ledger, losses.get(arm)),
                ledger.decision.pending[arm],
                left.get(arm),
                statistics.capped,
                statistics.late,
            )
        )
    return tuple(arms)


def _clip(ledger: Ledger, low: float, high: float) -> tuple[float, float]:
    """Cut an interval at the bounds of the rewards as they count."""
    lowest, highest = ledger.settings.bounds or (-math.inf, math.inf)
    return max(low, lowest), min(high, ledger.settings.count_as(highest))


def _in_money(ledger: Ledger, amount: float | None) -> float | None:
    """Convert an amount of loss to money, where there is a value."""
    return None if amount is None else amount * (ledger.settings.value or 1.0)


def explain_state(ledger: Ledger) -> str:
    """Explain why the study stopped, or what it is waiting for, with the arms by name."""
    return ledger.stopped or ledger.decision.why()


def explain_decisions(ledger: Ledger) -> list[str]:
    """Explain every arm that is no longer active, and the stop, in one sentence each."""
    names = ledger.settings.arms
    sentences = [f"{names[event.arm]} {event.text}" for event in ledger.decision.dropped()]
    sentences += [f"{names[arm]} was retired: {reason}" for arm, reason in ledger.withdrawn.items()]
    return sentences if ledger.stopped is None else [*sentences, ledger.stopped]


def make_recommendation(ledger: Ledger) -> Recommendation:
    """Return the policy's choice."""
    arm = list_arms(ledger)[ledger.decision.recommended]
    final = ledger.stopped is not None
    return Recommendation(
        arm.name,
        arm.mean,
        arm.interval,
        _in_money(ledger, ledger.expected_loss),
        ledger.spent * (ledger.settings.value or 1.0),
        explain_state(ledger),
        final,
        _verdict(ledger) if final else UNDECIDED,
    )


def _verdict(ledger: Ledger) -> str:
    """Return the verdict of a study that has stopped."""
    if len(ledger.decision.active) == 1:
        return "only one left"
    if estimate_doubt(ledger, ledger.decision.recommended) <= MAX_CLEAR_DOUBT:
        return "clear winner"
    return "too close to justify more trials" if ledger.decision.has_stopped else UNDECIDED


def estimate_doubt(ledger: Ledger, chosen: int) -> float:
    """Sum the chances that each other arm is better, as if the numbers of trials had been fixed in advance."""
    best = ledger.statistics[chosen]
    total = 0.0
    for arm in ledger.decision.active:
        if arm != chosen:
            variance = estimate_variance(ledger, chosen) + estimate_variance(ledger, arm)
            lead = ledger.settings.sign * (best.mean - ledger.statistics[arm].mean)
            total += tail_of(lead / math.sqrt(variance)) if 0.0 < variance < math.inf else 0.5
    return total


def estimate_variance(ledger: Ledger, arm: int) -> float:
    """Return the variance of an arm's mean; infinite where nothing is known.

    A policy with `sigma_pulls` takes the stated spread for so many rewards, and so does this. For the others, a stated
    sigma is the least; with bounds alone, four more rewards are added, two at each end, so that a few equal rewards are
    not mistaken for certainty.
    """
    statistics, settings = ledger.statistics[arm], ledger.settings
    weight, guess = getattr(settings.built_policy, "sigma_pulls", None), settings.spread.guess
    if statistics.trials == 0:
        return math.inf
    if guess is None:
        variance = statistics.variance
    elif weight == math.inf:
        variance = guess**2
    elif weight is not None:
        variance = (weight * guess**2 + statistics.squares) / (weight + statistics.trials - 1)
    elif settings.sigma is not None:
        variance = max(guess**2, statistics.variance if statistics.trials > 1 else 0.0)
    else:
        variance = (statistics.squares + 4.0 * (settings.spread.certain or 0.0) ** 2) / (statistics.trials + 1)
    return variance / statistics.trials


def make_standing(ledger: Ledger) -> Standing:
    """Return how the study stands, for lists of studies."""
    stopped = ledger.stopped
    return Standing(
        state=ledger.state,
        asked=ledger.asked,
        counted=ledger.counted,
        spent=ledger.spent * (ledger.settings.value or 1.0),
        expected_loss=_in_money(ledger, ledger.expected_loss),
        recommended=ledger.settings.arms[ledger.decision.recommended],
        verdict=UNDECIDED if stopped is None else _verdict(ledger),
        reason=stopped or "",
        curve=ledger.history.curve(),
    )


def make_status(record: StudyRecord, ledger: Ledger, now: float) -> Status:
    """Return the state of the study."""
    waiting = [trial for trial in ledger.open.values() if trial.status is EventKind.ASKED]
    late = [statistics.late for statistics in ledger.statistics]
    failed, surplus = [counts.failed for counts in ledger.counts], [counts.surplus for counts in ledger.counts]
    return Status(
        name=record.name,
        state=ledger.state,
        arms=list_arms(ledger),
        asked=ledger.asked,
        counted=ledger.counted,
        waiting=len(waiting),
        held=len(ledger.open) - len(waiting),
        oldest=max((now - trial.asked for trial in waiting), default=None),
        spent=ledger.spent * (ledger.settings.value or 1.0),
        expected_loss=_in_money(ledger, ledger.expected_loss),
        reason=explain_state(ledger),
        notes=list_contradictions(ledger),
        description=ledger.description,
        created=record.created,
        created_by=record.created_by,
        activities=tuple(ledger.activities),
        cap=ledger.settings.cap,
        late=sum(late),
        late_cost=_price(ledger, late),
        failed=sum(failed),
        failed_cost=_price(ledger, failed),
        surplus=sum(surplus),
        surplus_cost=_price(ledger, surplus),
    )


def _price(ledger: Ledger, trials: list[int]) -> float:
    """Return what so many trials of each arm cost, as `Status.spent` has it."""
    cost = sum(count * cost for count, cost in zip(trials, ledger.settings.costs, strict=True))
    return cost * (ledger.settings.value or 1.0)


def list_pending(ledger: Ledger, now: float) -> list[Pending]:
    """Return the trials that have not been counted, in the order asked."""
    return [
        Pending(
            number,
            ledger.settings.arms[trial.arm],
            trial.worker,
            now - trial.asked,
            None if trial.expires is None else trial.expires - now,
            trial.status is not EventKind.ASKED,
        )
        for number, trial in sorted(ledger.open.items())
    ]


def list_history(ledger: Ledger) -> list[HistoryPoint]:
    """Return spend and expected loss over time: 100 to 200 points of a longer study, the last of them now."""
    points = ledger.history.points
    if points and points[-1] != ledger.standing():
        points = [*points, ledger.standing()]
    return [
        HistoryPoint(int(rewards or 0), _in_money(ledger, spent) or 0.0, _in_money(ledger, loss))
        for rewards, spent, loss in points
    ]
