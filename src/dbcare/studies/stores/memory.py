"""Studies in the memory of this process: for trying things out, and for tests."""

from __future__ import annotations

import copy
import itertools
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dbcare.errors import StudyExistsError, StudyNotFoundError
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.forks import Turnstile, suspend_for_fork
from dbcare.studies.stores.base import PlacedEvent, Standing, Store, StoreSession, StudyRecord

MAX_WAIT_SECONDS = 60.0  # for transactions to end before a fork


class _MemoryStudy(StoreSession):
    """Everything about one study."""

    def __init__(self, record: StudyRecord) -> None:
        super().__init__(record.identity)
        self.record = record
        self.events: list[Event] = []
        self.latest: tuple[int, dict[str, Any]] | None = None
        self.lock = threading.RLock()
        self._highest = 0  # number of a trial
        self._by_trial: defaultdict[int, list[Event]] = defaultdict(list)
        self._asks_by_note: defaultdict[str, list[Event]] = defaultdict(list)

    def events_after(self, position: int, limit: int | None = None) -> list[PlacedEvent]:
        end = None if limit is None else position + limit
        return list(enumerate(self.events[position:end], start=position + 1))

    def events_of_trials(self, first: int, last: int) -> list[Event]:
        highest = min(last, self._highest)
        return [event for trial in range(first, highest + 1) for event in self._by_trial.get(trial, ())]

    def asks_with_note(self, note: str) -> list[Event]:
        return list(self._asks_by_note.get(note, ()))

    def append(self, events: list[Event]) -> list[int]:
        first = len(self.events) + 1
        self.events += events
        for event in events:
            self._highest = max(self._highest, event.trial)
            self._by_trial[event.trial].append(event)
            if event.kind is EventKind.ASKED and event.note is not None:
                self._asks_by_note[event.note].append(event)
        return list(range(first, first + len(events)))

    def summary(self) -> tuple[int, dict[str, Any]] | None:
        return copy.deepcopy(self.latest)

    def save_summary(self, position: int, plain: dict[str, Any]) -> None:
        self.latest = position, copy.deepcopy(plain)

    def save_standing(self, standing: Standing) -> None:
        self.record = replace(self.record, standing=standing)

    def undo(self, count: int, latest: tuple[int, dict[str, Any]] | None, record: StudyRecord) -> None:
        """Take back everything after the first `count` events."""
        self.latest, self.record = latest, record
        if len(self.events) > count:
            kept, self.events = self.events[:count], []
            self._by_trial.clear()
            self._asks_by_note.clear()
            self.append(kept)


class MemoryStore(Store):
    """A store that ends with the process."""

    def __init__(self) -> None:
        self._studies: dict[str, _MemoryStudy] = {}
        self._lock = threading.Lock()
        self._identities = itertools.count(1)
        self._turnstile = Turnstile()
        suspend_for_fork(self)

    def suspend(self) -> None:
        """Wait until nothing is half written, so that a child process gets a sound copy."""
        self._turnstile.close(MAX_WAIT_SECONDS)

    def resume(self) -> None:
        """Resume in the parent."""
        self._turnstile.open()

    def renew(self) -> None:
        """Replace the locks in a child process."""
        self._turnstile = Turnstile()
        self._lock = threading.Lock()
        for study in self._studies.values():
            study.lock = threading.RLock()

    def create(
        self, name: str, settings: dict[str, Any], at: float, by: str | None = None, standing: Standing = Standing()
    ) -> None:
        with self._lock:
            if name in self._studies:
                raise StudyExistsError(f"Study {name!r} already exists.")
            record = StudyRecord(name, next(self._identities), copy.deepcopy(settings), at, by, standing)
            self._studies[name] = _MemoryStudy(record)

    def record(self, name: str) -> StudyRecord:
        study = self._get(name)
        with study.lock:  # what a session writes is not to be seen before it commits
            record = study.record
        return replace(record, settings=copy.deepcopy(record.settings))

    def names(self) -> list[str]:
        return list(self._studies)

    def delete(self, name: str) -> None:
        with self._lock:
            self._get(name)
            del self._studies[name]

    @contextmanager
    def session(self, name: str, *, write: bool) -> Iterator[StoreSession]:
        study = self._get(name)
        with self._turnstile.enter(), study.lock:
            if self._studies.get(name) is not study:  # deleted while this session waited for another
                raise StudyNotFoundError(f"Study {name!r} not found.")
            count, latest, record = len(study.events), study.latest, study.record
            try:
                yield study
            except BaseException:
                study.undo(count, latest, record)
                raise

    def close(self) -> None:
        """Do nothing: there are no connections."""

    def _get(self, name: str) -> _MemoryStudy:
        if name not in self._studies:
            raise StudyNotFoundError(f"Study {name!r} not found.")
        return self._studies[name]
