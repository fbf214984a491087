"""A study's ledger kept in step with its store: reads what others wrote, and writes what happens here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbcare.errors import InvalidValueError, StorageError, StudyNotFoundError
from dbcare.live.events import Event, EventKind
from dbcare.live.ledger import Ledger
from dbcare.live.settings import Settings
from dbcare.live.stores.base import PlacedEvent, Store, StoreSession

EVENTS_PER_SUMMARY = 500  # opening a study replays at most about this many


class Transaction:
    """A session with the ledger as of now; recorded events are stored when the transaction ends, all or none."""

    def __init__(self, session: StoreSession, ledger: Ledger) -> None:
        self.session = session
        self.ledger = ledger
        self.recorded: list[Event] = []

    def record(self, event: Event) -> None:
        """Record something that happened just now."""
        self.recorded.append(event)
        self.ledger.apply(event)

    def events_of_trial(self, trial: int) -> list[Event]:
        """Return everything that happened to a trial."""
        return self.session.events_of_trials(trial, trial) + [event for event in self.recorded if event.trial == trial]

    @property
    def retires_an_arm(self) -> bool:
        """Whether an arm is retired in this transaction."""
        return any(event.kind is EventKind.RETIRED for event in self.recorded)

    def write(self) -> PlacedEvent | None:
        """Store what was recorded; return the last event with its position, if there was one."""
        return (self.session.append(self.recorded)[-1], self.recorded[-1]) if self.recorded else None


class SyncedLedger:
    """Transactions on one study, one after the other, from any thread."""

    def __init__(self, store: Store, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self._store = store
        self._lock = threading.RLock()
        self._identity = store.identity(name)
        self._ledger: Ledger | None = None
        self._last: tuple[int, Event | None] = (0, None)  # the last event in the ledger, as far as it is known
        self._summarized = 0  # position of the last event in the stored summary

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Read the study or, with `write`, lock it and record what happens."""
        transaction = None
        with self._lock:
            try:
                with self._store.session(self.name, write=write) as session:
                    self._check_identity(session)
                    transaction = Transaction(session, self._catch_up(session))
                    yield transaction
                    placed = transaction.write()
                    if placed is not None:
                        self._last = placed
                        if transaction.retires_an_arm:  # without that arm everything differs from the beginning
                            events = (event for _, event in session.events_after(0))
                            self._ledger = Ledger.replay(self.settings, events)
                            self._summarized = -EVENTS_PER_SUMMARY
                        self._save_summary(session)
            except BaseException:
                if transaction is None or transaction.recorded:
                    self._ledger = None  # it may be ahead of what is stored: start again from there
                raise

    def _check_identity(self, session: StoreSession) -> None:
        if session.identity != self._identity:
            raise StudyNotFoundError(f"Study {self.name!r} was deleted and re-created; load it again.")

    def _catch_up(self, session: StoreSession) -> Ledger:
        if self._ledger is None:
            self._open(session)
        elif not self._follow(session):  # the database may have been replaced by an older backup
            self._ledger = None
            self._open(session)
        assert self._ledger is not None
        return self._ledger

    def _open(self, session: StoreSession) -> None:
        """Restore the ledger from the stored summary if it fits, else from all events."""
        summary = session.summary()
        if summary is not None:
            try:
                self._ledger = Ledger.from_dict(self.settings, summary[1])
            except (InvalidValueError, LookupError, TypeError, ValueError):
                self._ledger = None  # written by another version: it only saves time
            self._last, self._summarized = (summary[0], None), summary[0]
            if self._ledger is not None and self._follow(session):
                return
        placed = session.events_after(0)
        self._ledger = Ledger.replay(self.settings, (event for _, event in placed))
        self._last, self._summarized = placed[-1] if placed else (0, None), 0

    def _follow(self, session: StoreSession) -> bool:
        """Apply what is new; return False if what was known is not what is stored."""
        assert self._ledger is not None
        position, last = self._last
        placed = session.events_after(max(0, position - 1))
        if position:
            if not placed or placed[0][0] != position or (last is not None and placed[0][1] != last):
                return False
            del placed[0]
        if any(event.kind is EventKind.RETIRED for _, event in placed):
            placed = session.events_after(0)
            self._ledger = Ledger.replay(self.settings, (event for _, event in placed))
        else:
            for _, event in placed:
                self._ledger.apply(event)
        if placed:
            self._last = placed[-1]
        return True

    def _save_summary(self, session: StoreSession) -> None:
        assert self._ledger is not None
        if self._last[0] - self._summarized >= EVENTS_PER_SUMMARY:
            session.save_summary(self._last[0], self._ledger.to_dict())
            self._summarized = self._last[0]

    def check(self) -> int:
        """Replay all events and compare with the stored summary; return their number, or raise what differs."""
        with self._store.session(self.name, write=False) as session:
            summary, placed = session.summary(), session.events_after(0)
        expected = max(len(placed), 0 if summary is None else summary[0])
        if [position for position, _ in placed] != list(range(1, expected + 1)):
            raise StorageError(f"Study {self.name!r} must have events 1 to {expected} but some are missing.")
        if summary is not None:
            replayed = Ledger.replay(self.settings, (event for position, event in placed if position <= summary[0]))
            plain, stored = _without_texts(replayed.to_dict()), _without_texts(summary[1])
            if differing := [key for key in plain if plain[key] != stored.get(key)]:
                raise StorageError(
                    f"The summary of study {self.name!r} does not follow from its events: {differing[0]} differs."
                )
        return len(placed)


def _without_texts(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a summary without the sentences in it, which another version may word differently."""
    run = (plain.get("decision") or {}).get("run")
    if not run:
        return plain
    events = [{**event, "text": ""} for event in run["events"]]
    return {**plain, "decision": {**plain["decision"], "run": {**run, "events": events}}}
