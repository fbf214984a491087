"""UGapE: pull the less known of two arms that decide the smallest gap index, for a given error or a given budget.

With bounds U_k and L_k, the gap index of arm k is B_k = max over i != k of U_i, less L_k. J is the arm with the
smallest index, and u the other arm with the highest U.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dbcare.base.look import SKY, Look, PolicyKind
from dbcare.policies.breakeven.state import LEADER, MADE, MEAN, section
from dbcare.policies.literature import parts as fixed_budget
from dbcare.policies.literature.bounds import make_numbers, make_stop, square_radius
from dbcare.policies.literature.parts import (
    AdaptiveProblem,
    AdaptiveTables,
    BudgetRule,
    ConfidenceRule,
    SamplingPart,
    ugape_rate,
    wins_tie,
)
from dbcare.policies.rule import State


def choose_by_index(state: State, tables: AdaptiveTables, square: float) -> int:
    """Return J or u, whichever has fewer pulls, where an arm with n pulls has a radius of sqrt(square/n)."""
    arms = len(tables.cost)
    made, mean = section(tables.cost, MADE), section(tables.cost, MEAN)
    first, second = -1, -1  # the arms with the highest upper bounds
    highest = next_highest = 0.0
    for arm in range(arms):
        upper = state[mean + arm] + math.sqrt(square / state[made + arm])
        if first < 0 or upper > highest or (upper == highest and wins_tie(state, tables, arm, first)):
            second, next_highest = first, highest
            first, highest = arm, upper
        elif second < 0 or upper > next_highest or (upper == next_highest and wins_tie(state, tables, arm, second)):
            second, next_highest = arm, upper
    chosen = -1
    smallest = 0.0
    for arm in range(arms):
        lower = state[mean + arm] - math.sqrt(square / state[made + arm])
        index = (next_highest if arm == first else highest) - lower
        if chosen < 0 or index < smallest or (index == smallest and wins_tie(state, tables, arm, chosen)):
            chosen = arm
            smallest = index
    rival = second if chosen == first else first
    fewer = state[made + rival] - state[made + chosen]
    return rival if fewer < 0 or (fewer == 0 and wins_tie(state, tables, rival, chosen)) else chosen


def choose(state: State, tables: AdaptiveTables) -> int:
    """Return the arm to pull for a given error."""
    return choose_by_index(state, tables, square_radius(state, tables, tables.sampling))


SAMPLING = SamplingPart(choose, make_numbers(ugape_rate), needs=("sigma", "delta"))
STOPPING = make_stop(ugape_rate)


class UGapE(ConfidenceRule):
    """UGapEc for K arms and a given error: Gabillon, Ghavamzadeh and Lazaric (2012), *Best Arm Identification*.

    Bounds have a radius of sqrt(2 sigma^2 ln(4 K t^3/delta)/n) after t pulls. With J and u as in
    `policies.literature.ugape`, pull the one with fewer pulls; stop when the smallest gap index is negative, which
    means that the leader's lower bound is above all other upper bounds. The error is at most `delta` (their Theorem 2,
    for one arm and an accuracy of 0), unless `max_pulls` ends a run first.

    Parameters
    ----------
    arms : int
        Number of arms.
    delta : float
        The error that is allowed.
    sigma : float
        Sub-Gaussian parameter of the rewards; half the range of bounded ones.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare.policies import UGapE
    >>> run = UGapE(arms=3, sigma=0.5).start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.4, 0.1][arm])
    >>> run.recommendation(), run.pulls
    (0, 418)
    """

    label = "UGapE"
    kind = PolicyKind.FIXED_CONFIDENCE
    look = Look((SKY,), ">", hollow=True)
    sampling_part = SAMPLING
    stopping_part = STOPPING


class GapNumbers(NamedTuple):
    """What the budget leaves for exploration, (n - K)/16, and sigma^2."""

    exploration: float
    variance: float


def choose_within(state: State, tables: AdaptiveTables) -> int:
    """Return the arm to pull for a given budget; the complexity is estimated from the means so far."""
    made, mean, leader = section(tables.cost, MADE), section(tables.cost, MEAN), int(state[LEADER])
    complexity = 0.0
    nearest = math.inf
    for arm in range(len(tables.cost)):
        if arm != leader:
            error = tables.sampling.variance * (1.0 / state[made + leader] + 1.0 / state[made + arm])
            gap = state[mean + leader] - state[mean + arm] + math.sqrt(error)
            nearest = min(nearest, gap)
            complexity += 1.0 / (gap * gap)
    complexity += 1.0 / (nearest * nearest)
    return choose_by_index(state, tables, tables.sampling.exploration / complexity)


def numbers(problem: AdaptiveProblem) -> Any:
    """Return the pulls that the budget leaves."""
    assert problem.budget is not None
    assert problem.sigma is not None
    return GapNumbers((problem.budget - problem.arms) / 16.0, problem.sigma**2)


BUDGETED_SAMPLING = SamplingPart(
    choose_within,
    numbers,
    needs=("sigma", "budget"),
    only_with=fixed_budget.STOPPING,
    why="its bounds are as wide as the budget allows, which no other stop has",
)


@dataclass(frozen=True)
class UGapEBudget(BudgetRule):
    """UGapEb for K arms and a given budget: Gabillon, Ghavamzadeh and Lazaric (2012), *Best Arm Identification*.

    Bounds have a radius of sqrt((n - K)/(16 H t_k)) after t_k of n pulls, with H = sum of 1/gap_k^2, where the best arm
    has the gap of the second best: their b sqrt(a/t_k) with a = (n - K)/(4 H_e) and an accuracy e of 0 (Theorem 1), in
    which the range b cancels. As H is unknown, it is estimated as the pulls are made, from gaps that are the difference
    of two means plus its standard error: without that, two means that happen to be equal would end all exploration.
    Pull as `UGapE` does, n times in all, and recommend the arm with the largest mean.

    Parameters
    ----------
    arms : int
        Number of arms.
    budget : int
        Number of pulls, at least one per arm.
    sigma : float
        Standard deviation of the rewards.

    Examples
    --------
    >>> from dbcare.policies import UGapEBudget
    >>> UGapEBudget(arms=4, budget=100).max_pulls
    100
    """

    label = "UGapE, fixed budget"
    kind = PolicyKind.FIXED_BUDGET
    look = Look((SKY,), ">")
    live = False

    sigma: float = 1.0
    sampling_part = BUDGETED_SAMPLING
