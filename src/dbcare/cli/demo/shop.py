"""A simulated shop looking for its best home page, with visitors, several servers, and rewards that arrive late.

The study is a real one, in memory. Visitors who buy do so within minutes; that a visitor does not buy is known only
after half an hour, so rewards arrive out of order.
"""

import heapq
import random
import time
from collections import deque
from dataclasses import dataclass
from itertools import count

from dbcare.studies.results.status import Recommendation, Status
from dbcare.studies.settings import Settings
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.trial import Trial

RATES = {
    "Current page": 0.10,
    "20% off today": 0.12,
    "Handmade": 0.09,
    "Free shipping": 0.16,
    "Countdown": 0.07,
}
CURRENT = "Current page"
PRICE = 0.40  # of a visitor
FUTURE_VISITORS, PROFIT = 50_000, 20  # visitors after the study, and what a sale earns
VALUE = FUTURE_VISITORS * PROFIT
SERVERS = 8
SALE_MINUTES, NO_SALE_MINUTES = (2.0, 12.0), (28.0, 32.0)  # until it is known, at least and at most
RETRY_MINUTES = 3.0  # until a server without a trial asks again
RECENT_TRIALS = 50  # of which the recent shares are computed
MOMENTS_PER_DOUBLING = 100  # rewards, after which every second, third, fourth and so on is a moment

# The demo shows a typical run: of the runs with seeds 0 to 100, that with the median total loss. `make soak` checks it.
COMPARED_RUNS = 101
TYPICAL_SEED = 25
RUNS_THAT_CHOSE_BEST = 100


@dataclass(frozen=True)
class Shopper:
    """A visitor who was shown a page, and whether they will buy."""

    trial: Trial
    buys: bool


@dataclass(frozen=True)
class Moment:
    """The study right after a reward."""

    minutes: float
    status: Status
    choice: Recommendation
    recent: tuple[float, ...]  # each arm's share of the latest trials


def compute_total_loss(last: Moment) -> float:
    """Return what a finished study has cost in money: the trials, and what its choice loses."""
    assert last.choice.arm is not None  # every page has had visitors
    return last.choice.spent + (max(RATES.values()) - RATES[last.choice.arm]) * VALUE


def simulate(seed: int, *, only_last: bool = False) -> list[Moment]:
    """Run the whole study and return it reward by reward at first, and later every few rewards."""
    settings = Settings(tuple(RATES), cost=PRICE / VALUE, value=VALUE, baseline=RATES[CURRENT], seed=seed)
    store = MemoryStore()
    store.create("shop", settings.to_dict(), time.time())
    study = StoredStudy(store, "shop")
    chance, order = random.Random(seed), count()
    due: list[tuple[float, int, int, Shopper | None]] = [
        (0.1 * server, next(order), server, None) for server in range(SERVERS)
    ]
    latest: deque[str] = deque(maxlen=RECENT_TRIALS)
    moments: list[Moment] = []
    told = 0
    while due:
        now, _, server, visitor = heapq.heappop(due)
        if visitor is not None:
            study.tell(visitor.trial, visitor.buys)
            told += 1
            is_moment = not only_last and told % (1 + told // MOMENTS_PER_DOUBLING) == 0
            if is_moment or study.should_stop():
                shares = tuple(latest.count(name) / len(latest) for name in RATES)
                moments.append(Moment(now, *study.snapshot(), shares))
        if study.should_stop():
            break
        trial = study.ask(lease=None, worker=f"server {server}")
        if trial is None:
            heapq.heappush(due, (now + RETRY_MINUTES, next(order), server, None))
            continue
        latest.append(trial.arm)
        visitor = Shopper(trial, chance.random() < RATES[trial.arm])
        arrival = now + chance.uniform(*(SALE_MINUTES if visitor.buys else NO_SALE_MINUTES))
        heapq.heappush(due, (arrival, next(order), server, visitor))
    return moments
