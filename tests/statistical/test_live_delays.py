"""Rewards that decide their own delay do not bias a study: a sale is known at once, no sale only after a time-out.

The studies are real, with a clock of their own: 8 workers, one visitor each, 1 told at once, 0 by the lease's end. Each
test compares 3,000 studies with as many without delay; |z| > 5.5 has a chance of less than 1e-6, in all four looks.
"""

import heapq
from collections.abc import Callable

import numpy as np

from dbcare.live.events import Event, EventKind
from dbcare.live.ledger import Ledger
from dbcare.live.settings import Settings

RATES = (0.9, 0.7)
SETTINGS = Settings(arms=("A", "B"), cost=1e-3, bounds=(0.0, 1.0), max_ahead=16)
STUDIES = 3_000
WORKERS = 8
TIMEOUT = 1.0
LIMIT = 5.5

Outcome = tuple[bool, int]  # whether the worse arm was chosen, and how many rewards had been counted


class AsAsked:
    """What we ship: answers count in the order asked."""

    def __init__(self) -> None:
        self.ledger = Ledger(SETTINGS)
        self.decision = self.ledger.decision

    def ask(self, now: float) -> int | None:
        arm = self.ledger.next_arm()
        if arm is not None:
            self.ledger.apply(Event(EventKind.ASKED, now, self.ledger.asked + 1, arm, 0.0, expires=now + TIMEOUT))
        return arm

    def answer(self, number: int, arm: int, reward: float, now: float) -> None:
        self.ledger.apply(Event(EventKind.TOLD if reward else EventKind.EXPIRED, now, number, arm, reward))

    @property
    def counted(self) -> int:
        return sum(tally.trials for tally in self.ledger.tallies)


class AsTheyArrive(AsAsked):
    """The negative control: the same policy, but an answer counts when it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.rewards = 0

    def ask(self, now: float) -> int | None:
        arm = self.decision.next_arm()
        if arm is not None:
            self.decision.sent(arm)
        return arm

    def answer(self, number: int, arm: int, reward: float, now: float) -> None:
        self.decision.back(arm)
        self.decision.count(arm, reward)
        self.rewards += 1

    @property
    def counted(self) -> int:
        return self.rewards


def at_once(chance: np.random.Generator) -> Outcome:
    """One visitor after the other, without delay."""
    study = AsAsked()
    while (arm := study.ask(0.0)) is not None:
        study.answer(study.ledger.asked, arm, float(chance.random() < RATES[arm]), 0.0)
    return study.decision.recommended == 1, study.counted


def delayed(study: AsAsked, chance: np.random.Generator) -> Outcome:
    """Eight workers; one that has a 0 is busy until its lease runs out."""
    free = [(float(chance.random()), worker) for worker in range(WORKERS)]
    due: list[tuple[float, int, int, int]] = []
    heapq.heapify(free)
    asked = 0
    while not study.decision.stopped:
        if due and (not free or due[0][0] <= free[0][0]):
            now, number, arm, worker = heapq.heappop(due)
            study.answer(number, arm, 0.0, now)
            heapq.heappush(free, (now, worker))
            continue
        now, worker = heapq.heappop(free)
        chosen = study.ask(now)
        if chosen is None:  # waits for what is out
            heapq.heappush(free, (due[0][0] + 1e-9, worker))
            continue
        asked += 1
        if chance.random() < RATES[chosen]:
            study.answer(asked, chosen, 1.0, now)
            heapq.heappush(free, (now + 0.01 * float(chance.random()), worker))
        else:
            heapq.heappush(due, (now + TIMEOUT, asked, chosen, worker))
    return study.decision.recommended == 1, study.counted


def apart(one: list[Outcome], other: list[Outcome]) -> list[float]:
    """z of the difference in error rate, and of that in rewards counted."""
    columns = [np.array(each, dtype=float).T for each in (one, other)]
    return [
        float((a.mean() - b.mean()) / np.sqrt(a.var() / len(a) + b.var() / len(b)))
        for a, b in zip(*columns, strict=True)
    ]


def studies(make: Callable[[np.random.Generator], Outcome], stream: int) -> list[Outcome]:
    return [make(np.random.default_rng((stream, number))) for number in range(STUDIES)]


def test_delays_that_depend_on_the_reward_change_neither_errors_nor_spending() -> None:
    plain = studies(at_once, 1)
    errors, spending = apart(studies(lambda chance: delayed(AsAsked(), chance), 2), plain)
    assert abs(errors) < LIMIT
    assert abs(spending) < LIMIT
    errors, spending = apart(studies(lambda chance: delayed(AsTheyArrive(), chance), 3), plain)
    assert errors > LIMIT
    assert spending > LIMIT
