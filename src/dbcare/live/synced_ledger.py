"""A study's ledger, kept in step with its store: what others have written is read, what happens here is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dbcare.errors import InvalidValueError, StorageError, StudyNotFoundError
from dbcare.live.events import Event, EventKind
from dbcare.live.ledger import Ledger
from dbcare.live.settings import Settings
from dbcare.live.stores.base import PlacedEvent, Store, StoreSession

SUMMARY_EVERY = 500  # events; opening a study replays about as many at most


class Transaction:
    """A session, with the ledger as of now; events that are noted are stored when the turn ends, all or none."""

    def __init__(self, session: StoreSession, ledger: Ledger) -> None:
        self.session = session
        self.ledger = ledger
        self.noted: list[Event] = []

    def note(self, event: Event) -> None:
        """Something that happened just now."""
        self.noted.append(event)
        self.ledger.apply(event)

    def of_trial(self, trial: int) -> list[Event]:
        """All that happened to a trial."""
        return self.session.of_trial(trial) + [event for event in self.noted if event.trial == trial]

    @property
    def retires(self) -> bool:
        """Whether an arm is withdrawn in it."""
        return any(event.kind is EventKind.RETIRED for event in self.noted)

    def write(self) -> PlacedEvent | None:
        """Store what was noted; the last event with its position, if there was one."""
        return (self.session.append(self.noted)[-1], self.noted[-1]) if self.noted else None


class SyncedLedger:
    """Turns on one study, one after the other, from any thread."""

    def __init__(self, store: Store, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self._store = store
        self._lock = threading.RLock()
        self._identity = store.identity(name)
        self._ledger: Ledger | None = None
        self._last: tuple[int, Event | None] = (0, None)  # the last event in the ledger, as far as it is known
        self._summarised = 0  # of the last event in the stored summary

    @contextmanager
    def turn(self, *, write: bool) -> Iterator[Transaction]:
        """Look at the study or, with `write`, have it to oneself and note what happens."""
        turn = None
        with self._lock:
            try:
                with self._store.session(self.name, write=write) as session:
                    self._expect_the_same(session)
                    turn = Transaction(session, self._caught_up(session))
                    yield turn
                    placed = turn.write()
                    if placed is not None:
                        self._last = placed
                        if turn.retires:  # without that arm all is different from the beginning
                            self._ledger = Ledger.replay(self.settings, (event for _, event in session.since(0)))
                            self._summarised = -SUMMARY_EVERY
                        self._summarise(session)
            except BaseException:
                if turn is None or turn.noted:
                    self._ledger = None  # it may be ahead of what is stored: begin again from there
                raise

    def _expect_the_same(self, session: StoreSession) -> None:
        if session.identity != self._identity:
            raise StudyNotFoundError(
                f"{self.name!r} must be the study that was opened, but that was deleted and another one made: "
                "load it again."
            )

    def _caught_up(self, session: StoreSession) -> Ledger:
        if self._ledger is None:
            self._open(session)
        elif not self._follow(session):  # an older backup may have been put in its place
            self._ledger = None
            self._open(session)
        assert self._ledger is not None
        return self._ledger

    def _open(self, session: StoreSession) -> None:
        """From the stored summary if it fits, else from all events."""
        summary = session.summary()
        if summary is not None:
            try:
                self._ledger = Ledger.from_dict(self.settings, summary[1])
            except (InvalidValueError, LookupError, TypeError, ValueError):
                self._ledger = None  # made by another version: it is only there to save time
            self._last, self._summarised = (summary[0], None), summary[0]
            if self._ledger is not None and self._follow(session):
                return
        placed = session.since(0)
        self._ledger = Ledger.replay(self.settings, (event for _, event in placed))
        self._last, self._summarised = placed[-1] if placed else (0, None), 0

    def _follow(self, session: StoreSession) -> bool:
        """Take in what is new; False if what was known is not what is stored."""
        assert self._ledger is not None
        position, known = self._last
        placed = session.since(max(0, position - 1))
        if position:
            if not placed or placed[0][0] != position or (known is not None and placed[0][1] != known):
                return False
            del placed[0]
        if any(event.kind is EventKind.RETIRED for _, event in placed):
            placed = session.since(0)
            self._ledger = Ledger.replay(self.settings, (event for _, event in placed))
        else:
            for _, event in placed:
                self._ledger.apply(event)
        if placed:
            self._last = placed[-1]
        return True

    def _summarise(self, session: StoreSession) -> None:
        assert self._ledger is not None
        if self._last[0] - self._summarised >= SUMMARY_EVERY:
            session.save_summary(self._last[0], self._ledger.to_dict())
            self._summarised = self._last[0]

    def check(self) -> int:
        """Replay all events and compare with the stored summary; an error says what differs. The number of events."""
        with self._store.session(self.name, write=False) as session:
            summary, placed = session.summary(), session.since(0)
        expected = max(len(placed), 0 if summary is None else summary[0])
        if [position for position, _ in placed] != list(range(1, expected + 1)):
            raise StorageError(f"{self.name!r} must have events 1 to {expected} but lacks some of them.")
        if summary is not None:
            replayed = Ledger.replay(self.settings, (event for position, event in placed if position <= summary[0]))
            plain = replayed.to_dict()
            if differing := [key for key in plain if plain[key] != summary[1].get(key)]:
                raise StorageError(
                    f"The summary of {self.name!r} must follow from its events but has another {differing[0]}."
                )
        return len(placed)
