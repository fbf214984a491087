"""A study in a store that this process can reach."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from dbcare.errors import InvalidValueError, StorageError, UnknownPolicyError
from dbcare.policies.registry import POLICIES
from dbcare.studies.assignment import Assignment, find_assignment
from dbcare.studies.decide.blocks import PoolDecision
from dbcare.studies.record.ask_and_tell import (
    AskOutcome,
    give_back,
    give_up,
    hand_out,
    record_outcome,
    record_outcome_of_unit,
)
from dbcare.studies.record.commits import StudyOperation
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.ledger import RESOLVED
from dbcare.studies.record.sync import SyncedLedger, Transaction
from dbcare.studies.results.report import (
    explain_decisions,
    list_history,
    list_pending,
    make_recommendation,
    make_status,
    measure_vital_signs,
)
from dbcare.studies.results.status import HistoryPoint, Pending, Recommendation, Status, VitalSigns
from dbcare.studies.settings import Settings
from dbcare.studies.show.export import TrialRow, make_rows
from dbcare.studies.stores.base import Store
from dbcare.studies.stores.group_commit import MAX_WEIGHT, GroupCommit
from dbcare.studies.study import Study
from dbcare.studies.trial import AskRequest, Observation, Trial, TrialReference

TRIALS_PER_PAGE = 2_000  # read in one transaction

Result = TypeVar("Result")


class StoredStudy(Study):
    """A study in a store; get one with `create_study` or `load_study`."""

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        record = store.record(name)
        if record.settings.get("policy") not in POLICIES:
            raise UnknownPolicyError(
                f"Study {name!r} uses the policy {record.settings.get('policy')!r}, which is not installed here."
            )
        try:
            self.settings = Settings.from_dict(record.settings)
        except (InvalidValueError, TypeError, ValueError) as failure:
            raise StorageError(f"The settings of study {name!r} are damaged ({failure}); restore a backup.") from None
        self.record = record
        self.commits = store.commits or GroupCommit()
        self._ledger = SyncedLedger(store, name, self.settings, record.identity)
        self._person: str | None = None
        self._go_on: Callable[[], None] = _do_nothing

    def on_behalf_of(self, person: str | None) -> StoredStudy:
        """Return the same study, with what is done through it recorded under a person's name."""
        study = copy.copy(self)
        study._person = person
        return study

    def replaying(self, go_on: Callable[[], None]) -> StoredStudy:
        """Return the same study, which calls `go_on` now and then while it replays its events; an error ends that."""
        study = copy.copy(self)
        study._go_on = go_on
        return study

    def position(self) -> int:
        """Return how many events there are; while there are no more, the study has not changed."""
        with self._ledger.read():
            return self._ledger.position

    def open(self) -> StoredStudy:
        """Read the study now rather than when it is first used."""
        self._ledger.open()
        return self

    def carry_out(self, operation: StudyOperation[Result]) -> Result:
        """Carry out an operation on this study; return its result once everything is stored."""
        self._ledger.open()
        return self.commits.run(operation)

    def _write(self, act: Callable[[Transaction], Result], weight: int = 1) -> Result:
        return self.carry_out(StudyOperation(self._ledger, act, weight))

    def ask_later(self, request: AskRequest) -> StudyOperation[AskOutcome]:
        """Return the operation that hands out trials."""
        return StudyOperation(
            self._ledger, lambda transaction: hand_out(transaction, request, time.time()), request.wanted
        )

    def _ask(self, request: AskRequest) -> list[Trial]:
        return self.carry_out(self.ask_later(request)).trials

    def tell_later(
        self,
        trial: TrialReference,
        reward: float | None,
        charged: bool = True,
        price: float | None = None,
        reason: str | None = None,
    ) -> StudyOperation[None]:
        """Return the operation that records an outcome, as `tell` does."""
        return StudyOperation(
            self._ledger,
            lambda transaction: record_outcome(transaction, trial, reward, charged, time.time(), price, reason),
        )

    def _tell(
        self,
        trial: TrialReference,
        reward: float | None,
        charged: bool,
        price: float | None,
        reason: str | None,
    ) -> None:
        self.carry_out(self.tell_later(trial, reward, charged, price, reason))

    def tell_unit_later(
        self,
        unit: str,
        reward: float | None,
        charged: bool = True,
        price: float | None = None,
        reason: str | None = None,
    ) -> StudyOperation[bool]:
        """Return the operation that records the outcome of a unit's trial."""
        return StudyOperation(
            self._ledger,
            lambda transaction: record_outcome_of_unit(transaction, unit, reward, charged, time.time(), price, reason),
        )

    def _tell_unit(
        self, unit: str, reward: float | None, charged: bool, price: float | None, reason: str | None
    ) -> bool:
        return self.carry_out(self.tell_unit_later(unit, reward, charged, price, reason))

    def assign_later(
        self, request: AskRequest, fallback: str | None, within: float | None
    ) -> StudyOperation[tuple[Assignment, AskOutcome]]:
        """Return the operation that finds an arm for a unit; after `within` seconds it hands out nothing."""
        until = math.inf if within is None else time.monotonic() + within

        def assign(transaction: Transaction) -> tuple[Assignment, AskOutcome]:
            if time.monotonic() > until:
                raise StorageError(f"Study {self.name!r} had no turn within {within:g} seconds.")
            return find_assignment(transaction, request, fallback, time.time())

        return StudyOperation(self._ledger, assign)

    def _assign(self, request: AskRequest, fallback: str | None, within: float | None) -> Assignment:
        return self.carry_out(self.assign_later(request, fallback, within))[0]

    def _give_back(self, unit: str, tag: str) -> bool:
        return self._write(lambda transaction: give_back(transaction, unit, tag, time.time()))

    def exchange(
        self, outcomes: Sequence[tuple[Trial, float | None, float]], requests: Sequence[AskRequest]
    ) -> list[Trial]:
        """Record outcomes, each a trial, its reward or None, and its price, then hand out trials, in one commit."""

        def exchange(transaction: Transaction) -> list[Trial]:
            now = time.time()
            for trial, reward, price in outcomes:
                record_outcome(transaction, trial, reward, True, now, price)
            return [trial for request in requests for trial in hand_out(transaction, request, now).trials]

        return self._write(exchange, len(outcomes) + sum(request.wanted for request in requests))

    def _tell_many(self, outcomes: list[tuple[TrialReference, float, float | None]]) -> None:
        def tell(transaction: Transaction) -> None:
            now = time.time()
            for trial, reward, price in outcomes:
                record_outcome(transaction, trial, reward, True, now, price)

        self._write(tell, len(outcomes))

    def add_outcomes(self, observations: list[Observation]) -> None:
        """Add observations as `add` does; also ones without a reward, with prices of their own, or with notes."""
        self._add(observations)

    def notes(self) -> dict[int, str]:
        """Return the notes that were kept with outcomes, by trial."""
        with self._ledger.read() as transaction:
            events = transaction.session.events_of_trials(1, transaction.ledger.asked)
        return {event.trial: event.note for event in events if event.kind in RESOLVED and event.note is not None}

    def _add(self, observations: list[Observation]) -> None:
        def add(transaction: Transaction) -> None:
            now = time.time()
            for each in observations:
                self._check_block(transaction, each)
                number = transaction.ledger.asked + 1
                transaction.record(Event(EventKind.ASKED, now, number, each.arm, worker=self._person, block=each.block))
                kind = EventKind.FAILED if each.reward is None else EventKind.TOLD
                transaction.record(Event(kind, now, number, each.arm, each.reward, note=each.note, price=each.price))

        self._write(add, 2 * len(observations))

    def _check_block(self, transaction: Transaction, observation: Observation) -> None:
        decision, block = transaction.ledger.decision, observation.block
        if block is not None and isinstance(decision, PoolDecision) and decision.has_trial(observation.arm, block):
            arm, name = self.settings.arms[observation.arm], self.settings.name_block(block)
            raise InvalidValueError(
                f"`observations` must have each arm at most once in a block but got {arm!r} again in {name!r}."
            )

    def should_stop(self) -> bool:
        with self._ledger.read() as transaction:
            return transaction.ledger.stopped is not None

    def snapshot(self) -> tuple[Status, Recommendation]:
        with self._ledger.read() as transaction:
            ledger = transaction.ledger
            return make_status(self.record, ledger, time.time()), make_recommendation(ledger)

    def recommendation(self) -> Recommendation:
        with self._ledger.read() as transaction:
            return make_recommendation(transaction.ledger)

    def status(self) -> Status:
        with self._ledger.read() as transaction:
            return make_status(self.record, transaction.ledger, time.time())

    def vital_signs(self) -> VitalSigns:
        """Return what shows whether the study goes on, which takes less time than its status."""
        with self._ledger.read() as transaction:
            return measure_vital_signs(transaction.ledger, time.time())

    def pending(self) -> list[Pending]:
        with self._ledger.read() as transaction:
            return list_pending(transaction.ledger, time.time())

    def history(self) -> list[HistoryPoint]:
        with self._ledger.read() as transaction:
            return list_history(transaction.ledger)

    def explain(self) -> list[str]:
        with self._ledger.read() as transaction:
            return explain_decisions(transaction.ledger)

    def trials(self) -> Iterator[TrialRow]:
        read, last = 0, None
        while last is None or read < last:
            with self._ledger.read() as transaction:
                counted = transaction.ledger.counted
                last = transaction.ledger.asked if last is None else last
                until = min(read + TRIALS_PER_PAGE, last)
                events = transaction.session.events_of_trials(read + 1, until)
            with self._ledger.reporting_damage():
                rows = list(make_rows(self.settings, events, counted))
            yield from rows  # may take its time: nothing is locked
            read = until

    def recent_trials(self, count: int) -> list[TrialRow]:
        """Return the last trials asked, at most so many, in order."""
        with self._ledger.read() as transaction:
            asked, counted = transaction.ledger.asked, transaction.ledger.counted
            events = transaction.session.events_of_trials(max(1, asked - count + 1), asked)
        with self._ledger.reporting_damage():
            return list(make_rows(self.settings, events, counted))

    def pause(self) -> None:
        self._record(EventKind.PAUSED)

    def resume(self) -> None:
        self._record(EventKind.RESUMED)

    def _give_up(self, trials: list[int] | None, worker: str | None, older_than: float | None) -> int:
        reason = "given up" if self._person is None else f"given up by {self._person}"
        return self._write(
            lambda transaction: give_up(transaction, trials, worker, older_than, time.time(), reason), MAX_WEIGHT
        )

    def _stop(self, reason: str) -> None:
        self._record(EventKind.STOPPED, reason)

    def _set_max_ahead(self, max_ahead: int | None) -> None:
        self._record(EventKind.LIMITED, number=max_ahead)

    def _describe(self, description: str | None) -> None:
        self._record(EventKind.DESCRIBED, description)

    def _record(self, kind: EventKind, note: str | None = None, number: int | None = None) -> None:
        event = Event(kind, time.time(), worker=self._person, note=note, number=number)
        self._write(lambda transaction: transaction.record(event))

    def _retire(self, arm: int, reason: str) -> None:
        with self._ledger.read() as transaction:
            self._check_retirement(transaction, arm)
        prepared = self._ledger.replay_without(arm, self._go_on)
        event = Event(EventKind.RETIRED, time.time(), arm=arm, worker=self._person, note=reason)

        def retire(transaction: Transaction) -> None:
            self._check_retirement(transaction, arm)
            transaction.record(event, prepared)

        self._write(retire)

    def _check_retirement(self, transaction: Transaction, arm: int) -> None:
        active = transaction.ledger.decision.active
        if arm not in active or len(active) == 1:
            names = ", ".join(self.settings.arms[index] for index in active)
            raise InvalidValueError(
                f"`arm` must be an active arm ({names}) and not the only one but got {self.settings.arms[arm]!r}."
            )

    def check(self) -> int:
        return self._ledger.check(self._go_on)


def _do_nothing() -> None:
    """Go on."""
