"""Breakeven's expected losses: Gaussian for a stated sigma, Student's t for the rewards' standard deviation.

Plain arithmetic on numbers and tables, compiled together with the rule (`policies.guarded_rule`).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.theory.normal import PSI_AT_0, expected_excess, upper_tail
from dbcare.theory.student import student_excess, student_tail

TRUST, GUARD, UNKNOWN = range(3)  # how the rule treats sigma

GRID = 64  # points per unit of z in the table of the loss
FARTHEST = 38.0  # beyond this z the losses underflow


class GuardedTables(NamedTuple):
    """The numbers that define a Breakeven policy."""

    cost: npt.NDArray[np.float64]
    sigma: float
    precision: float  # 1 / sigma
    doubt: int  # TRUST, GUARD or UNKNOWN
    counts_errors: bool  # True for misidentification, False for simple regret
    largest_loss: float
    largest_deviation: float  # a larger standard deviation of the rewards is cut to this
    guess: bool  # whether to choose without any pulls
    series: npt.NDArray[np.float64]  # of the Gaussian loss, from `series_of`


@cache
def series_of(psi: bool) -> npt.NDArray[np.float64]:
    """Return four Taylor coefficients of Psi, or else of Q, at each point of a grid: accurate to 1e-6 up to z = 8.

    A lookup takes a tenth of the time of the error function, and every pull of the leader needs one per arm.
    """
    z = np.arange(0.0, FARTHEST + 1.0 / GRID, 1.0 / GRID)
    density = PSI_AT_0 * np.exp(-0.5 * z * z)
    tail = upper_tail(z)
    if psi:
        series = [expected_excess(z), -tail, density / 2.0, -z * density / 6.0]
    else:
        series = [tail, -density, z * density / 2.0, (1.0 - z * z) * density / 6.0]
    return np.column_stack(series).ravel()


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
    if tables.doubt != UNKNOWN:
        loss = from_series(tables, gap * root * tables.precision)
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


def from_series(tables: GuardedTables, z: float) -> float:
    """Return Q(z) or Psi(z), depending on the series."""
    if z >= FARTHEST:
        return 0.0
    point = int(z * GRID + 0.5)
    apart = z - point / GRID
    first = 4 * point
    series = tables.series
    return float(series[first] + apart * (series[first + 1] + apart * (series[first + 2] + apart * series[first + 3])))
