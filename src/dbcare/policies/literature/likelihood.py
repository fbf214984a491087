"""Generalized likelihood ratios of two arms, and the stop that rests on them.

The logarithm of the likelihood ratio of "arm a is better than arm b", whose means say so, to its contrary is
n_a d(mu_a, m) + n_b d(mu_b, m), with the mean m of all rewards of both. For Gaussian arms it is
(mu_a - mu_b)^2/(2 sigma^2 (1/n_a + 1/n_b)). It is also what it would cost to transport the means so that they agree.
"""

from typing import NamedTuple

from dbcare.policies.breakeven.state import COUNT, LEADER, MEAN, STOPPED, section
from dbcare.policies.literature.bounds import divergence
from dbcare.policies.literature.parts import (
    HEURISTIC,
    AdaptiveProblem,
    AdaptiveTables,
    Rate,
    StoppingPart,
    bernoulli_ratio_rate,
    current_rate,
    gaussian_ratio_rate,
    heuristic_rate,
)
from dbcare.policies.rule import State
from dbcare.policies.run import Wording
from dbcare.problem.risk import Risk


class RewardFamily(NamedTuple):
    """Bernoulli arms, or Gaussian ones with a known variance."""

    is_bernoulli: bool
    variance: float


class LikelihoodNumbers(NamedTuple):
    """The family of the arms, and the threshold."""

    family: RewardFamily
    rate: Rate


def family_of(problem: AdaptiveProblem) -> RewardFamily:
    """Return the family of a problem's arms."""
    return RewardFamily(problem.bernoulli, 0.25 if problem.sigma is None else problem.sigma**2)


def likelihood_ratio(family: RewardFamily, mean: float, pulls: float, other: float, other_pulls: float) -> float:
    """Return the logarithm of the generalized likelihood ratio of two arms."""
    if not family.is_bernoulli:
        gap = mean - other
        return gap * gap * pulls * other_pulls / (2.0 * family.variance * (pulls + other_pulls))
    middle = (pulls * mean + other_pulls * other) / (pulls + other_pulls)
    return pulls * divergence(mean, middle) + other_pulls * divergence(other, middle)


def smallest_ratio(state: State, tables: AdaptiveTables) -> tuple[float, int]:
    """Return the smallest likelihood ratio of the leader to another arm, and that arm."""
    count, mean, leader = section(tables.cost, COUNT), section(tables.cost, MEAN), int(state[LEADER])
    family = tables.stopping.family
    top, pulls = state[mean + leader], state[count + leader]
    rival = -1
    smallest = 0.0
    for arm in range(len(tables.cost)):
        if arm != leader:
            ratio = likelihood_ratio(family, top, pulls, state[mean + arm], state[count + arm])
            if rival < 0 or ratio < smallest:
                rival = arm
                smallest = ratio
    return smallest, rival


def threshold(state: State, tables: AdaptiveTables) -> float:
    """Return the likelihood ratio beyond which a run is over."""
    first = len(tables.cost) * tables.first_pulls
    return current_rate(state, tables.stopping.rate, first, tables.round_pulls)


def decide(state: State, tables: AdaptiveTables) -> None:
    """Stop once the leader's smallest likelihood ratio exceeds the threshold."""
    if smallest_ratio(state, tables)[0] > threshold(state, tables):
        state[STOPPED] = 1


def describe(state: State, tables: AdaptiveTables, wording: Wording, risk: Risk | None) -> str:
    """Explain in one clause how the ratio compares with the threshold."""
    ratio, rival = smallest_ratio(state, tables)
    return (
        f"that {wording.arm(int(state[LEADER]))} is better than {wording.arm(rival)} has a log-likelihood ratio of "
        f"{ratio:.4g}, and the threshold is {threshold(state, tables):.4g}"
    )


def numbers(problem: AdaptiveProblem) -> LikelihoodNumbers:
    """Return the family and the rate: proven for the family, or the heuristic one."""
    assert problem.delta is not None
    if problem.rate == HEURISTIC:
        rate = heuristic_rate(problem.delta)
    elif problem.bernoulli:
        rate = bernoulli_ratio_rate(problem.arms, problem.delta)
    else:
        rate = gaussian_ratio_rate(problem.arms, problem.delta)
    return LikelihoodNumbers(family_of(problem), rate)


STOPPING = StoppingPart(decide, numbers, describe, needs=("sigma", "delta"))
