"""Measure how long a pull of the adaptive rules of the literature takes on the direct engine, next to Breakeven's.

CPU time on one thread, one of 8 arms better by 0.3, all in one process; each rule is measured between two measurements
of Breakeven, by whose mean its time per pull is divided. At most 1/0.3 times as long is asked for; for KL bounds, KG*
and Track-and-Stop it is only stated. `dbcare reproduce --rivals` is timed, too (not with --quick), first from a cold
cache of kernels, then from a warm one, by the clock on the wall.
"""

import math
import tempfile
import time
from pathlib import Path

from benchmarks.parts.bars import Bars
from benchmarks.speed.reproduce import time_reproduction
from dbcare import Bandit, Breakeven, Policy, Risk, evaluate
from dbcare.policies import (
    EBTCI,
    KLLUCB,
    KN,
    LUCB,
    OCBA,
    Adaptive,
    ChickFrazier,
    KGStar,
    LilUCB,
    TrackAndStop,
    UGapE,
    UGapEBudget,
)

ARMS = 8
RISK = Risk.simple_regret(1e-4)
BAR = 1.0 / 0.3
MINUTES_BAR = 10.0  # of the experiments, on 2 cores
STATED = ("KL-LUCB", "KG*", "Track-and-Stop", "Track-and-Stop, Bernoulli", "EB-TCI, Bernoulli")  # without a bar


def make_rules(arms: int) -> dict[str, Policy]:
    """Return the rules to measure."""
    return {
        "LUCB": LUCB(arms, 0.1),
        "KL-LUCB": KLLUCB(arms, 0.1, "heuristic"),
        "lil'UCB": LilUCB(arms, 0.1, rate="heuristic"),
        "UGapE": UGapE(arms, 0.1),
        "UGapE, budget": UGapEBudget(arms, 250 * arms),
        "Track-and-Stop": TrackAndStop(arms, 0.1, rate="heuristic"),
        "Track-and-Stop, Bernoulli": TrackAndStop(arms, 0.1, family="bernoulli", rate="heuristic"),
        "EB-TCI": EBTCI(arms, 0.1, rate="heuristic"),
        "EB-TCI, Bernoulli": EBTCI(arms, 0.1, family="bernoulli", rate="heuristic"),
        "OCBA": OCBA(arms, 250 * arms),
        "KN": KN(arms, 0.3, 0.1),
        "Chick-Frazier": ChickFrazier(RISK, arms),
        "KG*": KGStar(RISK, arms),
        "EB-TCI with Breakeven's stop": Adaptive(arms, "eb-tci", "breakeven", risk=RISK, sigma=1.0),
        "Breakeven with Track-and-Stop's stop": Adaptive(
            arms, "breakeven", "likelihood-ratio", risk=RISK, sigma=1.0, delta=0.1, rate="heuristic"
        ),
    }


def nanoseconds_per_pull(policy: Policy, bandit: Bandit, pulls: float) -> float:
    """Measure a pull's time in about so many pulls, after a few runs that say how long a run is."""
    mean = evaluate(policy, bandit, RISK, runs=4, engine="direct", threads=1).pulls.mean
    runs = max(4, math.ceil(pulls / mean))
    began = time.process_time()
    result = evaluate(policy, bandit, RISK, runs=runs, seed=1, engine="direct", threads=1)
    return (time.process_time() - began) / result.pulls_simulated * 1e9


def time_experiments(bars: Bars) -> None:
    """Time the experiments on all rules, with and without compiled kernels."""
    with tempfile.TemporaryDirectory() as name:
        for state in ("cold", "warm"):
            seconds, _ = time_reproduction(Path(name) / state, Path(name) / "cache", "--rivals")
            bars.report(f"minutes of `dbcare reproduce --rivals`, {state}", seconds / 60.0, MINUTES_BAR)


def main() -> None:
    bars = Bars(__doc__)
    pulls = bars.size(1e6, 5e4)
    gaussian = Bandit.one_sparse(ARMS, 0.3)
    bernoulli = Bandit.bernoulli([0.5, *([0.35] * (ARMS - 1))])
    yardstick = Breakeven(RISK, ARMS, 1.0)
    before = nanoseconds_per_pull(yardstick, gaussian, pulls)
    for name, policy in make_rules(ARMS).items():
        bandit = gaussian if policy.reward_range is None else bernoulli
        own = nanoseconds_per_pull(policy, bandit, pulls)
        after = nanoseconds_per_pull(yardstick, gaussian, pulls)
        bars.report(f"nanoseconds per pull: {name}", own)
        bars.report(f"time over Breakeven's: {name}", 2.0 * own / (before + after), None if name in STATED else BAR)
        before = after
    bars.report("nanoseconds per pull: Breakeven", before)
    if not bars.quick:
        time_experiments(bars)
    bars.save()
