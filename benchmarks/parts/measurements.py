"""Risks of policies on cells, and their ratios."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.parts.bars import Bars
from benchmarks.parts.instances import Cell
from dbcare import Policy, evaluate

PILOT_RUNS, MIN_RUNS, MAX_RUNS = 40, 300, 20_000


@dataclass(frozen=True)
class Measurement:
    """The risk of a policy on a cell, with its standard error."""

    risk: float
    error: float


@dataclass(frozen=True)
class Ratio:
    """A policy's risk, as measured in a cell, divided by another's."""

    cell: Cell
    value: float
    error: float
    measured: Measurement


def count_arms(cell: Cell) -> int:
    """Return the number of arms of a cell."""
    return len(cell.bandit.arms)


def measure(policy: Policy, cell: Cell, work: float, stream: int) -> Measurement:
    """Measure a policy with as many runs as `work` allows, judged by a pilot; `stream` seeds the random numbers."""
    pilot = evaluate(policy, cell.bandit, cell.risk, runs=PILOT_RUNS, seed=2 * stream)
    if pilot.runs == 0:
        return Measurement(pilot.risk, 0.0)
    allowed = work * (1.0 if pilot.engine == "direct" else 4.0) / (pilot.pulls.mean * policy.arms + 1.0)
    runs = int(min(MAX_RUNS, max(MIN_RUNS, allowed)))
    evaluation = evaluate(policy, cell.bandit, cell.risk, runs=runs, seed=2 * stream + 1)
    return Measurement(evaluation.risk, evaluation.standard_error)


def divide(cell: Cell, policy: Measurement, base: Measurement) -> Ratio:
    """Return the ratio of two risks in a cell."""
    value = policy.risk / base.risk
    return Ratio(cell, value, value * math.hypot(policy.error / policy.risk, base.error / base.risk), policy)


def geometric_mean(ratios: Iterable[Ratio]) -> Measurement:
    """Return the geometric mean, and its standard error due to the limited number of runs."""
    logs = np.array([(math.log(ratio.value), ratio.error / ratio.value) for ratio in ratios])
    mean = math.exp(float(logs[:, 0].mean()))
    return Measurement(mean, mean * math.sqrt(float(np.square(logs[:, 1]).sum())) / len(logs))


def report_ratios(
    bars: Bars, name: str, ratios: list[Ratio], bar: float | None = None, largest_bar: float | None = None
) -> None:
    """Report the geometric mean and the largest of some ratios."""
    mean = geometric_mean(ratios)
    worst = max(ratios, key=lambda ratio: ratio.value)
    bars.report(f"{name}, geometric mean (s.e. {mean.error:.3f})", mean.risk, bar)
    bars.report(f"{name}, largest (s.e. {worst.error:.3f})", worst.value, largest_bar)
