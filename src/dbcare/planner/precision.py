"""How well the figures of a plan are known, and how many runs they need.

A figure is known if its error, two standard errors or half of a chance's 95% interval, is at most a fifth of it. A
chance below 0.1% is known to be that once its whole interval is below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dbcare.engines.estimates import Estimate
from dbcare.engines.evaluation import Evaluation
from dbcare.risk import Loss

MAX_ERROR = 0.2  # relative to the figure
SMALL_CHANCE = 0.001
RUNS_WITHOUT_ERROR = 3_700  # show that a chance is below SMALL_CHANCE: 1 - 0.025^(1/n) < 0.001


@dataclass(frozen=True)
class Measured:
    """A figure, and the interval that it lies in."""

    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Half of the interval, relative to the figure."""
        width = self.high - self.low
        return 0.0 if width <= 0.0 else width / 2.0 / self.value if self.value > 0.0 else math.inf

    def is_known(self, to: float = MAX_ERROR) -> bool:
        """Return whether the error is at most so large, relative to the figure."""
        return self.error <= to


@dataclass(frozen=True)
class MeasuredChance(Measured):
    """A chance, of which it is enough to know that it is small."""

    @property
    def is_small(self) -> bool:
        """Whether the whole interval is below 0.1%, though not exactly known."""
        return self.high <= SMALL_CHANCE and self.high > self.low

    def is_known(self, to: float = MAX_ERROR) -> bool:
        """Return whether it is small, or the error is at most so large, relative to the chance."""
        return self.is_small or super().is_known(to)


def measure_observations(evaluation: Evaluation) -> Measured:
    """Return the expected number of pulls."""
    return _measure(Estimate(evaluation.pulls.mean, evaluation.pulls.standard_error))


def measure_spend(evaluation: Evaluation) -> Measured:
    """Return the expected cost of all pulls, in units of the loss."""
    return _measure(evaluation.spend)


def measure_total(evaluation: Evaluation) -> Measured:
    """Return the expected total loss, in units of the loss; no total is below its spend."""
    total = _measure(evaluation.risks[evaluation.loss])
    return Measured(total.value, max(total.low, min(total.value, measure_spend(evaluation).low)), total.high)


def measure_chance(evaluation: Evaluation) -> MeasuredChance:
    """Return the chance of a wrong choice; a control variate knows it better than a count of wrong runs does."""
    if evaluation.control is None and evaluation.error_interval is not None:
        return MeasuredChance(evaluation.error, *evaluation.error_interval)
    close = _measure(evaluation.losses[Loss.MISIDENTIFICATION])
    return MeasuredChance(min(1.0, max(0.0, close.value)), max(0.0, close.low), min(1.0, close.high))


def _measure(estimate: Estimate) -> Measured:
    margin = 2.0 * estimate.standard_error
    return Measured(estimate.value, estimate.value - margin, estimate.value + margin)


def count_needed_runs(evaluation: Evaluation, to: float = MAX_ERROR) -> int:
    """Return about how many runs know every figure to such an error, with two digits; 0 if these runs do."""
    needed = [
        evaluation.runs * (measured.error / to) ** 2
        for measured in (measure_observations(evaluation), measure_spend(evaluation))
        if not measured.is_known(to)
    ]
    total = _measure(evaluation.risks[evaluation.loss])
    if not total.is_known(to):
        # Until something is seen to go wrong, the error falls with the number of runs, not with its root.
        needed.append(evaluation.runs * (total.error / to) ** (1 if _is_unseen(evaluation) else 2))
    chance = measure_chance(evaluation)
    if not chance.is_known(to):
        needed.append(_count_for_chance(evaluation, chance, to))
    return _round_up(max(needed, default=0.0))


def _is_unseen(evaluation: Evaluation) -> bool:
    """Return whether all runs agree in what they choose, or with the control variate."""
    if evaluation.control is not None:
        return evaluation.control.disagreements == 0
    counted = evaluation.error_interval
    return counted is not None and (counted[0] == 0.0 or counted[1] == 1.0)


def _count_for_chance(evaluation: Evaluation, chance: MeasuredChance, to: float) -> float:
    if chance.value == 0.0:
        return max(float(RUNS_WITHOUT_ERROR), 1.2 * evaluation.runs)
    needed = evaluation.runs * (chance.error / to) ** (1 if _is_unseen(evaluation) else 2)
    if chance.value < SMALL_CHANCE:
        shrink = chance.error * chance.value / (SMALL_CHANCE - chance.value)
        needed = min(needed, max(RUNS_WITHOUT_ERROR, evaluation.runs * shrink**2))
    return needed


def _round_up(runs: float) -> int:
    step = int(10.0 ** max(0, len(str(math.ceil(runs))) - 2))
    return step * math.ceil(runs / step)
