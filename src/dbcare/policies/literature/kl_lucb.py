"""KL-LUCB: LUCB for rewards in [0, 1], with confidence bounds by the Kullback-Leibler divergence."""

from dataclasses import dataclass
from typing import NamedTuple

from dbcare.base.look import GREEN, Look, PolicyKind
from dbcare.policies.breakeven.state import COUNT, LEADER, MADE, MEAN, STOPPED, section
from dbcare.policies.elimination.racing import DEFAULT_MAX_PULLS
from dbcare.policies.literature.bounds import describe_bounds, divergence, lower_bound, upper_bound
from dbcare.policies.literature.parts import (
    DEFAULT_DELTA,
    HEURISTIC,
    PROVEN,
    AdaptivePolicy,
    AdaptiveProblem,
    AdaptiveTables,
    Rate,
    StoppingPart,
    current_rate,
    ends_round,
    heuristic_rate,
    kl_lucb_rate,
    sample_pairs,
    wins_tie,
)
from dbcare.policies.rule import State
from dbcare.policies.run import Wording
from dbcare.problem.risk import Risk


class KLNumbers(NamedTuple):
    """The rate of the bounds."""

    rate: Rate


def beta(state: State, tables: AdaptiveTables, numbers: KLNumbers) -> float:
    """Return the rate at this time of a run."""
    return current_rate(state, numbers.rate, len(tables.cost) * tables.first_pulls, tables.round_pulls)


def challenger(state: State, tables: AdaptiveTables) -> int:
    """Return the arm with the highest upper bound, other than the leader; bounds of others are not solved for."""
    made, mean, leader = section(tables.cost, MADE), section(tables.cost, MEAN), int(state[LEADER])
    level = beta(state, tables, tables.sampling)
    chosen = -1
    highest = 0.0
    for arm in range(len(tables.cost)):
        if arm == leader:
            continue
        mean_of, pulls = state[mean + arm], state[made + arm]
        if chosen < 0 or mean_of > highest or pulls * divergence(mean_of, highest) <= level:
            upper = upper_bound(mean_of, level / pulls)
            if chosen < 0 or upper > highest or (upper == highest and wins_tie(state, tables, arm, chosen)):
                chosen = arm
                highest = upper
    return chosen


def decide(state: State, tables: AdaptiveTables) -> None:
    """Stop after a round if the leader's lower bound is above the upper bounds of all others."""
    if not ends_round(state, tables):
        return
    count, mean, leader = section(tables.cost, COUNT), section(tables.cost, MEAN), int(state[LEADER])
    level = beta(state, tables, tables.stopping)
    lower = lower_bound(state[mean + leader], level / state[count + leader])
    for arm in range(len(tables.cost)):
        if arm != leader:
            mean_of = state[mean + arm]
            if mean_of >= lower or state[count + arm] * divergence(mean_of, lower) <= level:
                return
    state[STOPPED] = 1


def describe(state: State, tables: AdaptiveTables, wording: Wording, risk: Risk | None) -> str:
    """Explain in one clause how the bounds compare."""
    count, mean, leader = section(tables.cost, COUNT), section(tables.cost, MEAN), int(state[LEADER])
    level = beta(state, tables, tables.stopping)
    upper = {
        arm: upper_bound(state[mean + arm], level / state[count + arm])
        for arm in range(len(tables.cost))
        if arm != leader
    }
    rival = max(upper, key=lambda arm: upper[arm])
    lower = lower_bound(state[mean + leader], level / state[count + leader])
    return describe_bounds(wording, leader, lower, rival, upper[rival])


def numbers(problem: AdaptiveProblem) -> KLNumbers:
    """Return the proven rate, or the heuristic one."""
    assert problem.delta is not None
    if problem.rate == HEURISTIC:
        return KLNumbers(heuristic_rate(problem.delta))
    return KLNumbers(kl_lucb_rate(problem.arms, problem.delta))


SAMPLING = sample_pairs(challenger, numbers, needs=("delta",), is_bernoulli=True)
STOPPING = StoppingPart(decide, numbers, describe, needs=("delta",), is_bernoulli=True)


@dataclass(frozen=True)
class KLLUCB(AdaptivePolicy):
    """KL-LUCB for K arms with rewards in [0, 1]: Kaufmann and Kalyanakrishnan (2013), *Information Complexity*.

    As LUCB, with the bounds at which n kl(mean, bound) = beta(t). Rates:
    "proven"     ln x + ln ln x with x = 405.5 K t^1.1/delta in round t; the error is at most `delta` (their Theorem 1)
    "heuristic"  ln((ln t + 1)/delta) after t pulls, as in the experiments of Garivier and Kaufmann (2016)

    Parameters
    ----------
    arms : int
        Number of arms.
    delta : float
        The error that is allowed.
    rate : {"proven", "heuristic"}
        The rate, as above.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare.policies import KLLUCB
    >>> run = KLLUCB(arms=2, rate="heuristic").start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([1.0, 0.0][arm])
    >>> run.recommendation(), run.pulls
    (0, 14)
    """

    label = "KL-LUCB"
    kind = PolicyKind.FIXED_CONFIDENCE
    look = Look((GREEN,), "v")

    arms: int
    delta: float = DEFAULT_DELTA
    rate: str = PROVEN
    max_pulls: int = DEFAULT_MAX_PULLS
    risk = None
    sampling_part = SAMPLING
    stopping_part = STOPPING
