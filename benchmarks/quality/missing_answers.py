"""Measure how often a note says that answers go missing more from one arm than from another, rightly and wrongly.

Studies of rates run on a clock of their own: about a visitor a minute, answers within 25 minutes, and a lease of 30. In
the first case (10% against 12%), all buyers of the better arm answer after their lease and nothing says what that
means, so the worse arm looks better; in the others, nothing depends on the arm. Notes are looked for after every
visitor.
"""

import heapq
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.parts.bars import Bars
from dbcare.studies.record.ask_and_tell import hand_out, record_outcome
from dbcare.studies.record.ledger import Ledger
from dbcare.studies.record.sync import RefusalCounter, Transaction
from dbcare.studies.results.doubts import list_contradictions
from dbcare.studies.results.report import make_standing
from dbcare.studies.settings import Settings
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.trial import AskRequest

LEASE = 30.0


@dataclass(frozen=True)
class Shop:
    """What goes missing: buyers' answers by arm, outages, and a share of all answers; the cost says when it stops."""

    slow: tuple[float, float] = (0.0, 0.0)  # share of buyers who answer after their lease
    outages: int = 0  # of two hours
    severity: float = 1.0  # share of answers that an outage loses
    rates: tuple[float, float] = (0.10, 0.12)
    share: float = 0.0
    cost: float = 1e-12
    visitors: int = 2_000


@dataclass(frozen=True)
class Course:
    """How a study went: the recommended arm, its trials, and after how many each note was there first."""

    recommended: int | None
    trials: int
    asked: int | None
    found: int | None


def run(shop: Shop, seed: int) -> Course:
    """Run a study until it stops, or for so many visitors."""
    generator = np.random.default_rng([39, seed])
    outages = [(start, start + 120.0) for start in generator.uniform(0.0, 0.8 * shop.visitors, shop.outages)]
    settings = Settings(arms=("A", "B"), cost=shop.cost, baseline=0.1, max_ahead=100)
    store = MemoryStore()
    store.create("shop", settings.to_dict(), 0.0, None, make_standing(Ledger(settings)))
    with store.session("shop", write=False) as session:
        transaction = Transaction(session, Ledger(settings), RefusalCounter())
    ledger, answers, now = transaction.ledger, list[tuple[float, int, float]](), 0.0
    asked: int | None = None
    found: int | None = None
    while ledger.stopped is None and ledger.asked < shop.visitors:
        now += float(generator.exponential(1.0))
        while answers and answers[0][0] <= now:
            due, number, reward = heapq.heappop(answers)
            record_outcome(transaction, number, reward, True, due)
        for trial in hand_out(transaction, AskRequest(1, LEASE), now).trials:
            arm = ("A", "B").index(trial.arm)
            buys = generator.random() < shop.rates[arm]
            late = buys and generator.random() < shop.slow[arm]
            is_out = any(start <= now <= end for start, end in outages)
            is_lost = generator.random() < max(shop.share, is_out * shop.severity)
            if not is_lost:
                delay = 2.0 * LEASE if late else float(generator.uniform(1.0, 25.0))
                heapq.heappush(answers, (now + delay, trial.id, float(buys)))
        notes = list_contradictions(ledger)
        if asked is None and any("does that mean no?" in note for note in notes):
            asked = ledger.asked
        if found is None and any("differs by more than chance" in note for note in notes):
            found = ledger.asked
    return Course(ledger.recommended, ledger.asked, asked, found)


def main() -> None:
    bars = Bars(__doc__)
    with ProcessPoolExecutor(os.cpu_count()) as pool:

        def run_many(shop: Shop, studies: int) -> list[Course]:
            return list(pool.map(partial(run, shop), range(studies // bars.size(1, 40)), chunksize=5))

        slow = run_many(Shop(slow=(0.0, 1.0)), 400)
        share = float(np.mean([each.found is not None for each in slow]))
        bars.report("slow buyers: noted within 2,000 trials", share, 0.95, at_least=True)
        print(f"  half of them after {np.median([each.found or np.inf for each in slow]):.0f} trials")
        for cost in (2e-5, 2e-6, 2e-7, 2e-8, 2e-9):  # without a bar: most stop before it can be known
            early = run_many(Shop(slow=(0.0, 1.0), cost=cost), 200)
            print(
                f"  stops at a cost of {cost:g}: after {np.median([each.trials for each in early]):.0f} trials, "
                f"A chosen in {np.mean([each.recommended == 0 for each in early]):.0%}, "
                f"noted before in {np.mean([each.found is not None for each in early]):.0%}, "
                f"asked what it means in {np.mean([each.asked is not None for each in early]):.0%}"
            )
        for name, shop in (
            ("no answer missing", Shop()),
            ("2% missing", Shop(share=0.02)),
            ("20% missing", Shop(share=0.2)),
            ("slow buyers of both", Shop(slow=(0.5, 0.5))),
            ("three outages", Shop(outages=3)),
            ("three outages, 5% missing", Shop(outages=3, share=0.05)),
            ("three outages that lose half, 10% against 30%", Shop(outages=3, severity=0.5, rates=(0.1, 0.3))),
        ):
            courses = run_many(shop, 400)
            bars.report(f"{name}: noted", float(np.mean([each.found is not None for each in courses])), 0.01)
    bars.save()
