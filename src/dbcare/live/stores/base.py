"""Where studies are kept: for each a list of events, which only grows, and a summary that speeds up opening it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from dbcare.live.events import Event

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
    >>> from dbcare.live.stores.memory import MemoryStore
    >>> store = MemoryStore()
    >>> store.create("ads", {"arms": ["A", "B"]}, at=0.0)
    >>> with store.session("ads", write=False) as session:
    ...     session.events_after(0)
    []
    """

    def __init__(self, identity: int) -> None:
        self.identity = identity

    @abstractmethod
    def events_after(self, position: int) -> list[PlacedEvent]:
        """Return the events after `position`, in order."""

    @abstractmethod
    def events_of_trials(self, first: int, last: int) -> list[Event]:
        """Return the events of trials `first` to `last`, trial by trial, each in order."""

    @abstractmethod
    def events_with_note(self, note: str) -> list[Event]:
        """Return the events with that note, in order."""

    @abstractmethod
    def append(self, events: list[Event]) -> list[int]:
        """Append events and return their positions. Only in a session for writing."""

    @abstractmethod
    def summary(self) -> tuple[int, dict[str, Any]] | None:
        """Return the position of the last event in the latest summary, and that summary; None without one."""

    @abstractmethod
    def save_summary(self, position: int, plain: dict[str, Any]) -> None:
        """Replace the summary. Only in a session for writing."""


class Store(ABC):
    """Studies by name; safe to use from several threads.

    A store of your own implements these methods and those of `StoreSession`, passes `dbcare.testing.StoreSuite`, and
    can then be passed as `storage` to `create_study` and the others, and to the service.

    Attributes
    ----------
    max_writers : int
        How many sessions for writing, of different studies, are worth opening at the same time.

    Examples
    --------
    >>> import dbcare
    >>> from dbcare.live.stores.memory import MemoryStore
    >>> store = MemoryStore()
    >>> study = dbcare.create_study("ads", arms=["A", "B"], cost=0.01, sigma=1.0, storage=store)
    >>> dbcare.list_studies(store)
    ['ads']
    """

    max_writers: int = 8

    @abstractmethod
    def create(self, name: str, settings: dict[str, Any], at: float) -> None:
        """Create a study without events; StudyExistsError if the name is taken. `at` is in seconds since 1970."""

    @abstractmethod
    def identity(self, name: str) -> int:
        """Return the study's identity, as in `StoreSession`; StudyNotFoundError if there is none."""

    @abstractmethod
    def settings(self, name: str) -> dict[str, Any]:
        """Return the settings the study was created with; StudyNotFoundError if there is none."""

    @abstractmethod
    def names(self) -> list[str]:
        """List all studies, oldest first."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a study with all its events; StudyNotFoundError if there is none."""

    @abstractmethod
    def session(self, name: str, *, write: bool) -> AbstractContextManager[StoreSession]:
        """Begin a session; one for writing has the study to itself until it ends.

        An exception inside undoes everything written in it. StudyNotFoundError if there is no such study.
        """

    @abstractmethod
    def close(self) -> None:
        """Release connections; the store can still be used and opens them again."""
