"""Whatever happens in a study, what it has spent is the sum of what its counts cost."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dbcare.errors import AlreadyToldError
from dbcare.studies.record.ask_and_tell import hand_out, record_outcome
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.ledger import Ledger, OpenTrial, restore, summarize
from dbcare.studies.record.sync import RefusalCounter, Transaction
from dbcare.studies.results.report import make_status
from dbcare.studies.settings import Settings
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.trial import AskRequest

ARMS = ("A", "B", "C")
PRICES = (0.5, 2.0, 8.0)  # sums of these are exact
REPORTED = st.sampled_from([None, None, 0.25, 4.0])  # what a trial cost, if it is not the arm's price
LEASE = 2.0

STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(1, 4), st.sampled_from([None, 0.0])),
    st.tuples(st.just("tell"), st.integers(0, 39), st.tuples(st.sampled_from([0.0, 1.0, 5.0]), REPORTED)),
    st.tuples(
        st.just("fail"), st.integers(0, 39), st.one_of(st.just((False, None)), st.tuples(st.just(True), REPORTED))
    ),
    st.tuples(st.just("add"), st.integers(0, 2), st.sampled_from([0.0, 5.0])),
    st.tuples(st.just("wait"), st.integers(1, 8), st.none()),
    st.tuples(st.sampled_from(["stop", "retire"]), st.integers(0, 2), st.integers(0, 9)),
)


class Scene:
    """A study in memory, and a clock that is turned by hand."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.now = 0.0

    def take(self, step: tuple[str, Any, Any]) -> None:
        """Do one thing; a contradiction is refused and changes nothing."""
        what, one, other = step
        ledger = self.transaction.ledger
        self.now += 0.001
        if what == "ask":
            hand_out(self.transaction, AskRequest(one, LEASE, timeout_reward=other), self.now)
        elif what in ("tell", "fail") and ledger.asked:
            value, price = other
            reward, charged = (value, True) if what == "tell" else (None, value)
            try:
                record_outcome(self.transaction, one % ledger.asked + 1, reward, charged, self.now, price)
            except AlreadyToldError:
                return
        elif what == "add":
            number = ledger.asked + 1
            for kind, reward in ((EventKind.ASKED, None), (EventKind.TOLD, other)):
                self.transaction.record(Event(kind, self.now, number, one, reward))
        elif what == "wait":
            self.now += one
        elif what == "stop" and other == 0:  # rarely, or nothing would happen
            self.transaction.record(Event(EventKind.STOPPED, self.now, note="enough"))
        elif what == "retire" and other == 0 and one in ledger.decision.active and len(ledger.decision.active) > 1:
            self.transaction.record(Event(EventKind.RETIRED, self.now, arm=one, note="sold out"))


def total_of(charged: Iterable[Event | OpenTrial]) -> float:
    """Return what trials cost, in money."""
    return sum(PRICES[each.arm] if each.price is None else 16.0 * each.price for each in charged)


SEEN: Counter[str] = Counter()


@settings(max_examples=300, derandomize=True, deadline=None, database=None, phases=[Phase.generate])
@given(st.lists(STEPS, min_size=10, max_size=60))
def check_identity(steps: list[tuple[str, Any, Any]]) -> None:
    """Compare the status with the events, added up by hand."""
    options = Settings(arms=ARMS, cost=tuple(price / 16 for price in PRICES), value=16.0, sigma=1.0, max_ahead=12)
    store = MemoryStore()
    store.create("s", options.to_dict(), 0.0)
    with store.session("s", write=True) as session:
        scene = Scene(Transaction(session, Ledger(options), RefusalCounter()))
        for step in steps:
            scene.take(step)
    ledger, events = scene.transaction.ledger, scene.transaction.recorded
    rewarding = [e for e in events if e.kind in (EventKind.TOLD, EventKind.EXPIRED) and e.reward is not None]
    rewarded = Counter(event.arm for event in rewarding)
    failed = [event for event in events if event.kind is EventKind.FAILED and event.charged]
    surplus = [event for event in events if event.kind is EventKind.SURPLUS and event.charged]
    open_trials = [t for t in ledger.open.values() if t.status is not EventKind.ASKED and t.reward is not None]
    held = Counter(trial.arm for trial in open_trials)

    status = make_status(store.record("s"), ledger, scene.now)
    for arm, line in enumerate(status.arms):
        assert line.trials + line.late + held[arm] == rewarded[arm]
    counted = 16.0 * (ledger.standing()[1] or 0.0)
    assert counted >= sum(line.trials * min(PRICES[arm], 0.25) for arm, line in enumerate(status.arms))
    assert status.spent == counted + status.late_cost + status.failed_cost + status.surplus_cost + total_of(open_trials)
    assert status.spent == total_of([*failed, *surplus, *rewarding])
    assert status.late == sum(line.late for line in status.arms)
    assert (status.failed, status.failed_cost) == (len(failed), total_of(failed))
    assert (status.surplus, status.surplus_cost) == (len(surplus), total_of(surplus))
    assert status.rewards == sum(point.trials for point in ledger.statistics)
    if ledger.stopped is None:
        assert status.late == 0 or ledger.retired
    assert summarize(restore(options, summarize(ledger))) == summarize(ledger)
    SEEN.update({"late": status.late, "failed": status.failed, "surplus": status.surplus, "held": held.total()})


def test_spending_is_the_sum_of_what_the_counts_cost() -> None:
    """It is exact, for prices whose sums are; every kind of charge occurs."""
    SEEN.clear()
    check_identity()
    assert min(SEEN[kind] for kind in ("late", "failed", "surplus", "held")) > 10


def test_a_charge_that_is_not_counted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a ledger that charges surplus rewards without counting them breaks the identity."""
    apply = Ledger.apply

    def forget(ledger: Ledger, event: Event) -> None:
        apply(ledger, event)
        if event.kind is EventKind.SURPLUS:
            ledger.counts[event.arm].surplus = 0

    monkeypatch.setattr(Ledger, "apply", forget)
    with pytest.raises(AssertionError):
        check_identity()
