"""Sample-ratio mismatch: found where answers depend on the arm, and never because trials are pending."""

import heapq
import math
import re
from collections import Counter

import numpy as np
from helpers.memory_studies import create_memory_study

from dbcare.live.ask import hand_out
from dbcare.live.diagnostics import list_contradictions
from dbcare.live.events import EventKind
from dbcare.live.ledger import Ledger
from dbcare.live.settings import Settings
from dbcare.live.significance import FALSE_ALARM_CHANCE, measure_divergence
from dbcare.live.stores.memory import MemoryStore
from dbcare.live.tell import record_outcome
from dbcare.live.transaction import RefusalCounter, Transaction
from dbcare.live.trial import AskRequest

MAX_DELAY = 600.0  # one trial is asked per unit of time, so about 300 are pending
MEANS = {"A": -3.0, "B": 0.0, "C": 0.0}  # A is soon hardly asked any more
LIMIT = math.log(2.0 * len(MEANS) / FALSE_ALARM_CHANCE)


class Shop:
    """A study on a clock of its own: answers take their time, and some trials fail."""

    def __init__(self, seed: int, failing: dict[str, float]) -> None:
        self.generator = np.random.default_rng(seed)
        self.failing = failing
        settings = Settings(arms=tuple(MEANS), cost=1e-12, sigma=1.0, max_ahead=5_000)
        store = MemoryStore()
        store.create("s", settings.to_dict(), 0.0)
        with store.session("s", write=False) as session:  # in memory, it stays of use
            self.transaction = Transaction(session, Ledger(settings), RefusalCounter())
        self.answers: list[tuple[float, int, float | None]] = []

    def open(self, visitors: int) -> Ledger:
        """Ask for one trial after the other, and tell what is due; return how the study stands."""
        for now in map(float, range(visitors)):
            while self.answers and self.answers[0][0] <= now:
                due, number, answer = heapq.heappop(self.answers)
                record_outcome(self.transaction, number, answer, True, due)
            for trial in hand_out(self.transaction, AskRequest(1, None), now).trials:
                fails = self.generator.random() < self.failing[trial.arm]
                reward = self.generator.normal(MEANS[trial.arm])
                due = now + self.generator.uniform(0.0, MAX_DELAY)
                heapq.heappush(self.answers, (due, trial.id, None if fails else float(reward)))
        return self.transaction.ledger

    def count_events(self, kind: EventKind) -> list[int]:
        """Return how many events of a kind each arm had."""
        return [sum(e.kind is kind and e.arm == arm for e in self.transaction.recorded) for arm in range(3)]


def compare_naively(asked: list[int], answered: list[int]) -> float:
    """Return the largest statistic of a check that takes every trial without an answer for missing."""
    overall = 1.0 - sum(answered) / sum(asked)
    shares = [1.0 - some / all_of for some, all_of in zip(answered, asked, strict=True)]
    return max(n * measure_divergence(share, overall) for n, share in zip(asked, shares, strict=True))


def test_pending_trials_are_not_missing() -> None:
    """Eight honest studies, looked at once each: the chance of any false alarm is at most 8 x 1e-6.

    Negative control: pending trials, most of them of the arm that is asked more and more often, do mislead a check
    that counts them as missing.
    """
    misled = 0
    for seed in range(8):
        shop = Shop(seed, dict.fromkeys(MEANS, 0.1))
        ledger = shop.open(1_300)
        assert ledger.counted > 500
        assert sum(ledger.waiting) > 200
        assert sum(counts.missing for counts in ledger.counts) > 30
        assert not any("sample-ratio" in note for note in list_contradictions(ledger))
        misled += compare_naively(shop.count_events(EventKind.ASKED), shop.count_events(EventKind.TOLD)) > LIMIT
    assert misled > 4


def test_answers_that_depend_on_the_arm_are_found() -> None:
    """The note has the numbers of trials whose turn has come, as the events have them."""
    for seed in range(2):
        shop = Shop(seed, {"A": 0.0, "B": 0.0, "C": 0.3})
        ledger = shop.open(1_800)
        (note,) = [note for note in list_contradictions(ledger) if note.startswith("C: ")]
        numbers = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", note)]
        events = [event for event in shop.transaction.recorded if event.trial <= ledger.counted]
        answered, asked = (
            Counter(e.arm for e in events if e.kind is kind) for kind in (EventKind.TOLD, EventKind.ASKED)
        )
        others = [answered[0] + answered[1], asked[0] + asked[1]]
        assert numbers[:4] == [answered[2], asked[2], *others]
        assert "(sample-ratio mismatch, with " in note


def test_observations_from_elsewhere_are_no_trials() -> None:
    """2,000 of them are added, which are never missing, next to trials of both arms of which a third fail.

    Negative control: taken for trials, they raise the alarm.
    """
    study, generator = create_memory_study(arms=("A", "B"), cost=1e-9, max_ahead=400), np.random.default_rng(1)
    for trial in study.ask(400):
        fails = bool(generator.random() < 1 / 3)
        study.tell(trial, None if fails else float(generator.normal()), failed=fails)
    study.add([("A", float(reward)) for reward in generator.normal(size=2_000)])
    assert study.status().failed > 100
    assert study.status().notes == ()
    with study._ledger.read() as transaction:
        assert [counts.added for counts in transaction.ledger.counts] == [2_000, 0]
        for counts in transaction.ledger.counts:
            counts.added = 0
        assert any("sample-ratio" in note for note in list_contradictions(transaction.ledger))
