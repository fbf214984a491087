"""Measure what pooling gains, and whether its standard errors are right.

For Breakeven on the paper's instances, pooled runs are made until every point is as precise as 10,000 plain runs. At
each gap or cost, the gain is the number of plain runs that have the same standard error, times what one of them takes,
divided by the time of the pass per point: the variance of plain runs over that of pooled ones, in the same time. Both
are CPU time of one thread, measured in turn in the same process. Figures are geometric means over the points.

Standard errors are compared with the spread of the estimates over 150 repetitions of a pass, on linear decay, where not
all labels can be averaged. The figure is the true standard error over the stated one in the worst five neighboring gaps
(root mean square); chance adds about 0.07 to it.
"""

import math
import time
from dataclasses import replace

import numpy as np

from benchmarks.parts.bars import Bars
from dbcare import Bandit, Breakeven, BreakevenRacing, Policy, Risk
from dbcare.engines.pooling.estimates import combine
from dbcare.engines.pooling.evaluate import Target, evaluate_pooled
from dbcare.engines.simulate.runs import PlainRuns
from dbcare.lab import paper
from dbcare.lab.experiments import definition
from dbcare.lab.experiments.passes import Pass, plan_passes
from dbcare.lab.experiments.results import compute
from dbcare.policies import Racing
from dbcare.problem.risk import Loss

RUNS = 10_000
REPETITIONS = 150
SAMPLE = 60  # plain runs that are timed at a point
EVERY_POINT = 4  # of which plain runs are timed


def time_plain_run(policy: Policy, bandit: Bandit, risk: Risk) -> float:
    """Return the CPU-seconds of a plain run."""
    runs = PlainRuns.start(policy, bandit, risk, 1, 1, "direct", 1)
    runs.extend(2)
    began = time.thread_time()
    runs.extend(2 + SAMPLE)
    return (time.thread_time() - began) / SAMPLE


def measure_gains(work: Pass, runs: int) -> list[float]:
    """Return the gains at some points of a pass."""
    record = compute(Pass(tuple(replace(point, runs=runs) for point in work.points)))
    seconds = record.cpu_seconds / len(work.points)
    gains = []
    for point, result in list(zip(work.points, record.results, strict=True))[::EVERY_POINT]:
        risk = point.policy.risk
        assert risk is not None
        worth = result.plain_runs[list(Loss).index(risk.loss)]
        assert worth is not None
        gains.append(worth * time_plain_run(point.policy, point.bandit, risk) / seconds)
    return gains


def report(bars: Bars, name: str, bar: float) -> None:
    passes = [
        work
        for work in plan_passes(definition.load(paper.find_definition(name)).points)
        if type(work.points[0].policy).__name__ == "Breakeven"
    ]
    compute(Pass(tuple(replace(point, runs=10) for point in passes[0].points)))  # compile and load
    gains = [gain for work in passes[:: bars.size(1, 4)] for gain in measure_gains(work, bars.size(RUNS, RUNS // 10))]
    mean = math.exp(float(np.mean(np.log(gains))))
    bars.report(f"Breakeven, {name}, smallest {min(gains):.3g}", mean, bar, at_least=True, smallest=min(gains))


def report_honesty(bars: Bars, policy: Policy, risk: Risk) -> None:
    """Report by what factor standard errors are too small in the worst five neighboring gaps."""
    bandits = [Bandit.linear_decay(policy.arms, gap) for gap in np.geomspace(0.05, 3.0, 40)]
    combination = combine(risk.loss, risk.single_cost)
    repetitions, target = bars.size((REPETITIONS, Target(runs=RUNS)), (15, Target(runs=RUNS // 10)))
    wanted = [(risk.loss, risk.single_cost)]
    passes = [
        evaluate_pooled(policy, bandits, wanted, target, seed, threads=2).estimates for seed in range(repetitions)
    ]
    true = np.var([estimates.means @ np.array(combination) for estimates in passes], axis=0, ddof=1)
    stated = np.mean([estimates.variances(combination) for estimates in passes], axis=0)
    worst = math.sqrt(np.convolve(true / stated, np.full(5, 0.2), mode="valid").max())
    bars.report(f"{type(policy).__name__}, true / stated standard error", worst, 1.15)


def main() -> None:
    bars = Bars(__doc__)
    risk = Risk.misidentification(1e-4)
    for policy in (Breakeven(risk, 8, 1.0), BreakevenRacing(risk, 8), Racing(8, 0.1)):
        report_honesty(bars, policy, risk)
    for name, bar in (("one_sparse", 30.0), ("linear_decay", 8.0), ("drug", 10.0), ("two_arm", 30.0)):
        report(bars, name, bar)
    bars.save()
