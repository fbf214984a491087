"""Estimates of how much an arm's rewards vary: the stated sigma, what all arms share, and what the arm itself shows.

Variances are in units of the stated sigma^2, of 1 where none is stated. Plain arithmetic, compiled together with the
rule (`policies.breakeven_rule`).
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.policies.breakeven_state import (
    COUNT,
    LEAST_FREEDOM,
    PULLS,
    SQUARES,
    VARIANCE,
    WITHIN,
    section,
    squares_of_rewards,
)
from dbcare.policies.rule import State


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
