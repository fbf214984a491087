"""Missing answers: found where they depend on the arm, never because of pending trials, and rarely for no reason."""

import heapq
import itertools
import math
import re
import time
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from dbcare.errors import InvalidValueError
from dbcare.studies.record.ask_and_tell import hand_out, record_outcome
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.ledger import Ledger
from dbcare.studies.record.sync import RefusalCounter, Transaction
from dbcare.studies.results.doubts import (
    MISSING_ALARM_CHANCE,
    Shares,
    list_contradictions,
    measure_divergence,
    weigh_shares,
)
from dbcare.studies.results.report import make_standing
from dbcare.studies.settings import Settings
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.trial import AskRequest
from tests.helpers.memory_studies import create_memory_study

MAX_DELAY = 600.0  # one trial is asked per unit of time, so about 300 are pending
MEANS = {"A": -3.0, "B": 0.0, "C": 0.0}  # A is soon hardly asked any more
LIMIT = math.log(2.0 * len(MEANS) / 1e-6)
MISSING = "differs by more than chance"


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
    """Eight honest studies: the chance that three or more of them raise a false alarm is 5.5e-5 at most, and measured
    far lower; none of these does.

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
        assert not any(MISSING in note for note in list_contradictions(ledger))
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
        assert MISSING in note


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
        for statistics, missing in zip(transaction.ledger.statistics, (60, 66), strict=True):
            statistics.interruptions = missing  # as if none of them had followed another
            statistics.wake = statistics.missing_in_wake = 0
        for counts in transaction.ledger.counts:
            counts.added = 0
        assert any(MISSING in note for note in list_contradictions(transaction.ledger))


@pytest.mark.parametrize(
    "pair",
    [
        (Shares(3, 10), Shares(0, 0)),
        (Shares(0, 40), Shares(6, 35)),
        (Shares(1, 5, 1, 2), Shares(1, 6, 2, 3)),
        (Shares(6, 8, 0, 4), Shares(2, 9, 1, 5)),  # fewer in the wake: the same rate fits best
    ],
)
def test_evidence_is_the_mixture_over_the_largest_likelihood(pair: tuple[Shares, Shares]) -> None:
    """Against quadrature over all rates, and a search for the two common ones."""
    mixed = 1.0
    for some, of in [half for own in pair for half in (own[:2], own[2:])]:
        mixed *= integrate.quad(
            lambda angle, some=some, of=of: (
                2.0 / math.pi * math.sin(angle) ** (2 * some) * math.cos(angle) ** (2 * (of - some))
            ),
            0.0,
            math.pi / 2.0,
        )[0]  # the rate is the squared sine, which makes Jeffreys' prior uniform
    some, of, missing, wake = np.sum(pair, axis=0)
    rates = np.linspace(0.0, 1.0, 100_001)
    fresh, after = (rates**a * (1.0 - rates) ** (b - a) for a, b in ((some, of), (missing, wake)))
    largest = np.max(fresh * np.maximum.accumulate(after[::-1])[::-1])
    assert weigh_shares(*pair) == pytest.approx(math.log(mixed / largest), rel=1e-6)


def test_evidence_is_bounded_however_arms_are_chosen_and_whenever_one_looks() -> None:
    """Exactly, over all outcomes of 14 trials: arms take turns, or one is tried again, and one looks each time.

    The chance that the evidence ever exceeds 1/alpha is at most alpha, at one rate of missing answers or with outages.
    Negative controls: not so if rates differ, nor, over 40 trials, if trials in the wake of a missing answer count as
    others do, but only where they are answered.
    """

    def reach(limit: float, rates: Any, again: bool, trials: int = 14, merges: bool = False) -> float:
        """Return the chance that the evidence ever exceeds a limit; rates are by wake, then by arm."""

        @cache
        def go(first: Shares, second: Shares, arm: int, wake: bool, left: int) -> float:
            if weigh_shares(first, second) >= math.log(limit):
                return 1.0
            if left == 0:
                return 0.0
            total = 0.0
            for missing in (False, True):
                if merges:
                    change = Shares(missing and not wake, not (missing and wake))
                else:
                    change = Shares(0, 0, missing, 1) if wake else Shares(missing, 1)
                after = [first, second]
                after[arm] = Shares(*map(sum, zip(after[arm], change, strict=True)))
                chance = rates[wake][arm] if missing else 1.0 - rates[wake][arm]
                total += chance * go(after[0], after[1], arm if missing and again else 1 - arm, missing, left - 1)
            return total

        return go(Shares(0, 0), Shares(0, 0), 0, False, trials)

    alike = [((rate, rate), (rate, rate)) for rate in (0.03, 0.2, 0.5, 0.9)]
    outages = [((rate, rate), (0.9, 0.9)) for rate in (0.03, 0.3)]
    for limit, rates, again in itertools.product((1.5, 3.0, 10.0), (*alike, *outages), (False, True)):
        assert reach(limit, rates, again) <= 1.0 / limit
    assert reach(3.0, ((0.02, 0.9), (0.02, 0.9)), False) > 1.0 / 3.0
    assert reach(10.0, ((0.8, 0.8), (0.8, 0.8)), False, 40, merges=True) > 1.0 / 10.0


@pytest.mark.parametrize("lease", [None, 60.0])
def test_what_is_in_the_wake_is_known_before_the_outcome(lease: float | None) -> None:
    """Over all outcomes of 8 trials of two arms, asked together, which fail or expire at a rate p.

    The mean number of interruptions of each arm is p times that of its trials outside of a wake. Negative control: not
    so if the trials in the wake that were answered are added.
    """
    rate, settings = 0.3, Settings(arms=("A", "B"), cost=1e-12, baseline=0.1, max_ahead=8)
    found = np.zeros((2, 4))
    for missing in itertools.product((False, True), repeat=8):
        ledger = Ledger(settings)
        for number in range(1, 9):
            due = None if lease is None else 1.0 + lease
            ledger.apply(Event(EventKind.ASKED, 1.0, number, number // 5, expires=due))
        for number, is_missing in enumerate(missing, start=1):
            if not is_missing:
                ledger.apply(Event(EventKind.TOLD, 2.0, number, number // 5, 0.0))
        for number, is_missing in enumerate(missing, start=1):
            if is_missing:
                kind = EventKind.FAILED if lease is None else EventKind.EXPIRED
                ledger.apply(Event(kind, 100.0, number, number // 5))
        chance = rate ** sum(missing) * (1.0 - rate) ** (8 - sum(missing))
        for place, own in enumerate(ledger.statistics):
            found[place] += chance * np.array([own.interruptions, own.answered, own.missing_in_wake, own.wake])
    interruptions, answered, lost, wake = found.T
    assert answered + interruptions + lost == pytest.approx(4.0, rel=1e-9)
    assert interruptions == pytest.approx(rate * (4.0 - wake), rel=1e-9)
    assert lost == pytest.approx(rate * wake, rel=1e-9)
    assert np.all(interruptions < 0.9 * rate * (interruptions + answered))


class SlowShop:
    """A study of rates on a clock of its own: a visitor each minute, answers within 25 minutes, a lease of 30.

    Buyers of some arms answer after that; while an outage lasts, nobody does.
    """

    def __init__(self, seed: int, slow: tuple[bool, bool], outages: int = 0) -> None:
        self.generator = np.random.default_rng([9, seed])
        self.slow = slow
        self.outages = [(start, start + 120.0) for start in self.generator.uniform(0.0, 800.0, outages)]
        settings = Settings(arms=("A", "B"), cost=1e-12, baseline=0.1, max_ahead=100)
        store = MemoryStore()
        store.create("s", settings.to_dict(), 0.0, None, make_standing(Ledger(settings)))
        with store.session("s", write=False) as session:
            self.transaction = Transaction(session, Ledger(settings), RefusalCounter())

    def find_note(self, visitors: int) -> tuple[int | None, int | None]:
        """Return after how many visitors the two notes were there first: on expired trials, and on the difference."""
        ledger, answers = self.transaction.ledger, list[tuple[float, int, float]]()
        found: list[int | None] = [None, None]
        for now in map(float, range(visitors)):
            while answers and answers[0][0] <= now:
                due, number, reward = heapq.heappop(answers)
                record_outcome(self.transaction, number, reward, True, due)
            for trial in hand_out(self.transaction, AskRequest(1, 30.0), now).trials:
                arm = ("A", "B").index(trial.arm)
                buys = self.generator.random() < (0.10, 0.12)[arm]
                late = buys and self.slow[arm]
                if not any(start <= now <= end for start, end in self.outages):
                    delay = 60.0 if late else float(self.generator.uniform(1.0, 25.0))
                    heapq.heappush(answers, (now + delay, trial.id, float(buys)))
            notes = list_contradictions(ledger) if now % 10.0 == 0.0 else ()
            for place, words in enumerate(("does that mean no?", MISSING)):
                if found[place] is None and any(words in note for note in notes):
                    found[place] = int(now)
        return found[0], found[1]


def test_slow_buyers_are_noted() -> None:
    """20 shops with rates of 10% and 12%, where the better arm's buyers answer after their lease.

    All are noted within 2,000 visitors, and asked what a missing answer means within 200. If 95% were, fewer than 12
    would be with a chance below 1e-6. Negative controls: a shop without such a difference, with three outages of two
    hours, has a note on expired trials, but none on a difference; one without missing answers has neither.
    """
    assert stats.binom.cdf(11, 20, 0.95) < 1e-6
    slow = [SlowShop(seed, (False, True)).find_note(2_000 if seed == 0 else 1_200) for seed in range(20)]
    assert all(asked is not None and asked < 200 for asked, _ in slow)
    assert sum(found is not None for _, found in slow) >= 19
    outages = [SlowShop(seed, (False, False), outages=3).find_note(1_000) for seed in range(10)]
    assert all(asked is not None for asked, _ in outages)
    assert stats.binom.sf(3, 10, MISSING_ALARM_CHANCE) < 1e-5
    assert sum(found is not None for _, found in outages) <= 3
    assert SlowShop(0, (False, False)).find_note(600) == (None, None)


def test_what_a_missing_answer_means_is_asked_once_it_matters() -> None:
    """At the first trial that expires in a study of rates, unless that is stated; never a reason to refuse a study."""
    for settings, asks in (
        ({"binary": True}, True),
        ({"baseline": 0.1}, True),
        ({"binary": True, "missing": "at random"}, False),
        ({"binary": True, "timeout_reward": 0.0}, False),
        ({"sigma": 1.0}, False),
    ):
        study = create_memory_study(**{"arms": ("A", "B"), "cost": 1e-6, "sigma": None} | settings)
        study.ask(lease=1e-3)
        assert study.status().notes == ()
        time.sleep(0.01)
        study.ask(lease=3_600)
        notes = study.status().notes
        assert [note.startswith("1 trial has expired without an answer (1 of A): does that") for note in notes] == (
            [True] if asks else []
        )
    with pytest.raises(InvalidValueError, match="`missing` must be one of unknown, at random but got 'never'"):
        create_memory_study(arms=("A", "B"), cost=1e-6, sigma=None, binary=True, missing="never")


def test_a_late_answer_in_time_takes_the_expiry_back() -> None:
    """A trial that expired, and is told before another took its place, has not gone missing."""
    study = create_memory_study(arms=("A", "B"), cost=1e-6, sigma=None, binary=True)
    study.ask(lease=3_600)  # nothing asked after it counts yet
    second = study.ask(lease=1e-3)
    assert second is not None
    time.sleep(0.01)
    study.pause()
    study.ask()  # notices the expiry, and hands out nothing
    assert len(study.status().notes) == 1
    study.tell(second, 1)
    assert study.status().notes == ()
