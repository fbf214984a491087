"""A trial as it is handed out, and a reward with its price."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from dbcare.base import checks
from dbcare.studies.record.forks import renew_after_fork


@dataclass(frozen=True)
class Priced:
    """A value with what it cost; functions that `compare` or `Study.run` call return it to report their price.

    Parameters
    ----------
    value : object
        What the call is about: an arm's answer, a score, or a reward.
    price : float
        What the call cost, in the currency of the study or comparison.

    Examples
    --------
    >>> from dbcare import Priced
    >>> def ask_model(question):
    ...     tokens = 1_200
    ...     return Priced("The answer is 42.", price=tokens * 3e-6)
    >>> round(ask_model("What is the answer?").price, 6)
    0.0036
    """

    value: Any
    price: float


# How notes begin that are kept with events.
UNIT_NOTE, REASON_NOTE = "unit: ", "reason: "
MAX_REASON_LENGTH = 1000
MAX_TAG_LENGTH = 32
TAG_BITS = 32  # a stale trial has the tag of another one with a chance of 2^-32


@dataclass(frozen=True)
class Trial:
    """One observation to make, as `Study.ask` hands it out.

    Parameters
    ----------
    id : int
        The trial's number in its study: 1, 2, 3 and so on.
    arm : str
        The arm to observe.
    expires : float or None
        When the lease ends, in seconds since 1970 (UTC), as `time.time` counts them; None if it never does.
    unit : str or None
        Who or what it was asked for, as passed to `Study.ask`.
    told : bool
        Whether the unit came back after the trial's outcome had been recorded: show it the arm, and tell nothing.
    block : str or None
        The block that the trial belongs to, such as a question that all arms answer; None in a study without blocks.
    tag : str or None
        A random text that is stored with the trial. `Study.tell` compares both, since a study that is restored from a
        backup hands out the same numbers again. None in a trial that was made by hand, which is not compared.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("trial example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> trial = study.ask(lease=None)
    >>> trial
    Trial(id=1, arm='A', expires=None, unit=None, told=False, block=None)
    >>> study.tell(trial, 0.7)
    """

    id: int
    arm: str
    expires: float | None
    unit: str | None = None
    told: bool = False
    block: str | None = None
    tag: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class TaggedNumber:
    """A trial's number and its tag, for those who have nothing else of the trial: HTTP requests and scripts."""

    id: int
    tag: str | None


TrialReference = Trial | TaggedNumber | int  # how a trial is named by those who tell its outcome


@dataclass(frozen=True)
class AskRequest:
    """The arguments of `Study.ask`, checked; the lease is in seconds, None for no limit."""

    wanted: int
    lease: float | None
    worker: str | None = None
    timeout_reward: float | None = None
    key: str | None = None
    unit: str | None = None
    tag: str | None = None  # of the trial, if a new one is handed out; None for a random one

    @property
    def note(self) -> str | None:
        """The note under which the trials are stored, and found when the same key or unit asks again."""
        if self.unit is not None:
            return f"{UNIT_NOTE}{self.unit}"
        return None if self.key is None else f"key: {self.key}"


@dataclass(frozen=True)
class Observation:
    """A reward observed elsewhere, or None if there was none: of an arm by its index, in a block by its number.

    The price is in units of the loss, None for that of the arm; a note is kept with the outcome.
    """

    arm: int
    reward: float | None
    block: int | None = None
    price: float | None = None
    note: str | None = None


def read_unit(note: str | None) -> str | None:
    """Return the unit that a trial was asked for, from the note of its event."""
    return _read_note(note, UNIT_NOTE)


def read_reason(note: str | None) -> str | None:
    """Return why a trial failed, from the note of its event."""
    return _read_note(note, REASON_NOTE)


def _read_note(note: str | None, beginning: str) -> str | None:
    return None if note is None or not note.startswith(beginning) else note[len(beginning) :]


class _Numbers(random.Random):
    """Random numbers, seeded by the system; no two processes have the same.

    To ask the system for each number would let another thread go on, and a server's threads wait for each other then.
    """

    def renew(self) -> None:
        """Seed the numbers again in a child process."""
        self.seed()


_NUMBERS = _Numbers()
renew_after_fork(_NUMBERS)


def make_tag() -> str:
    """Return a random tag for a new trial."""
    return f"{_NUMBERS.getrandbits(TAG_BITS):0{TAG_BITS // 4}x}"


def get_trial_number(trial: TrialReference) -> int:
    """Return the number of a trial, which users pass as a `Trial` or as its number."""
    return checks.whole("trial", trial.id if isinstance(trial, Trial | TaggedNumber) else trial, at_least=1)
