"""A study's ledger kept in step with its store: reads what others wrote, and writes what happens here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dbcare.errors import InvalidValueError, StorageError, StudyNotFoundError
from dbcare.live.events import Event, EventKind
from dbcare.live.forks import renew_after_fork
from dbcare.live.ledger import Ledger
from dbcare.live.ledger_summary import restore, summarize
from dbcare.live.report import make_standing
from dbcare.live.settings import Settings
from dbcare.live.stores.base import PlacedEvent, Store, StoreSession
from dbcare.live.transaction import (
    EVENTS_PER_PAGE,
    PreparedLedger,
    RefusalCounter,
    Transaction,
    find_retired,
    iterate_events,
)

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
