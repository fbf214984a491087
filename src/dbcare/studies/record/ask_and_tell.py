"""What asks hand out, and what the outcomes of trials mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dbcare.base.times import list_clock_jumps
from dbcare.errors import (
    AlreadyToldError,
    InvalidRewardError,
    InvalidValueError,
    StaleTrialError,
    TrialNotFoundError,
)
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.ledger import OpenTrial
from dbcare.studies.record.sync import Transaction
from dbcare.studies.settings import Settings
from dbcare.studies.trial import (
    REASON_NOTE,
    UNIT_NOTE,
    AskRequest,
    TaggedNumber,
    Trial,
    TrialReference,
    get_trial_number,
    make_tag,
    read_unit,
)


@dataclass(frozen=True)
class AskOutcome:
    """What an ask brought: trials, how many of them are new, and why there are none, such as "pending"."""

    trials: list[Trial]
    new: int
    lack: str | None  # a RefusalReason, "paused" or "stopped"; None if there are trials

    @property
    def stopped(self) -> bool:
        """Whether there are none because the study has stopped."""
        return self.lack == "stopped"


def hand_out(transaction: Transaction, request: AskRequest, now: float) -> AskOutcome:
    """Hand out the trials of a request, after recording what has expired by now."""
    expire(transaction, now)
    ledger = transaction.ledger
    asked = ledger.asked
    earlier = _find_earlier(transaction, request)
    if request.unit is not None:
        trials = _hand_to_unit(transaction, request, earlier[-1] if earlier else None, now)
    else:
        known = [_make_trial(ledger.settings, event) for event in earlier]
        trials = known or _hand_out_new(transaction, request, now)
    if trials:
        return AskOutcome(trials, ledger.asked - asked, None)
    reason = ledger.why_refused(without_limit=request.unit is not None)
    if reason is not None:
        transaction.refuse(reason, now)
    return AskOutcome([], 0, str(reason or ledger.state))


def expire(transaction: Transaction, now: float) -> None:
    """Record which leases have ended by now."""
    for number in transaction.ledger.overdue(now, list_clock_jumps()):
        trial = transaction.ledger.open[number]
        transaction.record(Event(EventKind.EXPIRED, now, number, trial.arm, trial.timeout_reward))


def _find_earlier(transaction: Transaction, request: AskRequest) -> list[Event]:
    """Return how the trials were asked that this key or unit got before."""
    return [] if request.note is None else transaction.asks_with_note(request.note)


def _hand_out_new(transaction: Transaction, request: AskRequest, now: float) -> list[Trial]:
    ledger, settings = transaction.ledger, transaction.ledger.settings
    expires = None if request.lease is None else now + request.lease
    fallback = settings.timeout_reward if request.timeout_reward is None else request.timeout_reward
    trials: list[Trial] = []
    first_block: int | None = None
    without_limit = request.unit is not None
    while len(trials) < request.wanted and (arm := ledger.next_arm(without_limit=without_limit)) is not None:
        number = ledger.asked + 1
        block = ledger.decision.next_block(arm)
        if settings.rounds and trials and block != first_block:
            break  # a round is one moment, and the next one another
        first_block = block
        event = Event(
            EventKind.ASKED,
            now,
            number,
            arm,
            fallback,
            True,
            expires,
            request.worker,
            request.note,
            block,
            tag=request.tag or make_tag(),
        )
        transaction.record(event)
        trials.append(_make_trial(settings, event))
    return trials


def _hand_to_unit(transaction: Transaction, request: AskRequest, last: Event | None, now: float) -> list[Trial]:
    """Return the unit's last trial if it is open or brought a reward, or else a new one, as far as there is one."""
    if last is None or last.arm in transaction.ledger.retired:
        return _hand_out_new(transaction, request, now)
    outcomes = transaction.events_of_trial(last.trial)[1:]
    known = [_make_trial(transaction.ledger.settings, last, told=bool(outcomes))]
    if not outcomes or any(event.reward is not None for event in outcomes):
        return known
    was_given_back = outcomes[-1].kind is EventKind.FAILED and not outcomes[-1].charged  # and perhaps never shown
    return _hand_out_new(transaction, request, now) or ([] if was_given_back else known)


def _make_trial(settings: Settings, event: Event, *, told: bool = False) -> Trial:
    return Trial(
        event.trial,
        settings.arms[event.arm],
        event.expires,
        read_unit(event.note),
        told,
        settings.name_block(event.block),
        event.tag,
    )


def record_outcome(
    transaction: Transaction,
    trial: TrialReference,
    reward: Any,
    charged: bool,
    now: float,
    price: Any = None,
    reason: str | None = None,
) -> None:
    """Record the reward of a trial, or its failure where `reward` is None; the rest is as in `Study.tell`."""
    ledger, number = transaction.ledger, get_trial_number(trial)
    pending = ledger.open.get(number)
    if isinstance(trial, Trial | TaggedNumber) and trial.tag is not None:
        _check_tag(transaction, number, trial.tag, pending)
    if number > ledger.asked:
        raise TrialNotFoundError(f"There is no trial {number}; trials asked so far: {ledger.asked}.")
    if pending is not None and pending.status is EventKind.ASKED:
        value = _check_reward(ledger.settings, number, pending.arm, reward)
        cost = _check_price(ledger.settings, number, pending.arm, price)
        kind = EventKind.FAILED if value is None else EventKind.TOLD
        note = None if reason is None else f"{REASON_NOTE}{reason}"
        transaction.record(Event(kind, now, number, pending.arm, value, charged, note=note, price=cost))
    else:
        _record_again(transaction, number, pending, reward, charged, now, price)


def _check_tag(transaction: Transaction, number: int, tag: str, pending: OpenTrial | None) -> None:
    """Check that a trial is the one that is stored under its number."""
    stored = pending or next(iter(transaction.events_of_trial(number)), None)
    if stored is None or stored.tag != tag:
        raise StaleTrialError(
            f"Trial {number} with the tag {tag!r} is not in this study: the study was restored from a backup, or "
            "copied, since that trial was asked, or it is another study. Nothing was recorded; ask for a new trial."
        )


def record_outcome_of_unit(
    transaction: Transaction, unit: str, reward: Any, charged: bool, now: float, price: Any, reason: str | None
) -> bool:
    """Record the outcome of a unit's trial, as `record_outcome` does; return whether it has one."""
    asked = transaction.asks_with_note(f"{UNIT_NOTE}{unit}")
    if not asked:
        return False
    last = transaction.events_of_trial(asked[-1].trial)[-1]
    if last.kind is EventKind.FAILED and not last.charged:  # it was given back
        return False
    record_outcome(transaction, last.trial, reward, charged, now, price, reason)
    return True


def give_back(transaction: Transaction, unit: str, tag: str, now: float) -> bool:
    """Give back a unit's trial at no charge if it is open and has this tag; return whether it does."""
    asked = transaction.asks_with_note(f"{UNIT_NOTE}{unit}")
    trial = transaction.ledger.open.get(asked[-1].trial) if asked and asked[-1].tag == tag else None
    if trial is None or trial.status is not EventKind.ASKED:
        return False
    note = f"{REASON_NOTE}granted too late to be shown"
    transaction.record(Event(EventKind.FAILED, now, asked[-1].trial, trial.arm, charged=False, note=note))
    return True


def give_up(
    transaction: Transaction,
    trials: Iterable[int] | None,
    worker: str | None,
    older_than: float | None,
    now: float,
    reason: str,
) -> int:
    """Record that pending trials failed, at no charge, as in `Study.give_up`; return how many."""
    expire(transaction, now)  # what the trial counts as then has been agreed
    ledger = transaction.ledger
    numbers = sorted(ledger.open if trials is None else set(trials))
    if numbers and numbers[-1] > ledger.asked:
        raise TrialNotFoundError(f"There is no trial {numbers[-1]}; trials asked so far: {ledger.asked}.")
    chosen = [
        (number, trial)
        for number in numbers
        if (trial := ledger.open.get(number)) is not None
        and trial.status is EventKind.ASKED
        and worker in (None, trial.worker)
        and now - trial.asked >= (older_than or 0.0)
    ]
    for number, trial in chosen:
        note = f"{REASON_NOTE}{reason}"
        transaction.record(Event(EventKind.FAILED, now, number, trial.arm, charged=False, note=note))
    return len(chosen)


def _record_again(
    transaction: Transaction, number: int, pending: OpenTrial | None, reward: Any, charged: bool, now: float, price: Any
) -> None:
    """Record an outcome for a trial that was told, failed or expired before."""
    history = transaction.events_of_trial(number)
    arm, outcome = history[0].arm, history[-1]
    settings = transaction.ledger.settings
    value, cost = _check_reward(settings, number, arm, reward), _check_price(settings, number, arm, price)
    if outcome.kind is EventKind.EXPIRED:
        if value is None:
            return  # it had been given up anyway
        # Neither replaced since, nor has the count gone on without it.
        in_time = pending is not None and outcome.reward is None and pending.asked_by_then == transaction.ledger.asked
        kind = EventKind.TOLD if in_time else EventKind.SURPLUS
        # A trial that counted as something when it expired was charged then.
        transaction.record(Event(kind, now, number, arm, value, outcome.reward is None, price=cost))
    elif (outcome.reward, outcome.price) != (value, cost) or (value is None and outcome.charged != charged):
        unit = read_unit(history[0].note)
        once = "" if unit is None or outcome.reward is None else f" Unit {unit!r} was counted already."
        raise AlreadyToldError(
            f"Trial {number} is already recorded as {_describe(settings, outcome)} "
            f"but got {_describe(settings, Event(outcome.kind, now, number, arm, value, charged, price=cost))}.{once}"
        )


def _describe(settings: Settings, outcome: Event) -> str:
    cost = "" if outcome.price is None else f" at {settings.money(outcome.price)}"
    if outcome.reward is not None:
        return f"{outcome.reward!r}{cost}"
    return f"failed{cost}" if outcome.charged else "failed and free"


def _check_reward(settings: Settings, number: int, arm: int, reward: Any) -> float | None:
    try:
        return None if reward is None else settings.check_reward("reward", reward)
    except InvalidValueError as refused:
        raise InvalidRewardError(f"Trial {number}, of {settings.arms[arm]}: {refused}") from None


def _check_price(settings: Settings, number: int, arm: int, price: Any) -> float | None:
    """Return a reported price in units of the loss; None if there is none."""
    try:
        return None if price is None else settings.check_price(price) / (settings.value or 1.0)
    except InvalidValueError as refused:
        raise InvalidValueError(f"Trial {number}, of {settings.arms[arm]}: {refused}") from None
