"""One policy at one gap: what to expect of it, or why it was left out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dbcare.engines.result import Evaluation
from dbcare.engines.statistics import Estimate
from dbcare.planner.precision import Measured, MeasuredChance, measure, measure_chance, measure_total
from dbcare.policies.policy import Policy
from dbcare.problem.risk import Loss


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
