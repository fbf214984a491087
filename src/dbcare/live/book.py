"""A study's ledger, kept in step with its store: what others have written is read, what happens here is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dbcare.errors import StorageError, StudyNotFoundError
from dbcare.live.events import Event, Kind
from dbcare.live.ledger import Ledger
from dbcare.live.settings import Settings
from dbcare.live.store import Session, Store

SUMMARY_EVERY = 500  # events; opening a study replays about as many at most


class Turn:
    """A session, with the ledger as of now; events that are noted are stored when the turn ends, all or none."""

    def __init__(self, session: Session, ledger: Ledger) -> None:
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
        return any(event.kind is Kind.RETIRED for event in self.noted)

    def write(self) -> int | None:
        """Store what was noted; the position of the last event, if there was one."""
        return self.session.append(self.noted)[-1] if self.noted else None


class Book:
    """Turns on one study, one after the other, from any thread."""

    def __init__(self, store: Store, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self._store = store
        self._lock = threading.RLock()
        self._identity = store.identity(name)
        self._ledger: Ledger | None = None
        self._position = 0  # of the last event in the ledger
        self._summarised = 0  # of the last event in the stored summary

    @contextmanager
    def turn(self, *, write: bool) -> Iterator[Turn]:
        """Look at the study or, with `write`, have it to oneself and note what happens."""
        turn = None
        with self._lock:
            try:
                with self._store.session(self.name, write=write) as session:
                    self._expect_the_same(session)
                    turn = Turn(session, self._caught_up(session))
                    yield turn
                    position = turn.write()
                    if turn.retires:
                        self._ledger = None  # without that arm all is different from the beginning
                    elif position is not None:
                        self._position = position
                        self._summarise(session, turn.ledger)
            except BaseException:
                if turn is None or turn.noted:
                    self._ledger = None  # it may be ahead of what is stored: begin again from there
                raise

    def _expect_the_same(self, session: Session) -> None:
        if session.identity != self._identity:
            raise StudyNotFoundError(
                f"{self.name!r} must be the study that was opened, but that was deleted and another one made: "
                "load it again."
            )

    def _caught_up(self, session: Session) -> Ledger:
        if self._ledger is None:
            summary = session.summary()
            self._position = self._summarised = 0 if summary is None else summary[0]
            self._ledger = Ledger(self.settings) if summary is None else Ledger.from_dict(self.settings, summary[1])
        placed = session.since(self._position)
        if any(event.kind is Kind.RETIRED and event.arm not in self._ledger.retired for _, event in placed):
            self._ledger = Ledger.replay(self.settings, (event for _, event in session.since(0)))
        else:
            for _, event in placed:
                self._ledger.apply(event)
        if placed:
            self._position = placed[-1][0]
        return self._ledger

    def _summarise(self, session: Session, ledger: Ledger) -> None:
        if self._position - self._summarised >= SUMMARY_EVERY:
            session.save_summary(self._position, ledger.to_dict())
            self._summarised = self._position

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
