"""Measure what pooling gains: the variance of plain runs over that of pooled ones, in the same time.

`make bench`, or `python benchmarks/pooling.py [--out DIR]`. For Breakeven on the paper's instances, pooled runs are
made until every point is as precise as 10,000 plain runs. At each gap or cost, the gain is the number of plain runs
that have the same standard error, times what one of them takes, divided by the time of the pass per point. Both are CPU
time of one thread, measured in turn in the same process. Figures are geometric means over the points.
"""

import math
import time
from collections.abc import Sequence

import numpy as np
from bars import Bars

from dbcare import Bandit, Policy, Risk
from dbcare.engines.plain_runs import PlainRuns
from dbcare.engines.pooling.control_variates import combine
from dbcare.engines.pooling.evaluate_pooled import evaluate_pooled
from dbcare.engines.pooling.refinement import Target
from dbcare.lab import definition, paper
from dbcare.lab.points import Pass, plan_passes
from dbcare.risk import Loss

RUNS = 10_000
SAMPLE = 60  # plain runs that are timed at a point
EVERY_POINT = 4  # of which plain runs are timed


def time_plain_run(policy: Policy, bandit: Bandit, risk: Risk) -> float:
    """Return the CPU-seconds of a plain run."""
    runs = PlainRuns(policy, bandit, 1, "direct", 1, risk, 1)
    runs.extend(2)
    began = time.thread_time()
    runs.extend(2 + SAMPLE)
    return (time.thread_time() - began) / SAMPLE


def measure_gains(work: Pass) -> list[float]:
    """Return the gains at some points of a pass."""
    first = work.points[0]
    assert first.policy.risk is not None
    risk = first.policy.risk
    bandits = [point.bandit for point in work.points]
    began = time.thread_time()
    pooled = evaluate_pooled(first.policy, bandits, [(risk.loss, first.cost)], Target(runs=RUNS), seed=1, threads=1)
    seconds = (time.thread_time() - began) / len(bandits)
    worth = pooled.estimates.plain_runs(combine(risk.loss, first.cost))
    return [
        worth[place] * time_plain_run(first.policy, bandits[place], risk) / seconds
        for place in range(0, len(bandits), EVERY_POINT)
    ]


def choose_passes(name: str) -> list[Pass]:
    """Return the passes of Breakeven in an experiment: all of them, or every eighth if each is a single point."""
    passes = [
        work
        for work in plan_passes(definition.load(paper.find_definition(name)).points)
        if type(work.points[0].policy).__name__ == "Breakeven"
    ]
    return passes if len(passes[0].points) > 1 else passes[::8]


def report(bars: Bars, name: str, passes: Sequence[Pass], bar: float) -> None:
    evaluate_pooled(  # compile and load
        passes[0].points[0].policy,
        [passes[0].points[0].bandit],
        [(Loss.MISIDENTIFICATION, 1e-3)],
        Target(runs=10),
        seed=1,
        threads=1,
    )
    gains = [gain for work in passes for gain in measure_gains(work)]
    mean = math.exp(float(np.mean(np.log(gains))))
    bars.report(f"Breakeven, {name}, smallest {min(gains):.3g}", mean, bar, at_least=True, smallest=min(gains))


def main() -> None:
    bars = Bars(__doc__)
    for name, bar in (("one_sparse", 30.0), ("linear_decay", 8.0), ("drug", 10.0), ("two_arm", 30.0)):
        report(bars, name, choose_passes(name), bar)
    bars.save()


if __name__ == "__main__":
    main()
