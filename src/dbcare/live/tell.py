"""What an outcome means: it counts, it arrives too late and is only recorded, or it contradicts an earlier one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dbcare.errors import (
    AlreadyToldError,
    InvalidRewardError,
    InvalidValueError,
    StaleTrialError,
    TrialNotFoundError,
)
from dbcare.live.ask import expire
from dbcare.live.events import Event, EventKind
from dbcare.live.ledger import OpenTrial
from dbcare.live.settings import Settings
from dbcare.live.transaction import Transaction
from dbcare.live.trial import REASON_NOTE, UNIT_NOTE, TaggedNumber, Trial, TrialReference, get_trial_number, read_unit


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
