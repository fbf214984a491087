"""Estimate losses and risks, with standard errors, from the outcomes of runs; one pass serves both risks.

A run's loss depends only on the arm it recommends (and, with a control variate, on the arm that led at the
checkpoint), so all moments follow from counts and sums of payments within each such group.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.problem.risk import Loss, Risk

Floats = npt.NDArray[np.float64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error.

    Parameters
    ----------
    value : float
        The mean.
    standard_error : float
        Its standard error; 0 where it is exact.

    Examples
    --------
    >>> from dbcare import Bandit, Loss, Risk, evaluate
    >>> from dbcare.policies import Uniform
    >>> evaluation = evaluate(Uniform(arms=2, pulls=10), Bandit.two_arm(0.5), Risk.simple_regret(1e-3))
    >>> evaluation.risks[Loss.SIMPLE_REGRET].standard_error
    0.0
    """

    value: float
    standard_error: float


@dataclass(frozen=True)
class Control:
    """The control variate: the arm that leads after `checkpoint` pulls of each arm, and its law."""

    checkpoint: int
    law: Floats


def losses_by_arm(gaps: Floats, loss: Loss) -> Floats:
    """The loss of recommending each arm."""
    return (gaps > 0.0).astype(np.float64) if loss is Loss.MISIDENTIFICATION else gaps


class Group:
    """Counts and payments of some runs, by recommended arm and arm leading at the checkpoint (0 without a control)."""

    def __init__(self, outcomes: Outcomes, arms: int, center: float) -> None:
        self.runs = len(outcomes.pulls)
        controls = arms if len(outcomes.leader) else 1
        index = outcomes.recommended.astype(np.int64) * controls
        if len(outcomes.leader):
            index += outcomes.leader
        groups = arms * controls
        cells = np.arange(groups)
        if groups > 4 * self.runs:  # nearly all groups are empty
            cells, index = np.unique(index, return_inverse=True)
            groups = len(cells)
        self.recommended, self.leader = np.divmod(cells, controls)
        self.count = np.bincount(index, minlength=groups).astype(np.float64)
        # Use deviations from a common center, so that differences of large numbers do not lose digits.
        deviation = outcomes.paid - center
        self.deviation = np.bincount(index, weights=deviation, minlength=groups)
        self.square = float(np.square(deviation, out=deviation).sum())

    def mean(self, losses: Floats, cost: float) -> float:
        """Return the mean of loss + cost * (pulls - center)."""
        return float(self.count @ losses + cost * self.deviation.sum()) / self.runs

    def squares(self, losses: Floats, cost: float) -> float:
        """Return the sum of squared deviations of loss + cost * pulls from its mean."""
        total = float(self.count @ losses**2 + 2.0 * cost * self.deviation @ losses + cost**2 * self.square)
        return max(0.0, total - self.runs * self.mean(losses, cost) ** 2)

    def slope(self, losses: Floats, cost: float, control: Floats) -> float:
        """Regress loss + cost * pulls on the control; the slope is shrunk toward 1 by the weight of one extra run."""
        mean = float(self.count @ control) / self.runs
        shared = float(self.count @ (losses * (control - mean)) + cost * self.deviation @ (control - mean))
        own = float(self.count @ (control - mean) ** 2)
        weight = float(control.max()) ** 2
        return (shared + weight) / (own + weight) if weight > 0.0 else 1.0


class Moments:
    """The moments of the outcomes that estimates of loss and risk need.

    With a control variate the runs are split into two halves, and each half uses the coefficient fitted on the other,
    so the estimate is unbiased and no worse than the plain one. If the policy never disagreed with the control, or all
    losses were equal, the standard error assumes that one run differed, so that it covers events not yet seen.
    """

    def __init__(self, outcomes: Outcomes, gaps: Floats, control: Control | None) -> None:
        arms = len(gaps)
        self.runs = len(outcomes.pulls)
        self.gaps = gaps
        self.control = control
        self.charged = len(outcomes.spent) > 0
        self.mean_paid = float(outcomes.paid.mean())
        cuts = [0, self.runs] if control is None or self.runs < 4 else [0, self.runs // 2, self.runs]
        self.parts = [Group(outcomes.part(*cut), arms, self.mean_paid) for cut in pairwise(cuts)]

    @property
    def errors(self) -> int:
        """The number of runs that recommended an arm worse than the best."""
        wrong = self.gaps > 0.0
        return int(sum(part.count[wrong[part.recommended]].sum() for part in self.parts))

    @property
    def disagreements(self) -> int:
        """The number of runs whose recommendation was not the control's arm."""
        return int(sum(part.count[part.recommended != part.leader].sum() for part in self.parts))

    def unit(self, risk: Risk) -> float:
        """Return the cost per unit of payment: that of a pull, or 1 if payments already are costs."""
        return 1.0 if self.charged else risk.single_cost

    def total(self, loss: Loss, cost: float) -> Estimate:
        """Estimate E[loss] + cost * E[paid]; a cost of 0 gives the loss alone."""
        by_arm = losses_by_arm(self.gaps, loss)
        value, variance = cost * self.mean_paid, 0.0
        for part, slope in zip(self.parts, self.slopes(loss, cost), strict=True):
            losses = by_arm[part.recommended] - slope * by_arm[part.leader]
            all_equal = self.control is not None or np.ptp(losses[part.count > 0.0]) == 0.0
            least = float(np.ptp(by_arm)) ** 2 if all_equal else 0.0
            known = 0.0 if self.control is None else slope * float(by_arm @ self.control.law)
            share = part.runs / self.runs
            value += share * (part.mean(losses, cost) + known)
            variance += share**2 * _variance_of_mean(max(part.squares(losses, cost), least), part.runs)
        return Estimate(value, math.sqrt(variance))

    def plain_runs(self, loss: Loss, cost: float) -> float:
        """Return how many runs without a control would have the same standard error of E[loss] + cost * E[paid].

        At least as many as there are: a control whose coefficient is fitted does no harm, and if its standard error is
        larger nevertheless, that is for events not yet seen, which runs without it would not have seen either.
        """
        error = self.total(loss, cost).standard_error
        if self.control is None or not 0.0 < error < math.inf:
            return float(self.runs)
        by_arm = losses_by_arm(self.gaps, loss)
        means = np.array([part.mean(by_arm[part.recommended], cost) for part in self.parts])
        within = sum(part.squares(by_arm[part.recommended], cost) for part in self.parts)
        sizes = np.array([part.runs for part in self.parts])
        between = float(sizes @ (means - sizes @ means / self.runs) ** 2)
        return max(float(self.runs), (within + between) / (self.runs - 1) / error**2)

    def slopes(self, loss: Loss, cost: float) -> list[float]:
        """Return the control's coefficient for each part, fitted on the other part."""
        if self.control is None:
            return [0.0]
        if len(self.parts) == 1:
            return [1.0]
        by_arm = losses_by_arm(self.gaps, loss)
        return [part.slope(by_arm[part.recommended], cost, by_arm[part.leader]) for part in reversed(self.parts)]


def estimate_mean(numbers: npt.NDArray[np.int64] | Floats) -> Estimate:
    """Estimate the mean of `numbers`, with its standard error."""
    mean = float(numbers.mean())
    return Estimate(mean, math.sqrt(_variance_of_mean(float(np.square(numbers - mean).sum()), len(numbers))))


def _variance_of_mean(squares: float, runs: int) -> float:
    return squares / (runs - 1) / runs if runs > 1 else math.inf


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval for a probability (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv  # noqa: PLC0415  # only this needs scipy

    tail = (1.0 - level) / 2.0
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1.0 - tail)) if successes < trials else 1.0
    return low, high
