"""What happened in a study. Events are all that is stored; everything else follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EventKind(StrEnum):
    """What an event says."""

    ASKED = "asked"  # a trial of an arm was handed out, to be told until `expires`; it then counts as `reward`, if any
    TOLD = "told"  # its reward
    FAILED = "failed"  # it gave none; `charged` says whether it cost its price all the same
    EXPIRED = "expired"  # nobody told it in time; with a `reward`, that is what it counts as
    SURPLUS = "surplus"  # its reward came after it had expired and been replaced: recorded and charged
    PAUSED = "paused"
    RESUMED = "resumed"
    RETIRED = "retired"  # an arm was withdrawn; `note` is the reason
    STOPPED = "stopped"  # by a person; `note` is the reason


@dataclass(frozen=True)
class Event:
    """One thing that happened; `trial` is 0 where it is about the study as a whole."""

    kind: EventKind
    at: float  # seconds since 1970, UTC
    trial: int = 0
    arm: int = -1
    reward: float | None = None
    charged: bool = True
    expires: float | None = None
    worker: str | None = None
    note: str | None = None
