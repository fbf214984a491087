"""The expected losses that Breakeven weighs, and the spread of the rewards that they rest on.

Variances are in units of the stated sigma^2, of 1 where none is stated. Plain arithmetic, compiled together with the
rule (`policies.breakeven.rule`).

A lookup takes a fraction of the time of the special functions, and every pull of the leader needs one per arm. Plain
arithmetic on numbers and arrays, compiled together with the rules.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.policies.breakeven.state import (
    COUNT,
    LEAST_FREEDOM,
    PULLS,
    SQUARES,
    VARIANCE,
    WITHIN,
    section,
    squares_of_rewards,
)
from dbcare.policies.rule import State, index
from dbcare.theory.normal import PSI_AT_0, density_at_0, expected_excess, student_excess, student_tail, upper_tail


class BreakevenTables(NamedTuple):
    """The numbers that define a Breakeven policy."""

    cost: npt.NDArray[np.float64]
    sigma: float  # the unit of deviations: the stated one, or 1
    precision: float  # 1 / sigma
    stated: npt.NDArray[np.float64]  # variance of each arm: 1, or 0 where sigma is unknown
    sigma_pulls: float  # rewards that the stated variance counts as: infinite if known, 0 if none is stated
    largest_variance: float  # larger ones are cut to this
    is_bounded: bool  # whether no variance can be larger, rather than none is believed to be
    counts_errors: bool  # True for misidentification, False for simple regret
    largest_loss: float
    guess: bool  # whether to choose without any pulls
    not_before: int  # pulls before which a run does not stop
    series: npt.NDArray[np.float64]  # of the Gaussian loss
    ratios: npt.NDArray[np.float64]  # of the Student-t loss to the Gaussian one


class Variance(NamedTuple):
    """An estimated variance with its degrees of freedom, and whether all arms share it; a variance of 0 is unknown."""

    value: float
    freedom: float
    is_shared: bool


def is_known(tables: BreakevenTables) -> bool:
    """Return whether the stated variances are taken as certain."""
    return tables.sigma_pulls == math.inf


def pooled_variance(state: State, tables: BreakevenTables) -> Variance:
    """Return the variance that all arms would share: (nu0 sigma^2 + W)/(nu0 + N - K).

    W is the sum of squares within arms, and nu0 the weight of the stated sigma.
    """
    if tables.sigma_pulls == 0.0:
        return sampled_variance(state, tables)
    freedom = tables.sigma_pulls + state[PULLS] - len(tables.cost)
    squares = state[WITHIN] * tables.precision * tables.precision
    pool = (tables.sigma_pulls * tables.stated[0] + squares) / freedom
    return Variance(min(pool, tables.largest_variance), freedom, True)


def sampled_variance(state: State, tables: BreakevenTables) -> Variance:
    """Return the variance of the rewards alone, where no sigma is stated.

    Before rewards vary, it is the largest variance that is believed, if there is one.
    """
    squares, freedom = squares_of_rewards(state, tables.cost)
    if freedom == 0:
        largest = 0.0 if tables.largest_variance == math.inf else tables.largest_variance
        return Variance(largest, float(LEAST_FREEDOM), True)
    return Variance(min(squares / freedom, tables.largest_variance), float(freedom), True)


def arm_variance(state: State, tables: BreakevenTables, arm: int, pool: Variance) -> Variance:
    """Return the variance of one arm's rewards: the pool's, unless the arm shows a larger one.

    It does if its sum of squares is more than a standard deviation above what the pool's variance v lets one expect:
    SS_k > v (n_k - 1 + sqrt(2 (n_k - 1))). A single reward shows nothing; the stated variance is used if it is larger.
    """
    pulls, stated = state[section(tables.cost, COUNT) + arm], tables.stated[arm]
    freedom = max(pulls - 1.0, 1.0)  # a single reward has no squares, and so shows no variance of its own
    squares = state[section(tables.cost, SQUARES) + arm] * tables.precision * tables.precision
    own = min(squares / freedom, tables.largest_variance)
    if squares > pool.value * (freedom + math.sqrt(2.0 * freedom)) and own > pool.value:
        return Variance(own, freedom, False)
    if pulls <= 1.0 and stated > pool.value:
        return Variance(stated, tables.sigma_pulls, False)
    return pool


def stored_variance(state: State, tables: BreakevenTables, arm: int, pool: Variance) -> Variance:
    """Return what `arm_variance` returned for the same pool, from the arm's VARIANCE: one of its own is larger."""
    value = state[section(tables.cost, VARIANCE) + arm]
    if value == pool.value:
        return pool
    pulls = state[section(tables.cost, COUNT) + arm]
    return Variance(value, pulls - 1.0 if pulls > 1.0 else tables.sigma_pulls, False)


def combined_freedom(one: Variance, pulls: float, other: Variance, other_pulls: float, pool: Variance) -> int:
    """Return the degrees of freedom of a difference of two means, rounded down, at least LEAST_FREEDOM.

    Those of the pool where both arms use it, as that is one estimate; else Welch's formula.
    """
    freedom = pool.freedom
    if not (one.is_shared and other.is_shared):
        a, b = one.value / pulls, other.value / other_pulls
        freedom = (a + b) * (a + b) / (a * a / one.freedom + b * b / other.freedom)
    return max(LEAST_FREEDOM, int(freedom))


Floats = npt.NDArray[np.float64]

GRID = 64  # points per unit of z in the series of the Gaussian loss
FARTHEST = 38.0  # beyond this z the losses underflow
RATIO_GRID = 16  # intervals per unit of z in the table of ratios
RATIO_END = 7.0  # beyond this z, where losses are below 1e-10, a ratio stays as it is
INTERVALS = int(RATIO_END * RATIO_GRID)
LEAST, MOST = 3, 64  # degrees of freedom with ratios of their own; those of more follow from three coefficients
MATCHED = (64.0, 128.0, 256.0)  # degrees of freedom for which the coefficients give the ratios


@cache
def series_of(psi: bool) -> Floats:
    """Return four Taylor coefficients of Psi, or else of Q, at each point of a grid: accurate to 1e-6 up to z = 8."""
    z = np.arange(0.0, FARTHEST + 1.0 / GRID, 1.0 / GRID)
    density = PSI_AT_0 * np.exp(-0.5 * z * z)
    tail = upper_tail(z)
    if psi:
        series = [expected_excess(z), -tail, density / 2.0, -z * density / 6.0]
    else:
        series = [tail, -density, z * density / 2.0, (1.0 - z * z) * density / 6.0]
    return np.column_stack(series).ravel()


def gaussian_loss(series: Floats, z: float) -> float:
    """Return Q(z) or Psi(z), depending on the series."""
    if z >= FARTHEST:
        return 0.0
    point = index(z * GRID + 0.5)
    return cubic(series, 4 * point, z - point / GRID)


@cache
def ratios_of(psi: bool) -> Floats:
    """Return a table of ratios of Student-t losses to Gaussian ones, from which `student_loss` interpolates.

    With nu degrees of freedom, the ratio is E[max(T - t, 0)]/Psi(z), or else P(T > t)/Q(z), at
    z = sqrt((nu - 1/2) ln(1 + t^2/nu)), and near 1. The table has four coefficients of a cubic in each interval of z,
    for nu = LEAST to MOST; then those of a, b and c in 1 + a/nu + b/nu^2 + c/nu^3.
    """
    z = np.arange(-1, INTERVALS + 2) / RATIO_GRID  # a cubic needs a point more on either side
    rows = [_cubics(_ratios(freedom, z, psi)) for freedom in range(LEAST, MOST + 1)]
    powers = np.array([[freedom**-power for power in (1, 2, 3)] for freedom in MATCHED])
    beyond_1 = np.array([_ratios(int(freedom), z, psi) - 1.0 for freedom in MATCHED])
    coefficients = [_cubics(row) for row in np.linalg.solve(powers, beyond_1)]
    return np.concatenate([np.concatenate(rows).ravel(), np.stack(coefficients, axis=1).ravel()])


def _ratios(freedom: int, grid: Floats, psi: bool) -> Floats:
    """Return the ratios at some z; those at z < 0 continue the function, as a cubic needs."""
    z = np.abs(grid)
    t = np.sqrt(freedom * np.expm1(z * z / (freedom - 0.5)))
    tail = np.array([student_tail(each, freedom) for each in t.tolist()])
    gaussian = expected_excess(z) if psi else upper_tail(z)
    if not psi:
        return np.where(grid < 0.0, (1.0 - tail) / (1.0 - gaussian), tail / gaussian)
    peak = density_at_0(freedom)
    pairs = zip(t.tolist(), tail.tolist(), strict=True)
    excess = np.array([student_excess(each, freedom, peak, beyond) for each, beyond in pairs])
    return np.where(grid < 0.0, (excess + t) / (gaussian + z), excess / gaussian)


def _cubics(values: Floats) -> Floats:
    """Return the coefficients of the cubic through four neighboring values, for each interval of the middle two."""
    before, start, end, after = values[:-3], values[1:-2], values[2:-1], values[3:]
    return np.column_stack(
        [
            start,
            end - before / 3.0 - start / 2.0 - after / 6.0,
            (before + end) / 2.0 - start,
            (start - end) / 2.0 + (after - before) / 6.0,
        ]
    )


def student_loss(series: Floats, ratios: Floats, t: float, freedom: int) -> float:
    """Return P(T > t) or E[max(T - t, 0)] for t >= 0, depending on the tables: accurate to 1e-5 up to z = 6."""
    return student_loss_at(series, ratios, gaussian_place(t * t, freedom), freedom)


def gaussian_place(square: float, freedom: int) -> float:
    """Return the z at which the Gaussian loss is near the Student-t loss at t, for the square of t."""
    return math.sqrt((freedom - 0.5) * math.log(1.0 + square / freedom))


def student_loss_at(series: Floats, ratios: Floats, z: float, freedom: int) -> float:
    """Return the Student-t loss for a `gaussian_place`."""
    place = min(z, RATIO_END) * RATIO_GRID
    interval = min(index(place), INTERVALS - 1)
    x = place - interval
    if freedom <= MOST:
        ratio = cubic(ratios, index(4 * (INTERVALS * (freedom - LEAST) + interval)), x)
    else:
        first = 4 * (INTERVALS * (MOST - LEAST + 1) + 3 * interval)
        inverse = 1.0 / freedom
        a, b, c = cubic(ratios, first, x), cubic(ratios, first + 4, x), cubic(ratios, first + 8, x)
        ratio = 1.0 + inverse * (a + inverse * (b + inverse * c))
    return ratio * gaussian_loss(series, z)


def cubic(table: Floats, first: int, x: float) -> float:
    """Return the value at x of the cubic whose four coefficients start at `first`."""
    return float(table[first] + x * (table[first + 1] + x * (table[first + 2] + x * table[first + 3])))
