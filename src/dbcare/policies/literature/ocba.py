"""OCBA: spend a budget so that arms near the best, and noisy ones, are pulled more often."""

import math
from dataclasses import dataclass

from dbcare.base import checks
from dbcare.base.look import ORANGE, Look, PolicyKind
from dbcare.policies.breakeven.state import COUNT, LEADER, MADE, MEAN, SQUARES, section
from dbcare.policies.literature.parts import (
    OWN_SECTION,
    AdaptiveProblem,
    AdaptiveTables,
    BudgetRule,
    SamplingPart,
    wins_tie,
)
from dbcare.policies.rule import State

SHARE = OWN_SECTION  # of the pulls that each arm should get
MAX_RATIO = 1e12  # a gap that is smaller in comparison with the spread counts as this
MAX_SQUARE = 1e150  # of N_k/s_k, so that its product with a variance stays finite
DEFAULT_FIRST_PULLS = 5


def no_numbers(problem: AdaptiveProblem) -> tuple[()]:
    """Return nothing: all numbers come from the rewards."""
    return ()


def prepare(state: State, tables: AdaptiveTables) -> None:
    """Compute the shares: N_k = (s_k/d_k)^2 and N_b = s_b sqrt(sum (N_k/s_k)^2), divided by their sum."""
    count, mean, squares = section(tables.cost, COUNT), section(tables.cost, MEAN), section(tables.cost, SQUARES)
    share, leader = section(tables.cost, SHARE), int(state[LEADER])
    total = 0.0
    root = 0.0
    for arm in range(len(tables.cost)):
        if arm != leader:
            variance = state[squares + arm] / max(state[count + arm] - 1.0, 1.0)
            gap = state[mean + leader] - state[mean + arm]
            ratio = MAX_RATIO if gap * gap * MAX_RATIO <= variance else variance / (gap * gap)
            state[share + arm] = ratio
            total += ratio
            if variance > 0.0:
                root += min(ratio * ratio / variance, MAX_SQUARE)
    variance = state[squares + leader] / max(state[count + leader] - 1.0, 1.0)
    state[share + leader] = math.sqrt(variance * root)
    total += state[share + leader]
    for arm in range(len(tables.cost)):
        state[share + arm] = state[share + arm] / total if total > 0.0 else 1.0 / len(tables.cost)


def choose(state: State, tables: AdaptiveTables) -> int:
    """Return the arm that is farthest behind its share of all pulls, the next one included."""
    made, share = section(tables.cost, MADE), section(tables.cost, SHARE)
    total = 1.0
    for arm in range(len(tables.cost)):
        total += state[made + arm]
    chosen = 0
    farthest = total * state[share] - state[made]
    for arm in range(1, len(tables.cost)):
        behind = total * state[share + arm] - state[made + arm]
        if behind > farthest or (behind == farthest and wins_tie(state, tables, arm, chosen)):
            chosen = arm
            farthest = behind
    return chosen


SAMPLING = SamplingPart(choose, no_numbers, prepare=prepare, sections=1, first_pulls=DEFAULT_FIRST_PULLS)


@dataclass(frozen=True)
class OCBA(BudgetRule):
    """Optimal computing budget allocation: Chen, Lin, Yuecesan and Chick (2000), Theorem 1, one pull at a time.

    With leader b, the shares of pulls N_k are proportional to (s_k/d_k)^2, where d_k is how far the mean of arm k is
    behind the leader's and s_k its standard deviation, both as estimated so far; N_b = s_b sqrt(sum (N_k/s_k)^2).
    After `first_pulls` of every arm, pull the arm that is farthest behind its share, until the budget is used up. It
    asymptotically maximizes an approximation of the probability of a correct choice, and guarantees nothing.

    Parameters
    ----------
    arms : int
        Number of arms.
    budget : int
        Number of pulls, at least `first_pulls` per arm.
    first_pulls : int
        First pulls of every arm, at least 2, as variances are estimated from them.

    Examples
    --------
    >>> from dbcare.policies import OCBA
    >>> OCBA(arms=4, budget=100).max_pulls
    100
    """

    label = "OCBA"
    kind = PolicyKind.FIXED_BUDGET
    look = Look((ORANGE,), "h")
    live = False

    first_pulls: int = DEFAULT_FIRST_PULLS
    sampling_part = SAMPLING

    def __post_init__(self) -> None:
        checks.set_fields(self, first_pulls=checks.whole("first_pulls` of `OCBA", self.first_pulls, at_least=2))
        super().__post_init__()
