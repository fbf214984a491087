"""Measure what the page on assumptions and limitations states and no other benchmark does.

The loss against all rivals at the stop, more patience with many arms, and a novelty that wears off.
"""

import numpy as np

from benchmarks.parts.bars import Bars
from dbcare import Bandit, Breakeven, Risk, create_study, evaluate

COST, STUDIES, RUNS = 1e-4, 60, 20_000


def measure_all_rivals(bars: Bars) -> None:
    """Compare the expected loss against all rivals with the spend: 8 arms, one better by 0.24."""
    ratios = []
    for seed in range(bars.size(STUDIES, 6)):
        generator = np.random.default_rng([43, seed])
        study = create_study(f"rivals {seed}", list("ABCDEFGH"), cost=COST, sigma=1.0, seed=seed)
        while (trial := study.ask()) is not None:
            study.tell(trial, generator.normal(0.24 * (trial.arm == "A")))
        status, loss = study.status(), study.recommendation().expected_loss
        if loss is not None:
            ratios.append(loss / status.spent)
    share = float(np.mean(np.array(ratios) > 1.0))
    bars.report(f"8 arms: share of {len(ratios)} stops whose loss exceeds the spend", share, 1.0)
    bars.report("8 arms: loss against all rivals over the spend, median", float(np.median(ratios)), 2.0)


def measure_patience(bars: Bars) -> None:
    """Stop at a quarter of the spend: misidentification with many arms, one better by a medium gap."""
    for arms, gap in ((8, 0.24), (32, 0.41)):
        bandit, risk = Bandit.one_sparse(arms, gap), Risk.simple_regret(COST)
        runs = bars.size(RUNS, 500)
        usual, patient = (
            evaluate(Breakeven(Risk.simple_regret(cost), arms, sigma=1.0), bandit, risk, runs=runs, seed=1).risk
            for cost in (COST, COST / 4.0)
        )
        bars.report(f"{arms} arms, gap {gap}: risk with four times the patience", patient / usual, 1.0)


def measure_novelty(bars: Bars) -> None:
    """Choose between arms of which one is better by 0.5 for 1,500 trials, then worse by 0.1: no stop before 4,000."""
    chosen = []
    for seed in range(bars.size(STUDIES, 6)):
        generator = np.random.default_rng([44, seed])
        study = create_study(f"novelty {seed}", ["old", "new"], cost=COST, sigma=1.0, not_before=4_000, seed=seed)
        trials = 0
        while (trial := study.ask()) is not None:
            trials += 1
            study.tell(trial, generator.normal((0.5 if trials <= 1_500 else -0.1) * (trial.arm == "new")))
        chosen.append(study.recommendation().arm == "new")
    bars.report(f"novelty: share of {len(chosen)} studies that choose the loser", float(np.mean(chosen)), 1.0)


def main() -> None:
    bars = Bars(__doc__)
    measure_all_rivals(bars)
    measure_patience(bars)
    measure_novelty(bars)
    bars.save()
