"""What happened in a study. Events are all that is stored; everything else follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EventKind(StrEnum):
    """What an event says.

    Examples
    --------
    >>> from dbcare.studies import EventKind
    >>> str(EventKind.TOLD)
    'told'
    """

    ASKED = "asked"  # a trial was handed out until `expires`; then it counts as `reward`, if there is one
    TOLD = "told"  # the trial's reward
    FAILED = "failed"  # the trial gave no reward; `charged` says whether it cost its price anyway
    EXPIRED = "expired"  # the lease ended; with a `reward`, that is what the trial counts as
    SURPLUS = "surplus"  # the reward arrived after the trial had expired and been replaced: recorded and charged
    PAUSED = "paused"
    RESUMED = "resumed"
    RETIRED = "retired"  # an arm was withdrawn; `note` is the reason
    STOPPED = "stopped"  # by a person; `note` is the reason
    DESCRIBED = "described"  # `note` is the new description, if any
    LIMITED = "limited"  # `number` trials may be pending; None for the default
    REFUSED = "refused"  # `number` more asks got no trial, for the reason in `note`


@dataclass(frozen=True, slots=True)  # thousands are in memory at a time
class Event:
    """One thing that happened; `trial` is 0 where it concerns the study as a whole.

    Parameters
    ----------
    kind : EventKind
        What happened.
    at : float
        When, in seconds since 1970.
    trial : int
        The trial's number.
    arm : int
        The arm's index in the settings, or -1.
    reward, charged, expires, worker, note, number
        As `EventKind` says.
    block : int or None
        The policy's number of the block that a trial was asked for, from 0; None where trials have no blocks.
    tag : str or None
        A random text that tells a trial from another one of the same number, as in `Trial`; None for events other than
        ASKED, and for observations made elsewhere.
    price : float or None
        What the trial cost, in units of the loss, as reported with its outcome; None for its arm's stated price.

    Examples
    --------
    >>> from dbcare.studies.record.events import Event, EventKind
    >>> Event(EventKind.TOLD, at=0.0, trial=1, arm=0, reward=0.7).reward
    0.7
    """

    kind: EventKind
    at: float
    trial: int = 0
    arm: int = -1
    reward: float | None = None
    charged: bool = True
    expires: float | None = None
    worker: str | None = None
    note: str | None = None
    block: int | None = None
    price: float | None = None
    number: int | None = None
    tag: str | None = None
