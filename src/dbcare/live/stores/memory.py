"""Studies in this process's memory: for trying things out, and for tests."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbcare.errors import StudyExistsError, StudyNotFoundError
from dbcare.live.events import Event
from dbcare.live.stores.base import PlacedEvent, Store, StoreSession


class _Kept(StoreSession):
    """All there is of one study."""

    def __init__(self, identity: int, plain: dict[str, Any]) -> None:
        super().__init__(identity)
        self.plain = plain
        self.events: list[Event] = []
        self.latest: tuple[int, dict[str, Any]] | None = None
        self.lock = threading.RLock()

    def since(self, position: int) -> list[PlacedEvent]:
        return list(enumerate(self.events[position:], start=position + 1))

    def of_trial(self, trial: int) -> list[Event]:
        return [event for event in self.events if event.trial == trial]

    def noted(self, note: str) -> list[Event]:
        return [event for event in self.events if event.note == note]

    def append(self, events: list[Event]) -> list[int]:
        first = len(self.events) + 1
        self.events += events
        return list(range(first, first + len(events)))

    def summary(self) -> tuple[int, dict[str, Any]] | None:
        return copy.deepcopy(self.latest)

    def save_summary(self, position: int, plain: dict[str, Any]) -> None:
        self.latest = position, copy.deepcopy(plain)


class MemoryStore(Store):
    """Nothing outlives the process."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()
        self._identities = itertools.count(1)

    def create(self, name: str, settings: dict[str, Any], at: float) -> None:
        with self._lock:
            if name in self._kept:
                raise StudyExistsError(f"A study must have a name of its own but got {name!r}, which exists.")
            self._kept[name] = _Kept(next(self._identities), copy.deepcopy(settings))

    def identity(self, name: str) -> int:
        return self._found(name).identity

    def settings(self, name: str) -> dict[str, Any]:
        return copy.deepcopy(self._found(name).plain)

    def names(self) -> list[str]:
        return list(self._kept)

    def delete(self, name: str) -> None:
        with self._lock:
            self._found(name)
            del self._kept[name]

    @contextmanager
    def session(self, name: str, *, write: bool) -> Iterator[StoreSession]:
        kept = self._found(name)
        with kept.lock:
            before, latest = len(kept.events), kept.latest
            try:
                yield kept
            except BaseException:
                del kept.events[before:]
                kept.latest = latest
                raise

    def close(self) -> None:
        """Nothing to let go of."""

    def _found(self, name: str) -> _Kept:
        if name not in self._kept:
            raise StudyNotFoundError(f"A study must be stored before it is used but got {name!r}, which is not.")
        return self._kept[name]
