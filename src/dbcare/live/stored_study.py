"""A study in a store that this process can reach."""

from __future__ import annotations

import time

from dbcare.errors import InvalidValueError, UnknownPolicyError
from dbcare.live.events import Event, EventKind
from dbcare.live.export import TrialRow, make_rows
from dbcare.live.leases import Lease, parse_lease
from dbcare.live.report import explain_decisions, list_history, list_pending, make_recommendation, make_status
from dbcare.live.settings import Settings
from dbcare.live.status import HistoryPoint, Pending, Recommendation, Status
from dbcare.live.stores.base import Store
from dbcare.live.study import Study
from dbcare.live.synced_ledger import SyncedLedger, Transaction
from dbcare.live.tell import record_outcome
from dbcare.live.trial import Trial
from dbcare.policies.registry import POLICIES


class StoredStudy(Study):
    """A study in a store; get one with `create_study` or `load_study`."""

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        plain = store.settings(name)
        if plain.get("policy") not in POLICIES:
            raise UnknownPolicyError(
                f"Study {name!r} uses the policy {plain.get('policy')!r}, which is not installed here."
            )
        self.settings = Settings.from_dict(plain)
        self._ledger = SyncedLedger(store, name, self.settings)

    def _ask(
        self, wanted: int, lease: Lease, worker: str | None, timeout_reward: float | None, key: str | None
    ) -> list[Trial]:
        duration = parse_lease(lease)
        fallback = self.settings.timeout_reward if timeout_reward is None else timeout_reward
        note = None if key is None else f"key: {key}"
        with self._ledger.transaction(write=True) as transaction:
            now = time.time()
            expires = None if duration is None else now + duration
            trials = self._asked_before(transaction, note)
            if trials:
                wanted = 0
            self._expire(transaction, now)
            while len(trials) < wanted and (arm := transaction.ledger.next_arm()) is not None:
                number = transaction.ledger.asked + 1
                event = Event(EventKind.ASKED, now, number, arm, fallback, True, expires, worker, note)
                transaction.record(event)
                trials.append(self._make_trial(event))
        return trials

    def _asked_before(self, transaction: Transaction, note: str | None) -> list[Trial]:
        events = [] if note is None else transaction.session.events_with_note(note)
        return [self._make_trial(event) for event in events if event.kind is EventKind.ASKED]

    def _make_trial(self, event: Event) -> Trial:
        return Trial(event.trial, self.settings.arms[event.arm], event.expires)

    @staticmethod
    def _expire(transaction: Transaction, now: float) -> None:
        for number in transaction.ledger.overdue(now):
            trial = transaction.ledger.open[number]
            transaction.record(Event(EventKind.EXPIRED, now, number, trial.arm, trial.timeout_reward))

    def _tell(self, trial: Trial | int, reward: float | None, charged: bool) -> None:
        with self._ledger.transaction(write=True) as transaction:
            record_outcome(transaction, trial, reward, charged, time.time())

    def _tell_many(self, outcomes: list[tuple[Trial | int, float]]) -> None:
        with self._ledger.transaction(write=True) as transaction:
            now = time.time()
            for trial, reward in outcomes:
                record_outcome(transaction, trial, reward, True, now)

    def _add(self, observations: list[tuple[int, float]]) -> None:
        with self._ledger.transaction(write=True) as transaction:
            now = time.time()
            for arm, reward in observations:
                number = transaction.ledger.asked + 1
                transaction.record(Event(EventKind.ASKED, now, number, arm))
                transaction.record(Event(EventKind.TOLD, now, number, arm, reward))

    def should_stop(self) -> bool:
        with self._ledger.transaction(write=False) as transaction:
            return transaction.ledger.stopped is not None

    def recommendation(self) -> Recommendation:
        with self._ledger.transaction(write=False) as transaction:
            return make_recommendation(transaction.ledger)

    def status(self) -> Status:
        with self._ledger.transaction(write=False) as transaction:
            return make_status(self.name, transaction.ledger, time.time())

    def pending(self) -> list[Pending]:
        with self._ledger.transaction(write=False) as transaction:
            return list_pending(transaction.ledger, time.time())

    def history(self) -> list[HistoryPoint]:
        with self._ledger.transaction(write=False) as transaction:
            return list_history(transaction.ledger)

    def explain(self) -> list[str]:
        with self._ledger.transaction(write=False) as transaction:
            return explain_decisions(transaction.ledger)

    def trials(self) -> list[TrialRow]:
        with self._ledger.transaction(write=False) as transaction:
            events = (event for _, event in transaction.session.events_after(0))
            return make_rows(self.settings, events, transaction.ledger.counted)

    def pause(self) -> None:
        self._record(EventKind.PAUSED)

    def resume(self) -> None:
        self._record(EventKind.RESUMED)

    def _stop(self, reason: str) -> None:
        self._record(EventKind.STOPPED, reason)

    def _describe(self, description: str | None) -> None:
        self._record(EventKind.DESCRIBED, description)

    def _record(self, kind: EventKind, note: str | None = None) -> None:
        with self._ledger.transaction(write=True) as transaction:
            transaction.record(Event(kind, time.time(), note=note))

    def _retire(self, arm: int, reason: str) -> None:
        with self._ledger.transaction(write=True) as transaction:
            active = transaction.ledger.decision.active
            if arm not in active or len(active) == 1:
                names = ", ".join(self.settings.arms[index] for index in active)
                raise InvalidValueError(
                    f"`arm` must be an active arm ({names}) and not the only one but got {self.settings.arms[arm]!r}."
                )
            transaction.record(Event(EventKind.RETIRED, time.time(), arm=arm, note=reason))

    def check(self) -> int:
        return self._ledger.check()
