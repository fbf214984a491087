"""A ledger that follows what other processes write, and the transactions that add to it."""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from dbcare.errors import InvalidValueError, StorageError, StudyNotFoundError
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.forks import renew_after_fork
from dbcare.studies.record.ledger import Ledger, RefusalReason, restore, summarize
from dbcare.studies.results.doubts import is_stalled
from dbcare.studies.results.report import make_standing
from dbcare.studies.settings import Settings
from dbcare.studies.stores.base import PlacedEvent, Store, StoreSession

FIRST_REFUSALS = 10  # that are recorded together
EVENTS_PER_PAGE = 10_000  # read at once, so that a long study fits into memory


class Transaction:
    """A session with the ledger as of now; recorded events are stored when the transaction ends, all or none."""

    def __init__(self, session: StoreSession, ledger: Ledger, refusals: RefusalCounter) -> None:
        self.session = session
        self.ledger = ledger
        self._refusals = refusals
        self.recorded: list[Event] = []
        self._by_trial: defaultdict[int, list[Event]] = defaultdict(list)

    def record(self, event: Event, prepared: PreparedLedger | None = None) -> None:
        """Record something that happened just now.

        Without a retired arm, everything differs from the beginning: `prepared` is the ledger without it, as of some
        moment before. Default: it is replayed here.
        """
        self.recorded.append(event)
        self._by_trial[event.trial].append(event)
        if event.kind is EventKind.RETIRED:
            self._replay_without(event.arm, prepared)
        else:
            self.ledger.apply(event)

    def refuse(self, reason: RefusalReason, now: float) -> None:
        """Count an ask that gets no trial."""
        is_new_stall = is_stalled(self.ledger, now) and self.ledger.turned_away <= self.ledger.handed_out
        enough = 1 if is_new_stall else max(FIRST_REFUSALS, self.ledger.refused.get(reason, 0))
        if number := self._refusals.count(reason, enough):
            self.record(Event(EventKind.REFUSED, now, note=str(reason), number=number))

    def _replay_without(self, arm: int, prepared: PreparedLedger | None) -> None:
        retired = self.ledger.retired | {arm}
        taken = None if prepared is None else prepared.take(retired)
        ledger, position = taken or (Ledger(self.ledger.settings, retired), 0)
        unseen = (stored for _, stored in iterate_events(self.session, position))
        for later in chain(unseen, self.recorded):
            ledger.apply(later)
        self.ledger = ledger

    def events_of_trial(self, trial: int) -> list[Event]:
        """Return everything that happened to a trial."""
        return self.session.events_of_trials(trial, trial) + self._by_trial.get(trial, [])

    def asks_with_note(self, note: str) -> list[Event]:
        """Return how trials were asked for under that note, including those that are not stored yet."""
        unstored = [event for event in self.recorded if event.kind is EventKind.ASKED and event.note == note]
        return self.session.asks_with_note(note) + unstored

    @property
    def retires_an_arm(self) -> bool:
        """Whether an arm is retired in this transaction."""
        return any(event.kind is EventKind.RETIRED for event in self._by_trial.get(0, ()))


class RefusalCounter:
    """Asks that got no trial from this process, and are not recorded yet.

    They are recorded when they double what is known, so that a million of them take about twenty events, and when a
    study begins to stall.
    """

    def __init__(self) -> None:
        self._unrecorded: Counter[RefusalReason] = Counter()

    def count(self, reason: RefusalReason, enough: int) -> int:
        """Count one; return how many to record now, which is none until there are enough."""
        self._unrecorded[reason] += 1
        if self._unrecorded[reason] < enough:
            return 0
        return self._unrecorded.pop(reason)


class PreparedLedger:
    """A ledger for a set of retired arms, replayed up to some position."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.position = 0
        self._taken = False

    def take(self, retired: frozenset[int]) -> tuple[Ledger, int] | None:
        """Return the ledger and its position, once, if these are still the arms that are retired."""
        if self._taken or self.ledger.retired != retired:
            return None
        self._taken = True
        return self.ledger, self.position

    def follow(self, placed: Iterable[PlacedEvent]) -> None:
        """Apply the next events."""
        for self.position, event in placed:
            self.ledger.apply(event)


def iterate_events(session: StoreSession, position: int) -> Iterator[PlacedEvent]:
    """Iterate over the events after `position`, read page by page."""
    while True:
        page = session.events_after(position, EVENTS_PER_PAGE)
        yield from page
        if len(page) < EVENTS_PER_PAGE:
            return
        position = page[-1][0]


def find_retired(session: StoreSession) -> frozenset[int]:
    """Return the arms that are retired in a study: those events concern no trial, and are found under number 0."""
    return frozenset(event.arm for event in session.events_of_trials(0, 0) if event.kind is EventKind.RETIRED)


DAMAGE = (ArithmeticError, AttributeError, InvalidValueError, LookupError, TypeError, ValueError)  # of what is stored
LOG = logging.getLogger("dbcare")
EVENTS_PER_SUMMARY = 500  # opening a study replays at most about this many


class SyncedLedger:
    """The ledger of one study; `lock` must be held from `begin` until the session has committed."""

    def __init__(self, store: Store, name: str, settings: Settings, identity: int) -> None:
        self.name = name
        self.settings = settings
        self.store = store
        self._identity = identity
        self._last: tuple[int, Event | None] = (0, None)  # the last event in the ledger, as far as it is known
        self._summarized = 0  # position of the last event in the stored summary
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Start anew in a child process: another thread may have been in the middle of a transaction."""
        self.lock = threading.Lock()
        self._ledger: Ledger | None = None
        self._refusals = RefusalCounter()

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Read the study as it is now."""
        with self.lock, self.store.session(self.name, write=False) as session:
            yield self.begin(session)

    def open(self) -> None:
        """Open the ledger unless it is open, so that nobody else has to wait for that later."""
        if self._ledger is None:
            with self.lock:
                self.prepare()

    def prepare(self) -> None:
        """Open the ledger unless it is open, before a transaction for writing; `lock` must be held."""
        if self._ledger is None:
            with self.store.session(self.name, write=False) as session:
                self.begin(session)

    def begin(self, session: StoreSession) -> Transaction:
        """Bring the ledger up to date, and begin a transaction."""
        if session.identity != self._identity:
            raise StudyNotFoundError(f"Study {self.name!r} was deleted and re-created; load it again.")
        try:
            with self.reporting_damage():
                if self._ledger is None or not self._follow(session):  # a backup may have replaced the database
                    self._open(session)
        except BaseException:
            self.forget()
            raise
        assert self._ledger is not None
        return Transaction(session, self._ledger, self._refusals)

    @contextmanager
    def reporting_damage(self) -> Iterator[None]:
        """Raise StorageError if what is stored cannot be what dbcare wrote."""
        try:
            yield
        except DAMAGE as failure:
            problem = f"{type(failure).__name__}: {failure}"
            raise StorageError(f"The data of study {self.name!r} are damaged ({problem}); restore a backup.") from None

    def begin_again(self, transaction: Transaction, kept: int) -> Transaction:
        """Return a transaction in which only the first `kept` events of another were recorded."""
        self._open(transaction.session)
        assert self._ledger is not None
        again = Transaction(transaction.session, self._ledger, self._refusals)
        for event in transaction.recorded[:kept]:
            again.record(event)
        return again

    def finish(self, transaction: Transaction) -> None:
        """Store what was recorded, and what follows from it."""
        if not transaction.recorded:
            return
        self._ledger = transaction.ledger
        positions = transaction.session.append(transaction.recorded)
        self._last = positions[-1], transaction.recorded[-1]
        transaction.session.save_standing(make_standing(self._ledger))
        # With many trials open, a summary is large: it is then saved less often, so that its cost stays in bounds.
        due = self._summarized + max(EVENTS_PER_SUMMARY, len(self._ledger.open))
        if transaction.retires_an_arm or self._last[0] >= due:
            self._save_summary(transaction.session)

    def forget(self) -> None:
        """Drop the ledger, which may be ahead of what is stored: it is read again from there."""
        self._ledger = None

    @property
    def position(self) -> int:
        """The position of the last event in the ledger."""
        return self._last[0]

    def replay_without(self, arm: int, go_on: Callable[[], None]) -> PreparedLedger:
        """Replay the study as if one more arm had never been in it, without keeping others waiting.

        `go_on` is called now and then, and may raise.
        """
        with self.store.session(self.name, write=False) as session:
            prepared = PreparedLedger(Ledger(self.settings, find_retired(session) | {arm}))
        for page in self._pages():
            go_on()
            with self.reporting_damage():
                prepared.follow(page)
        return prepared

    def _pages(self) -> Iterator[list[PlacedEvent]]:
        """Iterate over all events in pages, each read in a session of its own."""
        position = 0
        while True:
            with self.store.session(self.name, write=False) as session:
                page = session.events_after(position, EVENTS_PER_PAGE)
            yield page
            if len(page) < EVENTS_PER_PAGE:
                return
            position = page[-1][0]

    def _open(self, session: StoreSession) -> None:
        """Restore the ledger from the stored summary if it fits, else from all events."""
        self._ledger = None
        summary = session.summary()
        if summary is not None:
            self._last, self._summarized = (summary[0], None), summary[0]
            try:
                self._ledger = restore(self.settings, summary[1])
                if self._follow(session):
                    return
            except DAMAGE:
                pass  # damaged; it only saves time
        prepared = PreparedLedger(Ledger(self.settings, find_retired(session)))
        last: Event | None = None
        for place, last in iterate_events(session, 0):
            prepared.follow([(place, last)])
        self._ledger, self._last, self._summarized = prepared.ledger, (prepared.position, last), 0

    def _follow(self, session: StoreSession) -> bool:
        """Apply what is new; return False if what was known is not what is stored, or an arm was retired since."""
        assert self._ledger is not None
        position, last = self._last
        for place, event in iterate_events(session, max(0, position - 1)):
            if place <= position:
                if last is not None and event != last:
                    return False
                position = 0  # found
            elif position or event.kind is EventKind.RETIRED:
                return False
            else:
                self._ledger.apply(event)
                self._last = place, event
        return position == 0

    def _save_summary(self, session: StoreSession) -> None:
        assert self._ledger is not None
        self._summarized = self._last[0]
        try:
            session.save_summary(self._last[0], summarize(self._ledger))
        except ValueError as failure:  # JSON has no infinity; the summary only saves time, and must not block events
            LOG.warning("The summary of study %r cannot be stored: %s", self.name, failure)

    def check(self, go_on: Callable[[], None]) -> int:
        """Replay all events and compare with the stored summary; return their number, or raise what differs.

        `go_on` is called now and then, and may raise.
        """
        with self.reporting_damage():
            return self._replay_and_compare(go_on)

    def _replay_and_compare(self, go_on: Callable[[], None]) -> int:
        with self.store.session(self.name, write=False) as session:
            summary = session.summary()
            until, stored = (0, {"retired": []}) if summary is None else summary
            replayed = PreparedLedger(Ledger(self.settings, frozenset(stored["retired"])))
            count = 0
            for place, event in iterate_events(session, 0):
                count += 1
                if count % EVENTS_PER_PAGE == 0:
                    go_on()
                if place != count:
                    raise StorageError(f"Event {count} of study {self.name!r} is missing; restore a backup.")
                if place <= until:
                    replayed.follow([(place, event)])
        if count < until:
            raise StorageError(f"Event {count + 1} of study {self.name!r} is missing; restore a backup.")
        if summary is not None:
            differing = list_differences(replayed.ledger, stored)
            if differing:
                raise StorageError(
                    f"The summary of study {self.name!r} does not follow from its events: {differing[0]} differs."
                )
        return count


def list_differences(ledger: Ledger, stored: dict[str, Any]) -> list[str]:
    """List the parts of a summary that a replay contradicts."""
    plain, summary = _without_sentences(summarize(ledger)), _without_sentences(stored)
    del plain["losses"]  # their last digits depend on the machine
    plain["retired"] = sorted(ledger.withdrawn)  # by the events, not by the summary itself
    return [key for key, value in plain.items() if key not in summary or value != summary[key]]


def _without_sentences(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a summary without the sentences of its events, which may be worded differently by another version."""
    run = (plain.get("decision") or {}).get("run")
    if not run:
        return plain
    events = [{**event, "text": ""} for event in run["events"]]
    return {**plain, "decision": {**plain["decision"], "run": {**run, "events": events}}}
