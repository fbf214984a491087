"""Studies in the memory of this process: for trying things out, and for tests."""

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


class _MemoryStudy(StoreSession):
    """Everything about one study."""

    def __init__(self, identity: int, plain: dict[str, Any]) -> None:
        super().__init__(identity)
        self.plain = plain
        self.events: list[Event] = []
        self.latest: tuple[int, dict[str, Any]] | None = None
        self.lock = threading.RLock()

    def events_after(self, position: int) -> list[PlacedEvent]:
        return list(enumerate(self.events[position:], start=position + 1))

    def events_of_trials(self, first: int, last: int) -> list[Event]:
        chosen = (event for event in self.events if first <= event.trial <= last)
        return sorted(chosen, key=lambda event: event.trial)

    def events_with_note(self, note: str) -> list[Event]:
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
    """A store that ends with the process."""

    def __init__(self) -> None:
        self._studies: dict[str, _MemoryStudy] = {}
        self._lock = threading.Lock()
        self._identities = itertools.count(1)

    def create(self, name: str, settings: dict[str, Any], at: float) -> None:
        with self._lock:
            if name in self._studies:
                raise StudyExistsError(f"Study {name!r} already exists.")
            self._studies[name] = _MemoryStudy(next(self._identities), copy.deepcopy(settings))

    def identity(self, name: str) -> int:
        return self._find(name).identity

    def settings(self, name: str) -> dict[str, Any]:
        return copy.deepcopy(self._find(name).plain)

    def names(self) -> list[str]:
        return list(self._studies)

    def delete(self, name: str) -> None:
        with self._lock:
            self._find(name)
            del self._studies[name]

    @contextmanager
    def session(self, name: str, *, write: bool) -> Iterator[StoreSession]:
        study = self._find(name)
        with study.lock:
            if self._studies.get(name) is not study:  # deleted while this session waited for another
                raise StudyNotFoundError(f"Study {name!r} not found.")
            count, latest = len(study.events), study.latest
            try:
                yield study
            except BaseException:
                del study.events[count:]
                study.latest = latest
                raise

    def close(self) -> None:
        """Do nothing: there are no connections."""

    def _find(self, name: str) -> _MemoryStudy:
        if name not in self._studies:
            raise StudyNotFoundError(f"Study {name!r} not found.")
        return self._studies[name]
