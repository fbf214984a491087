"""The conformance suite for stores of live studies: memory, SQLite, PostgreSQL, and yours.

Subclass it in a test file and say how to make an empty store, and how others get at what it keeps; pytest runs every
check on a new one.

    from dbcare.live.stores.memory import MemoryStore
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
from dbcare.live.events import Event, EventKind
from dbcare.live.stores.base import Store

SETTINGS: dict[str, Any] = {"arms": ["A", "B"], "cost": 0.5, "note": 'a "quote", \N{SNOWMAN}, 1e-300'}
EVENTS = [
    Event(EventKind.ASKED, 1.5, 1, 0, expires=2.25, worker="w \N{SNOWMAN}"),
    Event(EventKind.TOLD, 1.75, 1, 0, 0.1 + 0.2),
    Event(EventKind.ASKED, 2.0, 2, 1),
    Event(EventKind.FAILED, 3.0, 2, 1, None, charged=False),
    Event(EventKind.STOPPED, 4.0, note="enough"),
]
EXTREMES = [5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 1 / 3, 123456789.12345679, 2.0**53]


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

    def another(self) -> Store | None:
        """A second store on what the first one keeps, as another process would open it; None if there is no such."""
        return None

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
            placed = session.events_after(0)
            assert [event for _, event in placed] == EVENTS
            assert [position for position, _ in placed] == sorted({position for position, _ in placed})
            assert [event for _, event in session.events_after(placed[1][0])] == EVENTS[2:]
            assert session.events_of_trial(2) == EVENTS[2:4]
        with store.session("two", write=False) as session:
            assert session.events_after(0) == []

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

    def test_events_are_found_by_their_note(self) -> None:
        """Of this study only, in order."""
        store = self.filled()
        with store.session("two", write=True) as session:
            session.append(
                [Event(EventKind.ASKED, 1.0, 1, 0, note="key"), Event(EventKind.ASKED, 1.0, 2, 1, note="key")]
            )
            assert session.events_with_note("key") == [event for _, event in session.events_after(0)]
            assert session.events_with_note("enough") == []
        with store.session("one", write=False) as session:
            assert session.events_with_note("enough") == EVENTS[-1:]

    def test_a_study_made_anew_is_another_one(self) -> None:
        """Though it has the name of one that was deleted."""
        store = self.filled()
        known = {store.identity(name) for name in ("one", "two")}
        store.delete("two")
        store.create("two", SETTINGS, 5.0)
        assert len(known | {store.identity("two")}) == 3
        with store.session("two", write=False) as session:
            assert session.identity == store.identity("two")

    def test_positions_are_those_that_append_gave(self) -> None:
        """So that a reader knows what it has seen."""
        store = self.filled()
        with store.session("two", write=True) as session:
            given = session.append(EVENTS[:2])
            given += session.append(EVENTS[2:3])
        with store.session("two", write=False) as session:
            assert [position for position, _ in session.events_after(0)] == given

    def test_numbers_and_texts_are_kept_as_they_are(self) -> None:
        """To the last bit, from the smallest number to the largest; only the sign of zero may be lost."""
        store = self.filled()
        listed = [Event(EventKind.TOLD, value, 1, 0, value, expires=-value, worker="w" * 5000) for value in EXTREMES]
        listed.append(Event(EventKind.TOLD, 0.0, 2**31 - 1, 0, -0.0, note="a\nb\t'\"%s ? :x \N{GRINNING FACE}"))
        with store.session("two", write=True) as session:
            session.append(listed)
        with store.session("two", write=False) as session:
            kept = [event for _, event in session.events_after(0)]
            assert kept == listed
            assert [type(event.reward) for event in kept] == [float] * len(listed)
            assert [event.charged for event in kept] == [True] * len(listed)

    def test_batches_of_any_size(self) -> None:
        """None at all, and thousands, in order and each with its position."""
        store = self.filled()
        listed = [Event(EventKind.ASKED, float(number), number, number % 7) for number in range(1, 5001)]
        with store.session("two", write=True) as session:
            assert session.append([]) == []
            assert session.events_after(0) == []
            given = session.append(listed)
            assert session.append([]) == []
        with store.session("two", write=False) as session:
            assert session.events_after(0) == list(zip(given, listed, strict=True))
            assert session.events_after(given[-2]) == [(given[-1], listed[-1])]
            assert session.events_after(given[-1]) == []
            assert session.events_of_trial(4321) == [listed[4320]]
        with store.session("two", write=True) as session:
            assert session.append(EVENTS[:1]) > [given[-1]]

    def test_closing_is_not_the_end(self) -> None:
        """A closed store opens again by itself."""
        store = self.filled()
        store.close()
        with store.session("one", write=True) as session:
            session.append(EVENTS[:1])
        store.close()
        with store.session("one", write=False) as session:
            assert [event for _, event in session.events_after(0)] == [*EVENTS, EVENTS[0]]

    def test_stores_on_the_same_place_see_each_other(self) -> None:
        """Studies, events and summaries, as soon as a session has ended."""
        store, other = self.filled(), self.another()
        if other is None:
            return
        assert other.names() == ["one", "two"]
        with other.session("two", write=True) as session:
            first = session.append(EVENTS[:1])
            session.save_summary(first[0], {"a": 1})
        with store.session("two", write=True) as session:
            assert session.events_after(0) == [(first[0], EVENTS[0])]
            assert session.summary() == (first[0], {"a": 1})
            second = session.append(EVENTS[1:2])
        with other.session("two", write=False) as session:
            assert session.events_after(first[0]) == [(second[0], EVENTS[1])]
        store.delete("two")
        assert StudyNotFoundError is _raised_by(lambda: other.settings("two"))
        other.close()

    def test_a_reader_sees_one_moment_and_holds_nobody_up(self) -> None:
        """What is written during a session for reading is not seen in it."""
        store, other = self.filled(), self.another()
        if other is None:
            return
        with store.session("one", write=False) as reader:
            before = reader.events_after(0)
            with other.session("one", write=True) as writer:
                given = writer.append(EVENTS[:1])
                writer.save_summary(given[0], {"a": 1})
            assert reader.events_after(0) == before
            assert reader.summary() is None
        with store.session("one", write=False) as reader:
            assert reader.events_after(0) == [*before, (given[0], EVENTS[0])]
        other.close()

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
            assert len(session.events_after(0)) == len(EVENTS)
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
        with store.session("one", write=True) as session:
            session.save_summary(5, {"a": 1})
        store.delete("one")
        assert store.names() == ["two"]
        store.create("one", SETTINGS, 5.0)
        with store.session("one", write=False) as session:
            assert session.events_after(0) == []
            assert session.summary() is None

    def test_sessions_for_writing_take_turns(self) -> None:
        """Eight threads that each read the number of events and write it down: no number twice."""
        store = self.filled()
        other = self.another() or store

        def work(own: Store) -> None:
            for _ in range(10):
                with own.session("two", write=True) as session:
                    known = len(session.events_after(0))
                    session.append([Event(EventKind.ASKED, 0.0, known + 1, 0)])

        threads = [threading.Thread(target=work, args=(own,)) for own in [store, other] * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with store.session("two", write=False) as session:
            assert [event.trial for _, event in session.events_after(0)] == list(range(1, 81))
        other.close()
