"""What an answer means: it counts, it comes too late and is only recorded, or it contradicts an earlier one."""

from __future__ import annotations

from typing import Any

from dbcare.errors import AlreadyToldError, InvalidRewardError, InvalidValueError, StudyNotFoundError
from dbcare.live.book import Turn
from dbcare.live.events import Event, Kind
from dbcare.live.ledger import Open
from dbcare.live.settings import Settings


def note_answer(turn: Turn, number: int, reward: Any, charged: bool, now: float) -> None:
    """Note the reward of a trial, or its failure where `reward` is None."""
    ledger = turn.ledger
    if number > ledger.asked:
        raise StudyNotFoundError(f"`trial` must be one of the {ledger.asked} that were asked but got {number}.")
    waiting = ledger.open.get(number)
    if waiting is not None and waiting.status is Kind.ASKED:
        value = _checked(ledger.settings, number, waiting.arm, reward)
        turn.note(Event(Kind.FAILED if value is None else Kind.TOLD, now, number, waiting.arm, value, charged))
    else:
        _note_again(turn, number, waiting, reward, now)


def _note_again(turn: Turn, number: int, waiting: Open | None, reward: Any, now: float) -> None:
    """An answer for a trial that was told, had failed, or had expired."""
    history = turn.of_trial(number)
    arm, outcome = history[0].arm, history[-1]
    value = _checked(turn.ledger.settings, number, arm, reward)
    if outcome.kind is Kind.EXPIRED:
        if value is None:
            return  # it had been given up anyway
        # Neither replaced since, nor has the count gone on without it.
        in_time = waiting is not None and outcome.reward is None and waiting.asked_by_then == turn.ledger.asked
        turn.note(Event(Kind.TOLD if in_time else Kind.SURPLUS, now, number, arm, value))
    elif (outcome.kind is Kind.FAILED) != (value is None) or outcome.reward != value:
        said = "failed" if outcome.reward is None else f"{outcome.reward:g}"
        raise AlreadyToldError(
            f"Trial {number} must keep its first outcome, {said}, but got "
            f"{'failed' if value is None else f'{value:g}'}."
        )


def _checked(settings: Settings, number: int, arm: int, reward: Any) -> float | None:
    try:
        return None if reward is None else settings.counted("reward", reward)
    except InvalidValueError as refused:
        raise InvalidRewardError(f"Trial {number}, of {settings.arms[arm]}: {refused}") from None
