"""The conformance suite for stores of live studies: memory, SQLite, PostgreSQL, and yours.

Subclass it in a test file and say how to make an empty store; pytest runs every check on a new one.

    from dbcare.live.memory import MemoryStore
    from dbcare.testing.store_suite import StoreSuite


    class TestMemory(StoreSuite):
        def make(self) -> MemoryStore:
            return MemoryStore()
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from dbcare.errors import DbcareError, StudyExistsError, StudyNotFoundError
from dbcare.live.events import Event, Kind
from dbcare.live.store import Store

SETTINGS: dict[str, Any] = {"arms": ["A", "B"], "cost": 0.5, "note": 'a "quote", \N{SNOWMAN}, 1e-300'}
EVENTS = [
    Event(Kind.ASKED, 1.5, 1, 0, expires=2.25, worker="w \N{SNOWMAN}"),
    Event(Kind.TOLD, 1.75, 1, 0, 0.1 + 0.2),
    Event(Kind.ASKED, 2.0, 2, 1),
    Event(Kind.FAILED, 3.0, 2, 1, None, charged=False),
    Event(Kind.STOPPED, 4.0, note="enough"),
]


def _raised_by(attempt: Callable[[], object]) -> type[Exception] | None:
    try:
        attempt()
    except DbcareError as raised:
        return type(raised)
    return None


class StoreSuite:
    """Checks of what every store promises; subclasses define `make`."""

    store: Store | None = None

    def teardown_method(self) -> None:
        """Called by pytest after each check."""
        if self.store is not None:
            self.store.close()

    def make(self) -> Store:
        """A store without studies."""
        raise NotImplementedError("define `make` in a subclass")

    def filled(self) -> Store:
        """A store with two studies, one of them with events."""
        store = self.store = self.make()
        for name in ("one", "two"):
            store.create(name, SETTINGS, 1.0)
        with store.session("one", write=True) as session:
            session.append(EVENTS)
        return store

    def test_what_is_stored_comes_back(self) -> None:
        """Settings and events, to the last bit, in order."""
        store = self.filled()
        assert store.names() == ["one", "two"]
        assert store.settings("one") == SETTINGS
        with store.session("one", write=False) as session:
            placed = session.since(0)
            assert [event for _, event in placed] == EVENTS
            assert [position for position, _ in placed] == sorted({position for position, _ in placed})
            assert [event for _, event in session.since(placed[1][0])] == EVENTS[2:]
            assert session.of_trial(2) == EVENTS[2:4]
        with store.session("two", write=False) as session:
            assert session.since(0) == []

    def test_names_are_unique_and_must_exist(self) -> None:
        """Creating twice, and using what is not there, are errors that change nothing."""
        store = self.filled()
        for attempt, error in (
            (lambda: store.create("one", {}, 2.0), StudyExistsError),
            (lambda: store.settings("three"), StudyNotFoundError),
            (lambda: store.delete("three"), StudyNotFoundError),
            (lambda: store.session("three", write=False).__enter__(), StudyNotFoundError),
            (lambda: store.session("three", write=True).__enter__(), StudyNotFoundError),
        ):
            assert error is _raised_by(attempt)
        assert store.settings("one") == SETTINGS

    def test_positions_are_those_that_append_gave(self) -> None:
        """So that a reader knows what it has seen."""
        store = self.filled()
        with store.session("two", write=True) as session:
            given = session.append(EVENTS[:2])
            given += session.append(EVENTS[2:3])
        with store.session("two", write=False) as session:
            assert [position for position, _ in session.since(0)] == given

    def test_an_exception_undoes_a_session(self) -> None:
        """Nothing half-written is left behind."""
        store = self.filled()
        try:
            with store.session("one", write=True) as session:
                session.append(EVENTS)
                session.save_summary(7, {"a": 1})
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        with store.session("one", write=False) as session:
            assert len(session.since(0)) == len(EVENTS)
            assert session.summary() is None

    def test_a_summary_replaces_the_one_before(self) -> None:
        """One for each study."""
        store = self.filled()
        for position in (3, 5):
            with store.session("one", write=True) as session:
                session.save_summary(position, {"state": [position, 0.1]})
        with store.session("one", write=False) as session:
            assert session.summary() == (5, {"state": [5, 0.1]})
        with store.session("two", write=False) as session:
            assert session.summary() is None

    def test_deleting_leaves_the_others_alone(self) -> None:
        """And the name is free again."""
        store = self.filled()
        store.delete("one")
        assert store.names() == ["two"]
        store.create("one", SETTINGS, 5.0)
        with store.session("one", write=False) as session:
            assert session.since(0) == []

    def test_sessions_for_writing_take_turns(self) -> None:
        """Eight threads that each read the number of events and write it down: no number twice."""
        store = self.filled()

        def work() -> None:
            for _ in range(10):
                with store.session("two", write=True) as session:
                    known = len(session.since(0))
                    session.append([Event(Kind.ASKED, 0.0, known + 1, 0)])

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with store.session("two", write=False) as session:
            assert [event.trial for _, event in session.since(0)] == list(range(1, 81))
