"""Measure BreakevenRounds, which compares arms within the blocks that they share.

Totals are what was spent plus what the choice loses. Gaussian blocks: one arm of K is better by a gap, in standard
deviations of a reward, at a cost of 1e-4; the base is Breakeven with a known sigma that never asks the same question
twice. A pool: 200 questions and six arms, whose mean scores vary by 0.1, with a standard deviation of 0.5 and a
correlation of 0.5. Folds: ten matrices of cross-validation scores (`fold_scores.py`), at a price of 1 per fit. There
and in pools, losses are those on these very blocks, and the base is the price of all of them.
"""

import math
import time
from collections.abc import Iterable

import numpy as np

from benchmarks.parts.bars import Bars
from benchmarks.parts.fold_scores import SCORES, make_scores
from dbcare import Bandit, Breakeven, BreakevenRounds, Loss, Policy, Risk, evaluate
from dbcare.problem import GaussianBlocks, ScoreTable

CELLS = [
    (2, 0.1), (2, 0.3), (2, 1.0), (4, 0.2), (4, 0.5), (8, 0.1), (8, 0.3), (8, 1.0), (16, 0.5), (32, 0.2), (32, 1.0),
]  # arms and gap  # fmt: skip
COST = 1e-4
LONG_POOL = 6_000  # blocks, more than a run needs
RUNS = {"rounds": 8_000, "pool": 1_000}
CORRELATIONS = {0.0: 1.25, 0.5: 0.78, 0.9: 0.35}  # and the bar
DRIFT, PERIOD = 0.5, 300.0
QUESTIONS, ASKED, PRICE, VALUE = 200, 6, 0.01, 10_000.0
SPREADS = (0.1, 0.05, 0.2)  # of the arms' means; the first has the bar
TABLES, ORDERS = 200, 50


def make_blocks(arms: int, gap: float, correlation: float = 0.0, drift: float = 0.0) -> GaussianBlocks:
    """Return arms of which the first is better."""
    return GaussianBlocks.of([gap] + [0.0] * (arms - 1), correlation=correlation, drift=drift, period=PERIOD)


def measure_risk(policy: Policy, bandit: Bandit, runs: int, seed: int = 1) -> float:
    """Return the total risk of a policy."""
    return evaluate(policy, bandit, runs=runs, seed=seed).risk


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    return math.exp(float(np.mean(np.log(list(ratios)))))


def measure_blocks(bars: Bars) -> None:
    """Report the risk of rounds and pools over that of Breakeven on fresh blocks."""
    runs = bars.size(RUNS, {"rounds": 200, "pool": 25})
    base = {
        (loss, cell): measure_risk(
            Breakeven(Risk(loss, COST), cell[0], 1.0, math.inf), Bandit.one_sparse(*cell), runs["rounds"], seed=2
        )
        for loss in Loss
        for cell in CELLS
    }
    largest = 0.0
    for correlation, bar in CORRELATIONS.items():
        ratios = {}
        for loss, mode, cell in ((loss, mode, cell) for loss in Loss for mode in RUNS for cell in CELLS):
            policy = BreakevenRounds(Risk(loss, COST), cell[0], pool=LONG_POOL if mode == "pool" else None)
            risk = measure_risk(policy, make_blocks(*cell, correlation), runs[mode])
            ratios[loss, mode, cell] = risk / base[loss, cell]
        parts = {
            f"{mode}, {loss}": geometric_mean(ratios[loss, mode, cell] for cell in CELLS)
            for loss in Loss
            for mode in RUNS
        }
        largest = max(largest, *ratios.values())
        bars.report(
            f"blocks over fresh blocks, correlation {correlation:g}", geometric_mean(ratios.values()), bar, **parts
        )
    bars.report("the same, largest of all cells", largest, 1.8)


def measure_drift(bars: Bars) -> None:
    """Report the risk of rounds with a common drift over that without, and as a control that of Breakeven."""
    ratios: dict[str, list[float]] = {"rounds": [], "Breakeven": []}
    runs = bars.size(RUNS["rounds"], 200)
    for loss in Loss:
        risk = Risk(loss, COST)
        for arms, gap in CELLS:
            policies = {
                "rounds": BreakevenRounds(risk, arms),
                "Breakeven": Breakeven(risk, arms, 1.0, math.inf),
            }
            for name, policy in policies.items():
                drifting, still = (
                    measure_risk(policy, make_blocks(arms, gap, drift=drift), runs) for drift in (DRIFT, 0.0)
                )
                ratios[name].append(drifting / still)
    details = {
        "largest": max(ratios["rounds"]),
        "Breakeven": geometric_mean(ratios["Breakeven"]),
        "Breakeven, largest": max(ratios["Breakeven"]),
    }
    bars.report("a sine drift over none, rounds", geometric_mean(ratios["rounds"]), 1.08, **details)


def measure_pool(bars: Bars) -> None:
    """Report the total in a pool of questions over the price of asking all of them."""
    generator = np.random.default_rng(1)
    risk = Risk.simple_regret(price=PRICE, value=VALUE)
    everything = QUESTIONS * ASKED * PRICE
    ratios = {}
    count, orders = bars.size((TABLES, ORDERS), (20, 10))
    for spread in SPREADS:
        tables = [draw_scores(generator, spread) for _ in range(count)]
        for only_these in (False, True):
            policy = BreakevenRounds(risk, ASKED, pool=QUESTIONS, only_these_blocks=only_these)
            totals = [VALUE * measure_risk(policy, table, orders, seed) for seed, table in enumerate(tables)]
            ratios[f"{spread}{', only these' * only_these}"] = float(np.mean(totals)) / everything
    bars.report("a pool of 200 questions over asking everything", ratios[str(SPREADS[0])], 0.6, **ratios)


def draw_scores(generator: np.random.Generator, spread: float) -> ScoreTable:
    """Draw the scores of all arms on all questions; the arms' means have a standard deviation of `spread`."""
    noise = generator.normal(size=(QUESTIONS, 1)) + generator.normal(size=(QUESTIONS, ASKED))
    return ScoreTable(spread * generator.normal(size=ASKED) + 0.5 * math.sqrt(0.5) * noise)


def measure_folds(bars: Bars) -> None:
    """Report the total on folds over the price of fitting everything, for several values of an accuracy."""
    ratios = {}
    for name in list(SCORES)[:: bars.size(1, 5)]:
        scores = make_scores(name)
        for value in (1e4, 1e5, 1e6):
            risk = Risk.simple_regret(price=1.0, value=value)
            policy = BreakevenRounds(risk, scores.shape[1], pool=len(scores), only_these_blocks=True)
            total = value * measure_risk(policy, ScoreTable(scores), 1_000)
            ratios[f"{name}, {value:g}"] = total / scores.size
    bars.report("folds over fitting everything", geometric_mean(ratios.values()), 0.58, **ratios)


def measure_speed(bars: Bars) -> None:
    """Report the time of a pull in compiled rounds with eight arms."""
    policy, bandit = BreakevenRounds(Risk.misidentification(COST), 8), make_blocks(8, 0.3, 0.5)
    evaluate(policy, bandit, runs=10, threads=1)  # compiles
    times = []
    for seed in range(5):
        began = time.perf_counter()
        evaluation = evaluate(policy, bandit, runs=2_000, seed=seed, threads=1)
        times.append((time.perf_counter() - began) / (2_000 * evaluation.pulls.mean) * 1e9)
    bars.report("compiled rounds, 8 arms: ns a pull", min(times), 400.0)


def main() -> None:
    bars = Bars(__doc__)
    for measure in (measure_blocks, measure_drift, measure_pool, measure_folds, measure_speed):
        measure(bars)
    bars.save()
