"""Confidence bounds on means, Gaussian and Bernoulli, and the stop that rests on them.

A mean p of n such rewards is at least q away with a probability of at most exp(-n kl(p, q)), whatever their
distribution on [0, 1]. Plain arithmetic, compiled together with the rules.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from dbcare.policies.breakeven.state import COUNT, LEADER, MEAN, STOPPED, section
from dbcare.policies.literature.parts import (
    AdaptiveProblem,
    AdaptiveTables,
    Rate,
    StoppingPart,
    current_rate,
    ends_round,
)
from dbcare.policies.rule import State
from dbcare.policies.run import Wording
from dbcare.problem.risk import Risk

SMALLEST = 1e-16  # means and bounds nearer to 0 or 1 count as this far away
MAX_STEPS = 50
PRECISION = 1e-13  # of a bound, relative to its distance from 1


def divergence(p: float, q: float) -> float:
    """Return kl(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q))."""
    near = min(max(q, SMALLEST), 1.0 - SMALLEST)
    value = 0.0
    if p > 0.0:
        value += p * math.log(p / near)
    if p < 1.0:
        value += (1.0 - p) * math.log((1.0 - p) / (1.0 - near))
    return max(value, 0.0)


def upper_bound(p: float, level: float) -> float:
    """Return the largest q with kl(p, q) <= level.

    Newton's method from the right of the root of a convex function, where it never oversteps. It starts at the smaller
    of two points that are not below the root: kl(p, q) >= 2 (q - p)^2, and kl(p, q) >= (1-p) ln(1/(1-q)) - h(p), with
    the entropy h.
    """
    if p >= 1.0 - SMALLEST:
        return 1.0
    if p <= 0.0:
        return 1.0 - math.exp(-level)
    entropy = -p * math.log(p) - (1.0 - p) * math.log(1.0 - p)
    q = min(p + math.sqrt(0.5 * level), 1.0 - math.exp(-(level + entropy) / (1.0 - p)), 1.0 - SMALLEST)
    for _ in range(MAX_STEPS):
        if q <= p:
            break
        step = (divergence(p, q) - level) * q * (1.0 - q) / (q - p)
        q -= step
        if step <= PRECISION * (1.0 - q):
            break
    return max(q, p)


def lower_bound(p: float, level: float) -> float:
    """Return the smallest q with kl(p, q) <= level."""
    return 1.0 - upper_bound(1.0 - p, level)


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
