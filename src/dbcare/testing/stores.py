"""The conformance suite for stores of live studies: memory, SQLite, PostgreSQL, and yours.

Subclass it in a test file and return an empty store; pytest runs every check on a new one.

    import pytest

    from dbcare.studies import Store
    from dbcare.studies.stores.sql.store import SqlStore
    from dbcare.testing import StoreSuite


    class TestSqlite(StoreSuite):
        @pytest.fixture(autouse=True)
        def set_address(self, tmp_path):
            self.address = f"sqlite:///{tmp_path / 'studies.db'}"

        def make(self) -> Store:
            return SqlStore(self.address)

        def open_again(self) -> Store:
            return SqlStore(self.address)

A store that only this process can reach leaves `open_again` out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from dbcare.errors import DbcareError, StudyExistsError, StudyNotFoundError
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.stores.base import Standing, Store

SETTINGS: dict[str, Any] = {"arms": ["A", "B"], "cost": 0.5, "note": 'a "quote", \N{SNOWMAN}, 1e-300'}
EVENTS = [
    Event(EventKind.ASKED, 1.5, 1, 0, expires=2.25, worker="w \N{SNOWMAN}"),
    Event(EventKind.TOLD, 1.75, 1, 0, 0.1 + 0.2),
    Event(EventKind.ASKED, 2.0, 2, 1),
    Event(EventKind.FAILED, 3.0, 2, 1, None, charged=False),
    Event(EventKind.ASKED, 3.5, 3, 0, block=7),
    Event(EventKind.TOLD, 3.75, 3, 0, 1.0, price=0.1 + 0.2),
    Event(EventKind.STOPPED, 4.0, note="enough"),
]
EXTREMES = [5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 1 / 3, 123456789.12345679, 2.0**53]


def _find_error(attempt: Callable[[], object]) -> type[Exception] | None:
    """Return the type of the error that `attempt` raises, if any."""
    try:
        attempt()
    except DbcareError as error:
        return type(error)
    return None


class StoreSuite:
    """Checks what every store promises; subclasses define `make`, and `open_again` where that is possible.

    Examples
    --------
    >>> from dbcare.studies.stores.memory import MemoryStore
    >>> from dbcare.testing import StoreSuite
    >>> class TestMemory(StoreSuite):
    ...     def make(self):
    ...         return MemoryStore()
    >>> TestMemory().test_summaries_replace_each_other()  # or let pytest run all checks
    """

    store: Store | None = None

    def teardown_method(self) -> None:
        """Close the store; pytest calls this after each check."""
        if self.store is not None:
            self.store.close()

    def make(self) -> Store:
        """Return a new store without studies."""
        raise NotImplementedError("Define `make` in a subclass of StoreSuite.")

    def open_again(self) -> Store | None:
        """Return a second store on the same data, as another process would open it; None if that is impossible."""
        return None

    def make_filled(self) -> Store:
        """Return a store with two studies, one of them with events."""
        store = self.store = self.make()
        for name in ("one", "two"):
            store.create(name, SETTINGS, 1.0)
        with store.session("one", write=True) as session:
            session.append(EVENTS)
        return store

    def test_what_is_stored_comes_back(self) -> None:
        """Settings and events come back to the last bit, in order, with positions 1, 2, 3 and so on."""
        store = self.make_filled()
        assert store.names() == ["one", "two"]
        assert store.record("one").settings == SETTINGS
        with store.session("one", write=False) as session:
            placed = session.events_after(0)
            assert [event for _, event in placed] == EVENTS
            assert [position for position, _ in placed] == list(range(1, len(EVENTS) + 1))
            assert [event for _, event in session.events_after(placed[1][0])] == EVENTS[2:]
            assert session.events_after(1, 2) == placed[1:3]
            assert session.events_of_trials(2, 2) == EVENTS[2:4]
            in_order = sorted((event for event in EVENTS if event.trial in (1, 2)), key=lambda event: event.trial)
            assert session.events_of_trials(1, 2) == in_order
        with store.session("two", write=False) as session:
            assert session.events_after(0) == []

    def test_names_are_unique_and_must_exist(self) -> None:
        """Creating a study twice, or using one that does not exist, is an error and changes nothing."""
        store = self.make_filled()
        for attempt, error in (
            (lambda: store.create("one", {}, 2.0), StudyExistsError),
            (lambda: store.record("three"), StudyNotFoundError),
            (lambda: store.delete("three"), StudyNotFoundError),
            (lambda: store.session("three", write=False).__enter__(), StudyNotFoundError),
            (lambda: store.session("three", write=True).__enter__(), StudyNotFoundError),
        ):
            assert error is _find_error(attempt)
        assert store.record("one").settings == SETTINGS

    def test_asks_are_found_by_their_note(self) -> None:
        """Only asks of this study are found, in order; other events may have the same note."""
        store = self.make_filled()
        asks = [Event(EventKind.ASKED, 1.0, 1, 0, note="key"), Event(EventKind.ASKED, 1.0, 2, 1, note="key")]
        with store.session("two", write=True) as session:
            session.append([*asks, Event(EventKind.FAILED, 2.0, 1, 0, note="key")])
            assert session.asks_with_note("key") == asks
        with store.session("one", write=False) as session:
            assert session.asks_with_note("key") == []
            assert session.asks_with_note("enough") == []

    def test_long_notes_are_stored(self) -> None:
        """A note of 1,000 characters is stored, however many bytes they take."""
        store = self.make_filled()
        failed = Event(
            EventKind.FAILED, 3.0, 2, 1, None, charged=False, note="".join(map(chr, range(0x20000, 0x203E8)))
        )
        with store.session("one", write=True) as session:
            (position,) = session.append([failed])
        with store.session("one", write=False) as session:
            assert session.events_after(position - 1) == [(position, failed)]

    def test_a_recreated_study_has_a_new_identity(self) -> None:
        """A study with the name of a deleted one is a different study."""
        store = self.make_filled()
        identities = {store.record(name).identity for name in ("one", "two")}
        store.delete("two")
        store.create("two", SETTINGS, 5.0)
        assert len(identities | {store.record("two").identity}) == 3
        with store.session("two", write=False) as session:
            assert session.identity == store.record("two").identity

    def test_positions_are_those_that_append_returned(self) -> None:
        """A reader can therefore tell which events it has seen."""
        store = self.make_filled()
        with store.session("two", write=True) as session:
            positions = session.append(EVENTS[:2])
            positions += session.append(EVENTS[2:3])
        with store.session("two", write=False) as session:
            assert [position for position, _ in session.events_after(0)] == positions

    def test_numbers_and_texts_are_stored_exactly(self) -> None:
        """Numbers of any size keep every bit; only the sign of zero may be lost."""
        store = self.make_filled()
        events = [Event(EventKind.TOLD, value, 1, 0, value, expires=-value, worker="w" * 5000) for value in EXTREMES]
        events.append(Event(EventKind.TOLD, 0.0, 2**31 - 1, 0, -0.0, note="a\nb\t'\"%s ? :x \N{GRINNING FACE}"))
        with store.session("two", write=True) as session:
            session.append(events)
        with store.session("two", write=False) as session:
            stored = [event for _, event in session.events_after(0)]
            assert stored == events
            assert [type(event.reward) for event in stored] == [float] * len(events)
            assert [event.charged for event in stored] == [True] * len(events)

    def test_batches_of_any_size(self) -> None:
        """Empty batches and batches of thousands are stored in order, each event with its position."""
        store = self.make_filled()
        events = [Event(EventKind.ASKED, float(number), number, number % 7) for number in range(1, 5001)]
        with store.session("two", write=True) as session:
            assert session.append([]) == []
            assert session.events_after(0) == []
            positions = session.append(events)
            assert session.append([]) == []
        with store.session("two", write=False) as session:
            assert session.events_after(0) == list(zip(positions, events, strict=True))
            assert session.events_after(positions[-2]) == [(positions[-1], events[-1])]
            assert session.events_after(positions[-1]) == []
            assert session.events_of_trials(4321, 4321) == [events[4320]]
        with store.session("two", write=True) as session:
            assert session.append(EVENTS[:1]) > [positions[-1]]

    def test_a_closed_store_reopens_when_used(self) -> None:
        """Closing releases connections, and loses nothing."""
        store = self.make_filled()
        store.close()
        with store.session("one", write=True) as session:
            session.append(EVENTS[:1])
        store.close()
        with store.session("one", write=False) as session:
            assert [event for _, event in session.events_after(0)] == [*EVENTS, EVENTS[0]]

    def test_two_stores_on_the_same_data_agree(self) -> None:
        """Each sees the other's studies, events and summaries as soon as a session has ended."""
        store, other = self.make_filled(), self.open_again()
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
        assert StudyNotFoundError is _find_error(lambda: other.record("two"))
        other.close()

    def test_a_reader_sees_a_snapshot_and_blocks_nobody(self) -> None:
        """A session for reading does not see what is written while it lasts."""
        store, other = self.make_filled(), self.open_again()
        if other is None:
            return
        with store.session("one", write=False) as reader:
            before = reader.events_after(0)
            with other.session("one", write=True) as writer:
                positions = writer.append(EVENTS[:1])
                writer.save_summary(positions[0], {"a": 1})
            assert reader.events_after(0) == before
            assert reader.summary() is None
        with store.session("one", write=False) as reader:
            assert reader.events_after(0) == [*before, (positions[0], EVENTS[0])]
        other.close()

    def test_an_exception_undoes_a_session(self) -> None:
        """Nothing half-written remains."""
        store = self.make_filled()
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

    def test_summaries_replace_each_other(self) -> None:
        """Each study has only its latest summary."""
        store = self.make_filled()
        for position in (3, 5):
            with store.session("one", write=True) as session:
                session.save_summary(position, {"state": [position, 0.1]})
        with store.session("one", write=False) as session:
            assert session.summary() == (5, {"state": [5, 0.1]})
        with store.session("two", write=False) as session:
            assert session.summary() is None

    def test_standings_are_stored_with_the_events(self) -> None:
        """Who created a study, and how it stands, can be read without its events; an exception undoes a change."""
        store = self.make_filled()
        new = Standing("running", 0, 0, 0.0, None, "A", "undecided")
        store.create("three", SETTINGS, 5.0, "alice", new)
        assert (store.record("three").created, store.record("three").created_by) == (5.0, "alice")
        assert [store.record(name).standing for name in ("two", "three")] == [Standing(), new]
        later = Standing("stopped", 9, 8, 0.1 + 0.2, 1 / 3, "B \N{SNOWMAN}", "clear winner", "enough", "0.1 2,0.3 1")
        for name in ("two", "three"):
            with store.session(name, write=True) as session:
                session.save_standing(later)
            assert store.record(name).standing == later
        try:
            with store.session("three", write=True) as session:
                session.save_standing(new)
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        assert store.record("three").standing == later

    def test_studies_are_found_page_by_page(self) -> None:
        """By name, oldest first, or by state; every study is on exactly one page."""
        store = self.store = self.make()
        states = ("running", "stopped", "paused")
        for number in range(12):
            standing = Standing(states[number % 3], number, 0, 0.0, None, "A", "undecided")
            store.create(f"{'Ads' if number % 2 else 'maps'} 5%_{number}", SETTINGS, float(number), None, standing)
        assert [record.name for record in store.find()] == store.names()
        assert [record.standing.asked for record in store.find("aDS")] == [1, 3, 5, 7, 9, 11]
        assert [record.name for record in store.find("%_1")] == ["Ads 5%_1", "maps 5%_10", "Ads 5%_11"]
        assert (store.count(), store.count("ads"), store.count("5_")) == (12, 6, 0)
        for by_state, expected in ((False, list(range(12))), (True, [9, 6, 3, 0, 11, 8, 5, 2, 10, 7, 4, 1])):
            seen: list[int] = []
            after = None
            while page := store.find(after=after, limit=5, by_state=by_state):
                seen += [record.standing.asked for record in page]
                after = page[-1].name
            assert seen == expected
        assert StudyNotFoundError is _find_error(lambda: store.find(after="gone"))

    def test_groups_commit_together(self) -> None:
        """One transaction covers several studies, where the store can do that; those that do not exist are left out."""
        store = self.make_filled()
        names = ["one", "three", "two"] if store.commits is not None else ["one"]
        with store.group(names) as sessions:
            assert sorted(sessions) == [name for name in names if name != "three"]
            for session in sessions.values():
                session.append(EVENTS[:1])
        try:
            with store.group(names) as sessions:
                for session in sessions.values():
                    session.append(EVENTS[:1])
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        with store.session("one", write=False) as session:
            assert len(session.events_after(0)) == len(EVENTS) + 1

    def test_deleting_a_study_leaves_the_others_alone(self) -> None:
        """The name can be used again, for a study without events."""
        store = self.make_filled()
        with store.session("one", write=True) as session:
            session.save_summary(5, {"a": 1})
        store.delete("one")
        assert store.names() == ["two"]
        store.create("one", SETTINGS, 5.0)
        with store.session("one", write=False) as session:
            assert session.events_after(0) == []
            assert session.summary() is None

    def test_sessions_for_writing_take_turns(self) -> None:
        """Eight threads each append the number of events they have read; no number occurs twice."""
        store = self.make_filled()
        other = self.open_again() or store

        def work(opened: Store) -> None:
            for _ in range(10):
                with opened.session("two", write=True) as session:
                    count = len(session.events_after(0))
                    session.append([Event(EventKind.ASKED, 0.0, count + 1, 0)])

        threads = [threading.Thread(target=work, args=(opened,)) for opened in [store, other] * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with store.session("two", write=False) as session:
            assert [event.trial for _, event in session.events_after(0)] == list(range(1, 81))
        other.close()
