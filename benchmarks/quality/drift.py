"""Measure what drift that all arms share does to policies: a sine wave of half a standard deviation.

Eight Gaussian arms, one better by half a standard deviation, c = 1e-5, simple regret; the wave has a period of 200
pulls and a random phase.
"""

import math

from benchmarks.parts.bars import Bars
from dbcare import Breakeven, BreakevenRacing, Loss, Policy, Risk, evaluate
from dbcare.engines import Estimate
from dbcare.problem import GaussianBlocks

ARMS, GAP, COST, PERIOD = 8, 0.5, 1e-5, 200
RUNS = 100_000


def measure(policy: Policy, amplitude: float, runs: int) -> Estimate:
    """Return the risk of a policy, with its standard error."""
    bandit = GaussianBlocks.of([GAP] + [0.0] * (ARMS - 1), drift=amplitude, period=PERIOD)
    return evaluate(policy, bandit, runs=runs, seed=int(100 * amplitude)).risks[Loss.SIMPLE_REGRET]


def main() -> None:
    bars = Bars(__doc__)
    runs = bars.size(RUNS, 1_000)
    risk, rows, still = Risk.simple_regret(COST), {}, {}
    for policy in (Breakeven(risk, ARMS, 1.0), BreakevenRacing(risk, ARMS, 1.0)):
        name = type(policy).__name__
        still[name], drifting = measure(policy, 0.0, runs), measure(policy, 0.5, runs)
        rows[f"{name}, risk with drift over risk without"] = divide(drifting, still[name])
    rows["BreakevenRacing over Breakeven, without drift"] = divide(still["BreakevenRacing"], still["Breakeven"])
    for label, (ratio, error) in rows.items():
        bars.report(label, ratio, error=error)
    bars.save()


def divide(one: Estimate, other: Estimate) -> tuple[float, float]:
    """Return the ratio of two risks and its standard error."""
    ratio = one.value / other.value
    return ratio, ratio * math.hypot(one.standard_error / one.value, other.standard_error / other.value)
