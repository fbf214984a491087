"""A transaction on one study: its ledger as of now, and what is recorded in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from dbcare.live.events import Event, EventKind
from dbcare.live.ledger import Ledger, RefusalReason
from dbcare.live.stalls import is_stalled
from dbcare.live.stores.base import PlacedEvent, StoreSession

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
