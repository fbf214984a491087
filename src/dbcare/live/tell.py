"""What an answer means: it counts, it comes too late and is only recorded, or it contradicts an earlier one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbcare import validation
from dbcare.errors import AlreadyToldError, InvalidRewardError, InvalidValueError, StudyNotFoundError
from dbcare.live.events import Event, EventKind
from dbcare.live.ledger import OpenTrial
from dbcare.live.settings import Settings
from dbcare.live.synced_ledger import Transaction


@dataclass(frozen=True)
class Trial:
    """One observation to make: of `arm`, to be told until `expires` (seconds since 1970)."""

    id: int
    arm: str
    expires: float | None


def note_answer(turn: Transaction, trial: Trial | int, reward: Any, charged: bool, now: float) -> None:
    """Note the reward of a trial, or its failure where `reward` is None."""
    ledger, number = turn.ledger, number_of(trial)
    if number > ledger.asked:
        raise StudyNotFoundError(f"`trial` must be one of the {ledger.asked} that were asked but got {number}.")
    waiting = ledger.open.get(number)
    if isinstance(trial, Trial):
        arm = ledger.settings.arms[turn.of_trial(number)[0].arm if waiting is None else waiting.arm]
        if arm != trial.arm:
            raise InvalidValueError(f"`trial` must be of this study, {number} of {arm}, but got one of {trial.arm}.")
    if waiting is not None and waiting.status is EventKind.ASKED:
        value = _checked(ledger.settings, number, waiting.arm, reward)
        turn.note(
            Event(EventKind.FAILED if value is None else EventKind.TOLD, now, number, waiting.arm, value, charged)
        )
    else:
        _note_again(turn, number, waiting, reward, charged, now)


def _note_again(
    turn: Transaction, number: int, waiting: OpenTrial | None, reward: Any, charged: bool, now: float
) -> None:
    """An answer for a trial that was told, had failed, or had expired."""
    history = turn.of_trial(number)
    arm, outcome = history[0].arm, history[-1]
    value = _checked(turn.ledger.settings, number, arm, reward)
    if outcome.kind is EventKind.EXPIRED:
        if value is None:
            return  # it had been given up anyway
        # Neither replaced since, nor has the count gone on without it.
        in_time = waiting is not None and outcome.reward is None and waiting.asked_by_then == turn.ledger.asked
        # One that counted as something when it expired was charged then.
        turn.note(
            Event(EventKind.TOLD if in_time else EventKind.SURPLUS, now, number, arm, value, outcome.reward is None)
        )
    elif outcome.reward != value or (value is None and outcome.charged != charged):
        raise AlreadyToldError(
            f"Trial {number} must keep its first outcome, {_said(outcome.reward, outcome.charged)}, "
            f"but got {_said(value, charged)}."
        )


def number_of(trial: Trial | int) -> int:
    """Of a trial as users give it."""
    return trial.id if isinstance(trial, Trial) else validation.whole("trial", trial, at_least=1)


def _said(reward: float | None, charged: bool) -> str:
    if reward is not None:
        return f"{reward!r}"
    return "failed" if charged else "failed and free"


def _checked(settings: Settings, number: int, arm: int, reward: Any) -> float | None:
    try:
        return None if reward is None else settings.counted("reward", reward)
    except InvalidValueError as refused:
        raise InvalidRewardError(f"Trial {number}, of {settings.arms[arm]}: {refused}") from None
