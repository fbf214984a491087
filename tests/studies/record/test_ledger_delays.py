"""Rewards that determine their own delay do not bias a study: a sale is known at once, no sale only after a timeout.

The studies are real, with a simulated clock: 8 workers with one visitor each; a 1 is told at once, a 0 when the lease
ends. The tests compare 400 or 500 short studies with as many without delay, and in `make soak` 3,000 long ones; over
all comparisons, |z| > 5.5 has a probability of less than 1e-6.
"""

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.ledger import Ledger
from dbcare.studies.settings import Settings

pytestmark = pytest.mark.statistical

RATES = (0.9, 0.7)
WORKERS = 8
TIMEOUT = 1.0
LIMIT = 5.5

Outcome = tuple[bool, int]  # whether the worse arm was chosen, and how many rewards were counted


class AsAsked:
    """What we ship: rewards count in the order asked."""

    def __init__(self, settings: Settings) -> None:
        self.ledger = Ledger(settings)
        self.decision = self.ledger.decision

    def ask(self, now: float) -> int | None:
        arm = self.ledger.next_arm()
        if arm is not None:
            block, number = self.decision.next_block(arm), self.ledger.asked + 1
            self.ledger.apply(Event(EventKind.ASKED, now, number, arm, 0.0, expires=now + TIMEOUT, block=block))
        return arm

    def tell(self, number: int, arm: int, reward: float, now: float) -> None:
        self.ledger.apply(Event(EventKind.TOLD if reward else EventKind.EXPIRED, now, number, arm, reward))

    @property
    def counted(self) -> int:
        return sum(statistics.trials for statistics in self.ledger.statistics)


class AsTheyArrive(AsAsked):
    """The negative control: the same policy, but a reward counts when it arrives."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.rewards = 0

    def ask(self, now: float) -> int | None:
        arm = self.decision.next_arm()
        if arm is not None:
            self.decision.add_pending(arm)
        return arm

    def tell(self, number: int, arm: int, reward: float, now: float) -> None:
        self.decision.remove_pending(arm)
        self.decision.count(arm, reward)
        self.rewards += 1

    @property
    def counted(self) -> int:
        return self.rewards


class WithoutSlowAnswers(AsAsked):
    """The negative control for rounds: they do without answers that come late."""

    def tell(self, number: int, arm: int, reward: float, now: float) -> None:
        self.ledger.apply(Event(EventKind.TOLD if reward else EventKind.EXPIRED, now, number, arm, reward or None))


def play_without_delay(study: AsAsked, chance: np.random.Generator) -> Outcome:
    """Play one visitor after another, without delay."""
    while (arm := study.ask(0.0)) is not None:
        study.tell(study.ledger.asked, arm, float(chance.random() < RATES[arm]), 0.0)
    return study.decision.recommended == 1, study.counted


def play_with_delays(study: AsAsked, chance: np.random.Generator) -> Outcome:
    """Play with eight workers; one whose reward is 0 is busy until its lease expires."""
    free = [(float(chance.random()), worker) for worker in range(WORKERS)]
    due: list[tuple[float, int, int, int]] = []
    heapq.heapify(free)
    asked = 0
    while not study.decision.has_stopped:
        if due and (not free or due[0][0] <= free[0][0]):
            now, number, arm, worker = heapq.heappop(due)
            study.tell(number, arm, 0.0, now)
            heapq.heappush(free, (now, worker))
            continue
        now, worker = heapq.heappop(free)
        chosen = study.ask(now)
        if chosen is None:  # waits for pending trials
            heapq.heappush(free, (due[0][0] + 1e-9, worker))
            continue
        asked += 1
        if chance.random() < RATES[chosen]:
            study.tell(asked, chosen, 1.0, now)
            heapq.heappush(free, (now + 0.01 * float(chance.random()), worker))
        else:
            heapq.heappush(due, (now + TIMEOUT, asked, chosen, worker))
    return study.decision.recommended == 1, study.counted


def differences(one: list[Outcome], other: list[Outcome]) -> list[float]:
    """Return z for the difference in error rate, and for that in rewards counted."""
    columns = [np.array(outcomes, dtype=float).T for outcomes in (one, other)]
    return [
        float((a.mean() - b.mean()) / np.sqrt(a.var() / len(a) + b.var() / len(b)))
        for a, b in zip(*columns, strict=True)
    ]


@pytest.mark.parametrize(("cost", "studies"), [(6e-3, 500), pytest.param(1e-3, 3_000, marks=pytest.mark.soak)])
def test_delays_that_depend_on_the_reward_change_neither_errors_nor_spending(cost: float, studies: int) -> None:
    settings = Settings(arms=("A", "B"), cost=cost, bounds=(0.0, 1.0), max_ahead=16)
    plain = play_studies(settings, studies, play_without_delay, AsAsked, 1)
    errors, spending = differences(play_studies(settings, studies, play_with_delays, AsAsked, 2), plain)
    assert abs(errors) < LIMIT
    assert abs(spending) < LIMIT
    errors, spending = differences(play_studies(settings, studies, play_with_delays, AsTheyArrive, 3), plain)
    assert abs(errors) > LIMIT
    assert spending > LIMIT


@pytest.mark.parametrize("blocks", [{"rounds": True}, {"blocks": 200}], ids=str)
def test_delays_change_nothing_in_blocks(blocks: dict[str, Any]) -> None:
    """Rounds wait for slow answers, and rewards of a pool for those asked before."""
    settings = Settings.from_options(["A", "B"], cost=1e-2, bounds=(0.0, 1.0), max_ahead=16, **blocks)
    plain = play_studies(settings, 400, play_without_delay, AsAsked, 4)
    errors, spending = differences(play_studies(settings, 400, play_with_delays, AsAsked, 5), plain)
    assert abs(errors) < LIMIT
    assert abs(spending) < LIMIT
    wrong = differences(play_studies(settings, 100, play_with_delays, WithoutSlowAnswers, 6), plain)
    assert max(map(abs, wrong)) > LIMIT


def play_studies(
    settings: Settings,
    studies: int,
    play: Callable[[AsAsked, np.random.Generator], Outcome],
    kind: type[AsAsked],
    stream: int,
) -> list[Outcome]:
    """Play studies, each with random numbers of its own."""
    return [play(kind(settings), np.random.default_rng((stream, number))) for number in range(studies)]
