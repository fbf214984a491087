"""How well the figures of a plan are known.

A figure is known if its error, two standard errors or half of a chance's 95% interval, is at most a fifth of it, and
if it rests on enough runs. A chance below 0.1% is known to be that once its whole interval is below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from dbcare.engines.result import Evaluation
from dbcare.engines.statistics import Estimate
from dbcare.problem.risk import Loss

MAX_ERROR = 0.2  # relative to the figure
SMALL_CHANCE = 0.001
LEAST_RUNS = 100.0  # with fewer, by their weights, standard errors mean little


@dataclass(frozen=True)
class Measured:
    """A figure, and the interval that it lies in, if it rests on enough runs."""

    value: float
    low: float
    high: float
    is_founded: bool = True

    @property
    def error(self) -> float:
        """Half of the interval, relative to the figure."""
        width = self.high - self.low
        return 0.0 if width <= 0.0 else width / 2.0 / self.value if self.value > 0.0 else math.inf

    @property
    def is_known(self) -> bool:
        """Whether the error is at most MAX_ERROR, relative to the figure."""
        return self.is_founded and self.error <= MAX_ERROR


@dataclass(frozen=True)
class MeasuredChance(Measured):
    """A chance, of which it is enough to know that it is small."""

    @property
    def is_small(self) -> bool:
        """Whether the whole interval is below 0.1%, though not exactly known."""
        return self.is_founded and self.high <= SMALL_CHANCE and self.high > self.low

    @property
    def is_known(self) -> bool:
        """Whether it is small, or the error is at most MAX_ERROR, relative to the chance."""
        return self.is_small or super().is_known


def measure(estimate: Estimate, effective_runs: float) -> Measured:
    """Return a figure with an interval of two standard errors, wider where it rests on few runs."""
    margin = 2.0 * estimate.standard_error * math.sqrt(max(1.0, LEAST_RUNS / effective_runs))
    low, high = estimate.value - margin, estimate.value + margin
    return Measured(estimate.value, low, high, estimate.standard_error == 0.0 or effective_runs >= LEAST_RUNS)


def measure_total(evaluation: Evaluation, effective_runs: float) -> Measured:
    """Return the expected total loss, in units of the loss; no total is below its spend."""
    total, spend = measure(evaluation.risks[evaluation.loss], effective_runs), measure(evaluation.spend, effective_runs)
    return Measured(total.value, max(total.low, min(total.value, spend.low)), total.high, total.is_founded)


def measure_chance(evaluation: Evaluation, effective_runs: float) -> MeasuredChance:
    """Return the chance of a wrong choice; a control variate knows it better than a count of wrong runs does."""
    if evaluation.control is None and evaluation.error_interval is not None:
        low, high = evaluation.error_interval
        return MeasuredChance(evaluation.error, low, high, low == high or effective_runs >= LEAST_RUNS)
    chance = measure(evaluation.losses[Loss.MISIDENTIFICATION], effective_runs)
    value = min(1.0, max(0.0, chance.value))
    return MeasuredChance(value, max(0.0, chance.low), min(1.0, chance.high), chance.is_founded)


class RowTarget(NamedTuple):
    """How well a row is to be known: relative errors, and on how many runs it is to rest, by their weights."""

    error: float  # of observations and total loss
    chance_error: float | None  # None if the chance of a wrong choice need not be known
    runs: float


class Known(NamedTuple):
    """What the runs so far show of one row, and on how many plain runs that rests, by their weights."""

    pulls: Estimate
    total: Estimate
    wrong: Estimate
    effective_runs: float
    capped: float

    def count_growth(self, target: RowTarget) -> float:
        """Return how many times as many runs are needed to meet a target; 1 if these do."""
        variances = [_excess(figure, target.error) for figure in (self.pulls, self.total)]
        if target.chance_error is not None and self.wrong.value + 2.0 * self.wrong.standard_error > SMALL_CHANCE:
            variances.append(_excess(self.wrong, target.chance_error))
        return max(1.0, target.runs / self.effective_runs, *variances)


def _excess(figure: Estimate, error: float) -> float:
    """Return how many times the allowed one the variance of a figure is."""
    if figure.standard_error == 0.0:
        return 0.0
    return (2.0 * figure.standard_error / (error * figure.value)) ** 2 if figure.value > 0.0 else math.inf
