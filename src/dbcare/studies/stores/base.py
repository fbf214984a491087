"""What a store of studies must offer, and how a study stands, in one row."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from dbcare.errors import StudyNotFoundError
from dbcare.studies.record.events import Event
from dbcare.studies.stores.group_commit import GroupCommit

UNDECIDED = "undecided"  # the verdict while a study runs


@dataclass(frozen=True)
class Standing:
    """How a study stands; stored with the events it follows from, so that a list need not open every study.

    Parameters
    ----------
    state : str
        "running", "paused" or "stopped".
    asked, rewards : int
        Trials handed out, and rewards counted, as in `Status`.
    spent : float
        What trials have cost so far: in money where the study has a value, else in units of the loss.
    expected_loss : float or None
        What choosing that arm now is expected to lose, in the same unit, as of a little earlier while the study runs;
        None while too little is known.
    recommended : str
        The arm to choose as things stand; empty before any data.
    verdict : str
        The outcome in a few words, as in `Recommendation`.
    reason : str
        Why the study stopped; empty while it has not.
    curve : str
        Up to 40 points of the study's history, separated by commas: what was spent and, if known, the loss that the
        policy weighs.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("standing example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> [study.standing.state for study in dbcare.find_studies("standing example")]
    ['running']
    """

    state: str = "running"
    asked: int = 0
    rewards: int = 0
    spent: float = 0.0
    expected_loss: float | None = None
    recommended: str = ""
    verdict: str = UNDECIDED
    reason: str = ""
    curve: str = ""


# An event with its position among those of its study: 1, 2, 3, without gaps.
PlacedEvent = tuple[int, Event]


class StoreSession(ABC):
    """A view of one study; what is appended is visible to everyone once the session commits.

    Parameters
    ----------
    identity : int
        The study's identity: a study created again under the same name has a different one.

    Examples
    --------
    >>> from dbcare.studies.stores.memory import MemoryStore
    >>> store = MemoryStore()
    >>> store.create("ads", {"arms": ["A", "B"]}, at=0.0)
    >>> with store.session("ads", write=False) as session:
    ...     session.events_after(0)
    []
    """

    def __init__(self, identity: int) -> None:
        self.identity = identity

    @abstractmethod
    def events_after(self, position: int, limit: int | None = None) -> list[PlacedEvent]:
        """Return the events after `position`, in order; with a `limit`, the first so many of them."""

    @abstractmethod
    def events_of_trials(self, first: int, last: int) -> list[Event]:
        """Return the events of trials `first` to `last`, trial by trial, each in order."""

    @abstractmethod
    def asks_with_note(self, note: str) -> list[Event]:
        """Return the events of kind ASKED with that note, in order."""

    @abstractmethod
    def append(self, events: list[Event]) -> list[int]:
        """Append events and return their positions. Only in a session for writing."""

    @abstractmethod
    def summary(self) -> tuple[int, dict[str, Any]] | None:
        """Return the position of the last event in the latest summary, and that summary; None without one."""

    @abstractmethod
    def save_summary(self, position: int, plain: dict[str, Any]) -> None:
        """Replace the summary. Only in a session for writing."""

    @abstractmethod
    def save_standing(self, standing: Standing) -> None:
        """Replace the standing, which `Store.find` returns. Only in a session for writing."""


@dataclass(frozen=True)
class StudyRecord:
    """What a store knows of a study without reading its events.

    Parameters
    ----------
    name : str
        The study's name.
    identity : int
        As in `StoreSession`.
    settings : dict
        What the study was created with.
    created : float
        When, in seconds since 1970.
    created_by : str or None
        Name of the key it was created with.
    standing : Standing
        How it stands.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("record example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> dbcare.find_studies("record example")[0].settings["arms"]
    ('A', 'B')
    """

    name: str
    identity: int
    settings: dict[str, Any]
    created: float
    created_by: str | None
    standing: Standing

    @property
    def currency(self) -> str | None:
        """The currency of amounts; None where they are in units of the loss."""
        return None if self.settings.get("value") is None else str(self.settings.get("currency"))


class Store(ABC):
    """Studies by name; safe to use from several threads.

    A store of your own implements these methods and those of `StoreSession`, passes `dbcare.testing.StoreSuite`, and
    can then be passed as `storage` to `create_study` and the others, and to the service.

    Attributes
    ----------
    max_writers : int
        How many sessions for writing, of different studies, are worth opening at the same time.
    max_wait : float
        Seconds that a change may wait for its turn in this process and still be tried if those before it have failed.
    stored, failed : float
        When a change was last stored here, and when one last failed because of the store, by `time.monotonic`.
    commits : GroupCommit or None
        Groups the changes of all studies in common commits; such a store implements `group`. Default: each study has
        commits of its own.

    Examples
    --------
    >>> import dbcare
    >>> from dbcare.studies.stores.memory import MemoryStore
    >>> store = MemoryStore()
    >>> study = dbcare.create_study("ads", arms=["A", "B"], cost=0.01, sigma=1.0, storage=store)
    >>> dbcare.list_studies(store)
    ['ads']
    """

    max_writers: int = 8
    max_wait: float = math.inf
    stored: float = -math.inf
    failed: float = -math.inf
    commits: GroupCommit | None = None

    @abstractmethod
    def create(
        self, name: str, settings: dict[str, Any], at: float, by: str | None = None, standing: Standing = Standing()
    ) -> None:
        """Create a study without events; StudyExistsError if the name is taken.

        `at` is when, in seconds since 1970; `standing` is that of the new study, and `by` the key it is created with.
        """

    @abstractmethod
    def record(self, name: str) -> StudyRecord:
        """Return what is known of a study without its events; StudyNotFoundError if there is none."""

    @abstractmethod
    def names(self) -> list[str]:
        """List all studies, oldest first."""

    def find(
        self, search: str = "", *, after: str | None = None, limit: int | None = None, by_state: bool = False
    ) -> list[StudyRecord]:
        """List the studies whose name contains `search`, whatever the case of its letters: oldest first.

        With `by_state`, running studies come first, then paused and stopped ones, each newest first. `after` is the
        last study of the page before (StudyNotFoundError if it is gone), and `limit` how many to return.
        """
        names = [name for name in self.names() if search.casefold() in name.casefold()]
        records = [record for name in names if (record := self._find(name)) is not None]
        if by_state:
            records.reverse()
            records.sort(key=lambda record: STATES.index(record.standing.state))
        if after is not None:
            self.record(after)
            found = [record.name for record in records]
            records = records[found.index(after) + 1 :] if after in found else []
        return records[:limit]

    def _find(self, name: str) -> StudyRecord | None:
        """Return a study's record; None if it was deleted since it was listed."""
        try:
            return self.record(name)
        except StudyNotFoundError:
            return None

    def count(self, search: str = "") -> int:
        """Count the studies whose name contains `search`."""
        return sum(search.casefold() in name.casefold() for name in self.names())

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a study with all its events; StudyNotFoundError if there is none."""

    @abstractmethod
    def session(self, name: str, *, write: bool) -> AbstractContextManager[StoreSession]:
        """Begin a session; one for writing has the study to itself until it ends.

        An exception inside undoes everything written in it. StudyNotFoundError if there is no such study.
        """

    @contextmanager
    def group(self, names: Sequence[str]) -> Iterator[dict[str, StoreSession]]:
        """Begin sessions for writing in several studies that commit together; studies that do not exist are left out.

        A store without common commits gets one name at a time.
        """
        (name,) = names
        with self.session(name, write=True) as session:
            yield {name: session}

    def try_write(self) -> None:
        """Write something that changes nothing, as a change of a study would; StorageError if that fails.

        The service calls it now and then to find out whether it could store something. Default: only read.
        """
        self.count()

    @abstractmethod
    def close(self) -> None:
        """Release connections; the store can still be used and opens them again."""


STATES = ("running", "paused", "stopped")
