"""Where studies are kept: a list of events for each, which only grows, and a summary that speeds up opening it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from dbcare.live.events import Event

# An event's position among those of its study: 1, 2, 3, without gaps.
PlacedEvent = tuple[int, Event]


class StoreSession(ABC):
    """A look at one study; what is appended is there for everyone once the session has ended well."""

    def __init__(self, identity: int) -> None:
        self.identity = identity  # another one for a study made anew under the same name

    @abstractmethod
    def since(self, position: int) -> list[PlacedEvent]:
        """The events behind `position`, in order."""

    @abstractmethod
    def of_trial(self, trial: int) -> list[Event]:
        """The events of one trial, in order."""

    @abstractmethod
    def noted(self, note: str) -> list[Event]:
        """The events with that note, in order."""

    @abstractmethod
    def append(self, events: list[Event]) -> list[int]:
        """Write events down; returns their positions. Only in a session for writing."""

    @abstractmethod
    def summary(self) -> tuple[int, dict[str, Any]] | None:
        """The latest summary, and the position of the last event in it."""

    @abstractmethod
    def save_summary(self, position: int, plain: dict[str, Any]) -> None:
        """Replace the summary. Only in a session for writing."""


class Store(ABC):
    """Studies by name; safe to use from several threads."""

    @abstractmethod
    def create(self, name: str, settings: dict[str, Any], at: float) -> None:
        """A new study without events; StudyExistsError if there is one of that name."""

    @abstractmethod
    def identity(self, name: str) -> int:
        """As `StoreSession.identity`."""

    @abstractmethod
    def settings(self, name: str) -> dict[str, Any]:
        """The settings it was created with; StudyNotFoundError if there is none."""

    @abstractmethod
    def names(self) -> list[str]:
        """All studies, the oldest first."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a study with all its events."""

    @abstractmethod
    def session(self, name: str, *, write: bool) -> AbstractContextManager[StoreSession]:
        """Begin a session; one for writing has the study to itself until it ends.

        An exception inside undoes everything that was written in it.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of connections; the store can be used again all the same."""
