"""The expected losses of `breakeven-guarded`: Gaussian for a stated sigma, Student's t for the rewards' deviation."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.policies.breakeven_losses import gaussian_loss
from dbcare.theory.student import student_excess, student_tail


class GuardedTables(NamedTuple):
    """The numbers that define a guarded Breakeven policy."""

    cost: npt.NDArray[np.float64]
    sigma: float  # 0 if it is unknown
    precision: float  # 1 / sigma, or 0
    counts_errors: bool  # True for misidentification, False for simple regret
    largest_loss: float
    largest_deviation: float  # a larger standard deviation of the rewards is cut to this
    guess: bool  # whether to choose without any pulls
    series: npt.NDArray[np.float64]  # of the Gaussian loss


class Sample(NamedTuple):
    """A standard deviation of rewards, its degrees of freedom, and the t density at 0; all 0 if there is none yet."""

    deviation: float
    freedom: int
    peak: float


def loss_of(tables: GuardedTables, sample: Sample, gap: float, root: float) -> float:
    """Return the expected loss of choosing the leader over an arm that is `gap` behind, under a flat prior.

    A standard deviation divided by `root`, (1/n_k + 1/n_L)^(-1/2), is the standard error of the gap.
    """
    loss = 0.0
    if tables.sigma > 0.0:
        loss = gaussian_loss(tables.series, gap * root * tables.precision)
        if not tables.counts_errors:
            loss *= tables.sigma / root
    elif sample.deviation == 0.0:
        loss = tables.largest_loss  # the scale is still unknown
    if sample.deviation > 0.0:
        error = sample.deviation / root
        other = student_tail(gap / error, sample.freedom)
        if not tables.counts_errors:
            other = error * student_excess(gap / error, sample.freedom, sample.peak, other)
        loss = max(loss, other)
    return float(min(loss, tables.largest_loss))
