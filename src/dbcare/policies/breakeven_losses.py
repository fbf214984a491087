"""The losses that Breakeven weighs: Gaussian at a stated sigma, Student's t at the standard deviation of the rewards.

Plain arithmetic on numbers and tables, compiled with the rule (`policies.breakeven_rule`).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.theory.normal import PSI_AT_0, expected_excess, upper_tail
from dbcare.theory.student import student_excess, student_tail

TRUST, GUARD, UNKNOWN = range(3)  # what is made of sigma

GRID = 64  # points of the loss's table in a unit of z
FARTHEST = 38.0  # beyond it the losses are below the smallest number


class BreakevenTables(NamedTuple):
    """What a Breakeven policy is made of."""

    cost: npt.NDArray[np.float64]
    sigma: float
    precision: float  # 1 / sigma
    doubt: int  # TRUST, GUARD or UNKNOWN
    counts_errors: bool  # misidentification, else simple regret
    largest_loss: float
    largest_deviation: float  # of the sample, that is believed
    guess: bool  # whether not to pull at all
    series: npt.NDArray[np.float64]  # of the normal loss: `series_of`


@cache
def series_of(psi: bool) -> npt.NDArray[np.float64]:
    """Psi, or else Q, around each point of a grid, as four coefficients of Taylor's series: good to 1e-6 up to z = 8.

    Reading it costs a tenth of the error function, of which every pull of the leader needs one for each arm.
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
    """A standard deviation of rewards, its degrees of freedom, and the t density at 0; all 0 where there is none."""

    deviation: float
    freedom: int
    peak: float


def loss_of(tables: BreakevenTables, sample: Sample, gap: float, root: float) -> float:
    """The expected loss of choosing the leader over an arm `gap` behind, under a flat prior.

    A standard deviation over `root`, (1/n_k + 1/n_L)^(-1/2), is the standard error of the gap.
    """
    loss = 0.0
    if tables.doubt != UNKNOWN:
        loss = from_series(tables, gap * root * tables.precision)
        if not tables.counts_errors:
            loss *= tables.sigma / root
    elif sample.deviation == 0.0:
        loss = tables.largest_loss  # nothing is known of the scale yet
    if sample.deviation > 0.0:
        error = sample.deviation / root
        other = student_tail(gap / error, sample.freedom)
        if not tables.counts_errors:
            other = error * student_excess(gap / error, sample.freedom, sample.peak, other)
        loss = max(loss, other)
    return float(min(loss, tables.largest_loss))


def from_series(tables: BreakevenTables, z: float) -> float:
    """Q(z) or Psi(z), whichever the series is of."""
    if z >= FARTHEST:
        return 0.0
    point = int(z * GRID + 0.5)
    apart = z - point / GRID
    first = 4 * point
    series = tables.series
    return float(series[first] + apart * (series[first + 1] + apart * (series[first + 2] + apart * series[first + 3])))
