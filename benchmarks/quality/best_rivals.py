"""Compare Breakeven with rivals at their best: fixed sizes that minimize the loss, and stops tuned to the problem.

Simple regret, Gaussian rewards with a known standard deviation of 1, a cost of 1e-4. Some rivals are told the gap,
which nobody knows in advance. For two arms, the risk of every rule that tries both equally often is exact; Breakeven's,
Chick and Frazier's with 8 arms, and DBCARE's are simulated. Each figure is a risk over Breakeven's: at single gaps, as
a geometric mean over gaps from 0.05 to 2, and averaged over a normal prior of the means, whose spread some rivals are
told.
"""

import math

import numpy as np
import numpy.typing as npt

from benchmarks.parts.bars import Bars
from benchmarks.parts.yardsticks import (
    best_equal_size,
    caring_limits,
    equal_size_risk,
    group_sequential,
    optimal_limits,
    prior_mean,
    roll_size,
)
from dbcare import DBCARE, Bandit, Breakeven, Policy, Risk, evaluate, evaluate_grid
from dbcare.policies import ChickFrazier, TwoArmChickFrazier

Floats = npt.NDArray[np.float64]
COST = 1e-4
RISK = Risk.simple_regret(COST)
UNIT = COST ** (1.0 / 3.0)  # below this, a gap is too small to be worth finding
GAPS = np.geomspace(0.05, 2.0, 8)
SPREADS = (0.5 * UNIT, UNIT, 2.0 * UNIT, 5.0 * UNIT)  # of the prior of each mean
THRESHOLDS = tuple(map(float, np.geomspace(1e-4, 1e-2, 13)))
MOST_PAIRS = 20_000
RUNS = 40_000


def exact(policy: Policy, gaps: Floats) -> Floats:
    """Return the exact risk of a rule for two arms."""
    return np.asarray(evaluate_grid(policy, list(map(float, gaps))).risk(RISK))


def simulate(policy: Policy, arms: int, gaps: Floats, runs: int) -> Floats:
    """Return the simulated risk where one arm is better by a gap."""
    return np.array(
        [evaluate(policy, Bandit.one_sparse(arms, float(gap)), RISK, runs=runs, seed=1).risk for gap in gaps]
    )


def over(risks: Floats, ours: Floats) -> float:
    """Return the geometric mean of a ratio."""
    return math.exp(float(np.mean(np.log(risks / ours))))


def show(name: str, risks: Floats, ours: Floats) -> None:
    """Print a rival's risk over ours, gap by gap."""
    print(f"{name:<44}{over(risks, ours):>7.2f}   {' '.join(f'{ratio:6.2f}' for ratio in risks / ours)}", flush=True)


def equal_sizes(arms: int, gaps: Floats) -> Floats:
    """Return the risk of the equal size that minimizes it, told each gap."""
    return np.array([equal_size_risk(best_equal_size(arms, gap, COST), arms, gap, COST) for gap in gaps])


def head(title: str, columns: Floats) -> None:
    """Print the head of a table."""
    print(f"{title:<44}{'mean':>7}   {' '.join(f'{column:6.3g}' for column in columns)}")


def compare_two_arms(bars: Bars) -> None:
    """Compare the rules for two arms at single gaps."""
    runs = bars.size(RUNS, 2_000)
    ours = simulate(Breakeven(RISK, 2, sigma=1.0, sigma_pulls=math.inf), 2, GAPS, runs)
    head("two arms, risk over that of Breakeven, by gap", GAPS)
    show("equal size, told the gap", equal_sizes(2, GAPS), ours)
    sizes = [int(size) for size in np.unique(np.geomspace(1, 20_000, 400).astype(int))]
    of_sizes = {size: np.array([equal_size_risk(size, 2, gap, COST) for gap in GAPS]) for size in sizes}
    best = min(of_sizes, key=lambda size: over(of_sizes[size], ours))
    show(f"equal size, the best single one ({best})", of_sizes[best], ours)
    tried = THRESHOLDS[:: bars.size(1, 4)]
    looks = [exact(group_sequential(gap), np.array([gap]))[0] for gap in GAPS]
    show("group-sequential, 5 looks, told the gap", np.array(looks), ours)
    caring = {threshold: exact(caring_limits(threshold, MOST_PAIRS), GAPS) for threshold in tried}
    cared = min(caring, key=lambda threshold: over(caring[threshold], ours))
    show(f"expected loss, the best threshold ({cared:.2g})", caring[cared], ours)
    show("expected loss, threshold told the gap", np.min(list(caring.values()), axis=0), ours)
    optimal = exact(optimal_limits(COST), GAPS)
    show("Chernoff-Petkau, optimal for a flat prior", optimal, ours)
    show("Chick-Frazier, its approximation", exact(TwoArmChickFrazier(RISK), GAPS), ours)
    show("DBCARE", simulate(DBCARE(RISK, 2, bound=2.0), 2, GAPS, runs), ours)
    bars.report("two arms: Breakeven over Chernoff-Petkau, mean over gaps", 1.0 / over(optimal, ours), 1.1)
    bars.report("two arms: Breakeven over equal size told the gap", 1.0 / over(equal_sizes(2, GAPS), ours), 1.0)


def compare_under_priors(bars: Bars) -> None:
    """Compare the rules for two arms whose means come from a normal law.

    Test and roll knows that law and Breakeven does not, so the bar is for a spread where there is much to be found.
    """
    breakeven = Breakeven(RISK, 2, sigma=1.0, sigma_pulls=math.inf)
    caring = [caring_limits(threshold, MOST_PAIRS) for threshold in THRESHOLDS[:: bars.size(2, 6)]]
    optimal = optimal_limits(COST)
    sizes = [roll_size(spread, COST) for spread in SPREADS]

    def roll(gaps: Floats, spread: float) -> Floats:
        return np.array([equal_size_risk(sizes[SPREADS.index(spread)], 2, gap, COST) for gap in gaps])

    ours = np.array(
        [prior_mean(lambda gaps: simulate(breakeven, 2, gaps, bars.size(4_000, 500)), spread) for spread in SPREADS]
    )
    head("means from a normal law, by its spread", np.array(SPREADS))
    rolled = np.array([prior_mean(lambda gaps, s=spread: roll(gaps, s), spread) for spread in SPREADS])
    show("test and roll, told the spread", rolled, ours)
    cared = [[prior_mean(lambda gaps, p=policy: exact(p, gaps), spread) for policy in caring] for spread in SPREADS]
    show("expected loss, threshold told the spread", np.min(cared, axis=1), ours)
    flat = np.array([prior_mean(lambda gaps: exact(optimal, gaps), spread) for spread in SPREADS])
    show("Chernoff-Petkau, optimal for a flat prior", flat, ours)
    bars.report("two arms, normal law, largest spread: Breakeven over test and roll", ours[-1] / rolled[-1], 1.0)


def compare_eight_arms(bars: Bars) -> None:
    """Compare the rules for 8 arms, one of them better."""
    runs = bars.size(10_000, 500)
    ours = simulate(Breakeven(RISK, 8, sigma=1.0, sigma_pulls=math.inf), 8, GAPS, bars.size(RUNS, 2_000))
    head("8 arms, one better, risk over Breakeven's", GAPS)
    show("equal size, told the gap", equal_sizes(8, GAPS), ours)
    chick = simulate(ChickFrazier(RISK, 8), 8, GAPS, runs)
    show("Chick-Frazier", chick, ours)
    show("DBCARE", simulate(DBCARE(RISK, 8, bound=2.0), 8, GAPS, runs), ours)
    bars.report("8 arms: Breakeven over Chick-Frazier, mean over gaps", 1.0 / over(chick, ours), 1.2)


def main() -> None:
    bars = Bars(__doc__)
    compare_two_arms(bars)
    compare_eight_arms(bars)
    compare_under_priors(bars)
    bars.save()
