"""A shop that looks for its best front page, simulated: visitors, several servers, answers that come late.

The study is a real one, in memory. A visitor who buys does so within minutes; that one does not buy is known only after
half an hour, so answers come in another order than they were asked for.
"""

import heapq
import random
import time
from collections import deque
from dataclasses import dataclass
from itertools import count

from dbcare.live.report import Recommendation, Status
from dbcare.live.settings import Settings
from dbcare.live.stored_study import StoredStudy
from dbcare.live.stores.memory import MemoryStore
from dbcare.live.trial import Trial

RATES = {
    "As it is now": 0.10,
    "20% off today": 0.14,
    "Made by hand": 0.12,
    "Free delivery": 0.16,
    "Countdown": 0.07,
}
TODAY = "As it is now"
PRICE = 0.40  # of a visitor
SEASON, PROFIT = 4_000, 15  # visitors to come, and what a sale earns
VALUE = SEASON * PROFIT
SERVERS = 8
SALE, NO_SALE = (2.0, 12.0), (28.0, 32.0)  # minutes until it is known
PATIENCE = 3.0  # minutes until a server without a trial asks again
RECENT = 50  # asks that the present shares are of


@dataclass(frozen=True)
class Shopper:
    """Someone who was shown a page, and what they will do."""

    trial: Trial
    buys: bool


@dataclass(frozen=True)
class Moment:
    """The study right after an answer."""

    minutes: float
    status: Status
    choice: Recommendation
    recent: tuple[float, ...]  # each arm's share of the latest asks


def simulate(seed: int) -> list[Moment]:
    """The whole study, answer by answer."""
    settings = Settings(tuple(RATES), cost=PRICE / VALUE, value=VALUE, bounds=(0.0, 1.0), seed=seed)
    store = MemoryStore()
    store.create("shop", settings.to_dict(), time.time())
    study = StoredStudy(store, "shop")
    chance, order = random.Random(seed), count()
    due: list[tuple[float, int, int, Shopper | None]] = [
        (0.1 * server, next(order), server, None) for server in range(SERVERS)
    ]
    latest: deque[str] = deque(maxlen=RECENT)
    moments: list[Moment] = []
    while due:
        now, _, server, visitor = heapq.heappop(due)
        if visitor is not None:
            study.tell(visitor.trial, visitor.buys)
            shares = tuple(latest.count(name) / len(latest) for name in RATES)
            moments.append(Moment(now, study.status(), study.recommendation(), shares))
        if study.should_stop():
            break
        trial = study.ask(lease=None, worker=f"server {server}")
        if trial is None:
            heapq.heappush(due, (now + PATIENCE, next(order), server, None))
            continue
        latest.append(trial.arm)
        visitor = Shopper(trial, chance.random() < RATES[trial.arm])
        known = now + chance.uniform(*(SALE if visitor.buys else NO_SALE))
        heapq.heappush(due, (known, next(order), server, visitor))
    return moments
