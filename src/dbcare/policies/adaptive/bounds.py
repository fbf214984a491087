"""Confidence bounds of sub-Gaussian rewards, and the stop once the leader's is above all others."""

import math
from collections.abc import Callable
from typing import NamedTuple

from dbcare.policies.adaptive.parts import AdaptiveProblem, AdaptiveTables, StoppingPart, ends_round
from dbcare.policies.adaptive.rates import Rate, current_rate
from dbcare.policies.breakeven_state import COUNT, LEADER, MEAN, STOPPED, section
from dbcare.policies.rule import State
from dbcare.policies.wording import Wording
from dbcare.problem.risk import Risk


class BoundNumbers(NamedTuple):
    """The rate of the bounds, and 2 sigma^2."""

    rate: Rate
    scale: float


def square_radius(state: State, tables: AdaptiveTables, numbers: BoundNumbers) -> float:
    """Return 2 sigma^2 beta: an arm with n pulls has a radius of sqrt(2 sigma^2 beta/n)."""
    first = len(tables.cost) * tables.first_pulls
    return numbers.scale * current_rate(state, numbers.rate, first, tables.round_pulls)


def decide(state: State, tables: AdaptiveTables) -> None:
    """Stop after a round if the leader's lower bound is above the upper bounds of all others."""
    if not ends_round(state, tables):
        return
    count, mean, leader = section(tables.cost, COUNT), section(tables.cost, MEAN), int(state[LEADER])
    square = square_radius(state, tables, tables.stopping)
    lower = state[mean + leader] - math.sqrt(square / state[count + leader])
    for arm in range(len(tables.cost)):
        if arm != leader and state[mean + arm] + math.sqrt(square / state[count + arm]) >= lower:
            return
    state[STOPPED] = 1


def describe(state: State, tables: AdaptiveTables, wording: Wording, risk: Risk | None) -> str:
    """Explain in one clause how the bounds compare."""
    count, mean, leader = section(tables.cost, COUNT), section(tables.cost, MEAN), int(state[LEADER])
    square = square_radius(state, tables, tables.stopping)
    radius = [math.sqrt(square / state[count + arm]) for arm in range(len(tables.cost))]
    upper = {arm: state[mean + arm] + radius[arm] for arm in range(len(radius)) if arm != leader}
    rival = max(upper, key=lambda arm: upper[arm])
    return describe_bounds(wording, leader, state[mean + leader] - radius[leader], rival, upper[rival])


def describe_bounds(wording: Wording, leader: int, lower: float, rival: int, upper: float) -> str:
    """Return the clause about two bounds."""
    return f"{wording.arm(leader)} has a lower bound of {lower:.4g}, {wording.arm(rival)} an upper bound of {upper:.4g}"


def make_numbers(rate: Callable[[int, float], Rate]) -> Callable[[AdaptiveProblem], BoundNumbers]:
    """Return the function that gives a part its bounds at a rate."""

    def numbers(problem: AdaptiveProblem) -> BoundNumbers:
        assert problem.delta is not None
        assert problem.sigma is not None
        return BoundNumbers(rate(problem.arms, problem.delta), 2.0 * problem.sigma**2)

    return numbers


def make_stop(rate: Callable[[int, float], Rate]) -> StoppingPart:
    """Return the stop by bounds at a rate."""
    return StoppingPart(decide, make_numbers(rate), describe, needs=("sigma", "delta"))
