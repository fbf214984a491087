"""One observation to make, and the request for it."""

from __future__ import annotations

from dataclasses import dataclass

from dbcare import validation

# How notes begin that are kept with events.
UNIT_NOTE, REASON_NOTE = "unit: ", "reason: "
MAX_REASON_LENGTH = 1000
MAX_TAG_LENGTH = 32


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


@dataclass(frozen=True)
class AskRequest:
    """The arguments of `Study.ask`, checked; the lease is in seconds, None for no limit."""

    wanted: int
    lease: float | None
    worker: str | None = None
    timeout_reward: float | None = None
    key: str | None = None
    unit: str | None = None
    tag: str | None = None  # of the trial, if a new one is handed out

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


def get_trial_number(trial: Trial | int) -> int:
    """Return the number of a trial, which users pass as a `Trial` or as its number."""
    return validation.whole("trial", trial.id if isinstance(trial, Trial) else trial, at_least=1)
