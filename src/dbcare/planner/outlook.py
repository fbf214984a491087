"""What to expect of one way to decide at one gap, and how well its figures are known.

A figure is known if its error, two standard errors or half of a chance's 95% interval, is at most a fifth of it, and
if it rests on enough runs. A chance below 0.1% is known to be that once its whole interval is below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from dbcare.engines.result import Evaluation
from dbcare.engines.statistics import Estimate
from dbcare.policies.policy import Policy
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


@dataclass(frozen=True)
class Outlook:
    """One policy at one gap; amounts in money, or in units of the loss without a `value`.

    Parameters
    ----------
    name : str
        Name of the policy.
    gap : float
        The gap between the best arm and the others.
    policy : Policy
        The policy as it was built for the gap.
    evaluation : Evaluation
        Its evaluation there.
    loss_value : float
        What one unit of loss is worth.
    per_day : float, optional
        Pulls per day, if that is known.
    effective_runs : float
        On how many plain runs it rests, by their weights; infinite where the figures are exact.
    control_is_best : bool
        Whether the best arm is the one in use today.

    Examples
    --------
    >>> import dbcare
    >>> outlook = dbcare.plan(arms=2, cost=0.01, sigma=1.0, gaps=0.5, policies="decide-now").outlooks[0]
    >>> outlook.observations, outlook.total_loss
    (0.0, 0.25)
    """

    name: str
    gap: float
    policy: Policy
    evaluation: Evaluation
    loss_value: float
    per_day: float | None = None
    effective_runs: float = math.inf
    control_is_best: bool = False

    @property
    def observations(self) -> float:
        """Expected number of pulls."""
        return self.evaluation.pulls.mean

    @property
    def days(self) -> float | None:
        """Expected duration of a run in days; None if nobody said how many pulls a day makes."""
        return None if self.per_day is None else self.observations / self.per_day

    @property
    def days_95(self) -> float | None:
        """Days that 95% of runs do not exceed."""
        return None if self.per_day is None else self.evaluation.pulls.quantiles[0.95] / self.per_day

    @property
    def spend(self) -> float:
        """Expected cost of all pulls."""
        return self.loss_value * self.evaluation.spend.value

    @property
    def chance_wrong(self) -> float:
        """Probability of choosing an arm other than the best."""
        return self.evaluation.error

    @property
    def total_loss(self) -> float:
        """Expected loss of the choice plus expected spend: the risk, in money."""
        return self.loss_value * self.evaluation.risk

    @property
    def standard_error(self) -> float:
        """Standard error of the total loss; 0 where it is exact."""
        return self.loss_value * self.evaluation.standard_error

    @property
    def measured_pulls(self) -> Measured:
        """The expected number of pulls, with its interval."""
        pulls = self.evaluation.pulls
        return measure(Estimate(pulls.mean, pulls.standard_error), self.effective_runs)

    @property
    def measured_spend(self) -> Measured:
        """The expected cost of all pulls in units of the loss, with its interval."""
        return measure(self.evaluation.spend, self.effective_runs)

    @property
    def measured_chance(self) -> MeasuredChance:
        """The probability of a wrong choice, with its interval."""
        return measure_chance(self.evaluation, self.effective_runs)

    @property
    def measured_total(self) -> Measured:
        """The expected total loss in units of the loss, with its interval."""
        return measure_total(self.evaluation, self.effective_runs)

    @property
    def largest_loss(self) -> float:
        """The total loss, or the upper end of its interval if it is not known well."""
        total = self.measured_total
        return self.loss_value * (total.value if total.is_known else total.high)

    @property
    def least_loss(self) -> float:
        """The total loss, or the lower end of its interval if it is not known well."""
        total = self.measured_total
        return self.loss_value * (total.value if total.is_known else total.low)

    @property
    def runs(self) -> int:
        """Number of simulated runs; 0 where the figures are exact."""
        return self.evaluation.runs

    def record(self) -> dict[str, float | str | None]:
        """Return the figures by name, as one row of a table; durations only if they are known."""
        evaluation = self.evaluation
        chance = self.measured_chance
        return {
            "gap": self.gap,
            "policy": self.name,
            "observations": self.observations,
            "observations_standard_error": evaluation.pulls.standard_error,
            "spend": self.spend,
            "spend_standard_error": self.loss_value * evaluation.spend.standard_error,
            "chance_wrong": self.chance_wrong,
            "chance_wrong_standard_error": evaluation.losses[Loss.MISIDENTIFICATION].standard_error,
            "chance_wrong_low": chance.low,
            "chance_wrong_high": chance.high,
            "total_loss": self.total_loss,
            "total_loss_standard_error": self.standard_error,
            "control_is_best": self.control_is_best,
            "is_known": self.measured_total.is_known,
            "engine": evaluation.engine,
            "runs": self.runs,
            "effective_runs": self.effective_runs if math.isfinite(self.effective_runs) else None,
            **({} if self.per_day is None else {"days": self.days, "days_95": self.days_95}),
        }


@dataclass(frozen=True)
class Omission:
    """One policy at one gap that does not fit into the budget of work; `why` is a clause that says how much it is."""

    name: str
    gap: float
    why: str
    control_is_best: bool = False

    def record(self) -> dict[str, float | str]:
        """Return the fields by name."""
        return {"gap": self.gap, "policy": self.name, "control_is_best": self.control_is_best, "why": self.why}
