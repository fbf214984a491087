"""The state of a BreakevenRounds run, and what both modes do with it: compare each arm with the leader, and weigh.

The notation is that of `policies.breakeven.rounds`. The header and the first sections stand where those of
`policies.breakeven.state` do, so that sentences and recommendations are shared. A column holds the comparisons of the
leader with each arm on the blocks that both answered: SHARED, DIFFERENCE and SQUARES.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.policies.breakeven.losses import LEAST, student_loss
from dbcare.policies.breakeven.state import (
    COUNT,
    DEVIATION,
    LEADER,
    LOSS,
    MEAN,
    PRICE,
    PULLS,
    RIVAL,
    ROUND,
    ROUNDING,
    SPENT,
    SQUARES,
    STOPPED,
    SUM,
    WITHIN,
    is_ahead,
    largest_loss,
    section,
)
from dbcare.policies.breakeven.state import recommend as recommend_by_means
from dbcare.policies.rule import State

# ROUND: in a pool, blocks that all arms are through with, counted up to `first_blocks`.
SIZE = WITHIN  # sum of squares of the rewards, to tell a spread from rounding errors
PAID = PRICE  # what an arm's pulls have cost
LEAST_PRICE = 1e-6  # of the stated cost: a pull that turns out to be free still has a price to divide by
SHARED, DIFFERENCE, MISSES = 8, 9, 10  # sections: blocks shared with the leader, by how much it leads there, summed,
# and pulls without a reward
MISSES_PER_FIRST_BLOCK = 3  # an arm that has so many misses and still hardly any rewards is given up


class RoundsTables(NamedTuple):
    """The numbers that define a BreakevenRounds policy."""

    cost: npt.NDArray[np.float64]
    first_blocks: int  # blocks that every arm answers
    pool: int  # number of blocks; 0 if there is no end of them
    share_seen: float  # 1/N where the decision is about these N blocks, else 0
    patience: float  # a: stop once the largest loss is no more than a times the spend
    weight: float  # nu0: differences that the pooled variance counts as
    counts_errors: bool  # True for misidentification, False for simple regret
    largest_loss: float
    guess: bool  # whether to choose without any pulls
    not_before: int  # pulls before which a run does not stop
    series: npt.NDArray[np.float64]  # of the Gaussian loss
    ratios: npt.NDArray[np.float64]  # of the Student-t loss to the Gaussian one


def has_started(state: State, tables: RoundsTables) -> bool:
    """Return whether every arm is through with its first blocks, so that arms are compared."""
    return bool(state[ROUND] >= tables.first_blocks)


def count_answer(state: State, tables: RoundsTables, arm: int, reward: float, cost: float) -> None:
    """Count a reward of an arm and what it cost."""
    count, total = section(tables.cost, COUNT), section(tables.cost, SUM)
    state[PULLS] += 1
    state[SPENT] += cost
    state[SIZE] += reward * reward
    state[count + arm] += 1
    state[total + arm] += reward
    state[section(tables.cost, MEAN) + arm] = state[total + arm] / state[count + arm]
    state[section(tables.cost, PAID) + arm] += cost


def count_miss(state: State, tables: RoundsTables, arm: int, cost: float) -> None:
    """Count a pull of an arm that gave no reward, and what it cost anyway."""
    state[section(tables.cost, MISSES) + arm] += 1
    state[SPENT] += cost
    state[section(tables.cost, PAID) + arm] += cost


def price_of(state: State, tables: RoundsTables, arm: int) -> float:
    """Return what a reward of an arm costs on average, its misses included, or the stated cost before any."""
    pulls = state[section(tables.cost, COUNT) + arm]
    if pulls == 0:
        return float(tables.cost[arm])
    return float(max(state[section(tables.cost, PAID) + arm] / pulls, LEAST_PRICE * tables.cost[arm]))


def first_leader(state: State, tables: RoundsTables) -> int:
    """Return the arm with the largest mean, with ties broken by PRIORITY."""
    count = section(tables.cost, COUNT)
    leading = 0
    for arm in range(1, len(tables.cost)):
        if state[count + arm] > 0 and (state[count + leading] == 0 or is_ahead(state, tables.cost, arm, leading)):
            leading = arm
    return leading


def recommend(state: State, tables: RoundsTables) -> int:
    """Return the leader, or the arm with the largest mean before arms are compared."""
    return int(state[LEADER]) if has_started(state, tables) else recommend_by_means(state, tables)


def find_better(state: State, tables: RoundsTables) -> int:
    """Return the arm that is ahead of the leader by the most standard errors, or the leader if none is ahead."""
    shared, difference, leader = section(tables.cost, SHARED), section(tables.cost, DIFFERENCE), int(state[LEADER])
    better = leader
    most = 0.0
    for arm in range(len(tables.cost)):
        if state[difference + arm] < 0.0:
            lead = -state[difference + arm] / math.sqrt(state[shared + arm])
            if lead > most:
                most = lead
                better = arm
    return better


def compare(state: State, tables: RoundsTables, arm: int, difference: float) -> None:
    """Add a block to the comparison of an arm with the leader, whose reward in it is larger by `difference`."""
    shared, total, squares = (
        section(tables.cost, SHARED),
        section(tables.cost, DIFFERENCE),
        section(tables.cost, SQUARES),
    )
    add_difference(state, shared + arm, total + arm, squares + arm, difference)


def add_difference(state: State, shared: int, total: int, squares: int, difference: float) -> None:
    """Add a difference to those whose number, sum, and squared deviations are at these places (Welford 1962)."""
    blocks = state[shared] + 1
    deviation = difference if blocks == 1 else difference - state[total] / state[shared]
    state[shared] = blocks
    state[total] += difference
    if blocks > 1:
        state[squares] += deviation * (difference - state[total] / blocks)


def weigh(state: State, tables: RoundsTables) -> None:
    """Update all losses, and RIVAL, from the leader's column."""
    shared, squares, loss = section(tables.cost, SHARED), section(tables.cost, SQUARES), section(tables.cost, LOSS)
    leader = int(state[LEADER])
    freedom = 0.0
    within = 0.0
    for arm in range(len(tables.cost)):
        if arm != leader and state[shared + arm] > 1:
            freedom += state[shared + arm] - 1
            within += state[squares + arm]
    if within > ROUNDING * ROUNDING * state[SIZE]:
        pooled = within / freedom
    else:  # no differences vary yet: the next one may be as large as rewards are
        pooled = state[SIZE] / (max(1.0, state[PULLS]) * (freedom + 1))
    state[DEVIATION] = math.sqrt(pooled)
    for arm in range(len(tables.cost)):
        state[loss + arm] = 0.0
        if arm != leader:
            state[loss + arm] = loss_to(state, tables, arm, pooled, freedom)
    largest_loss(state, tables.cost)


def loss_to(state: State, tables: RoundsTables, arm: int, pooled: float, freedom: float) -> float:
    """Return what choosing the leader is expected to lose to an arm; nothing to one that hardly ever gives a reward."""
    blocks = state[section(tables.cost, SHARED) + arm]
    if blocks < tables.first_blocks:
        misses = section(tables.cost, MISSES)
        missed = state[misses + arm] + state[misses + int(state[LEADER])]
        return 0.0 if missed >= MISSES_PER_FIRST_BLOCK * tables.first_blocks else float(tables.largest_loss)
    if pooled == 0.0:
        return float(tables.largest_loss)
    own_freedom = blocks - 1 + tables.weight
    error = math.sqrt(variance_of(state, tables, arm, pooled) * max(0.0, 1.0 / blocks - tables.share_seen))
    if error == 0.0:
        return 0.0
    t = max(0.0, state[section(tables.cost, DIFFERENCE) + arm]) / (blocks * error)
    scaled = student_loss(tables.series, tables.ratios, t, max(LEAST, int(min(own_freedom, freedom))))
    return float(min(scaled if tables.counts_errors else scaled * error, tables.largest_loss))


def variance_of(state: State, tables: RoundsTables, arm: int, pooled: float) -> float:
    """Return the variance of a difference between the leader and an arm: the pooled one, or a larger one of its own."""
    freedom = max(0.0, state[section(tables.cost, SHARED) + arm] - 1.0) + tables.weight
    return float(max(pooled, (state[section(tables.cost, SQUARES) + arm] + tables.weight * pooled) / freedom))


def is_open(state: State, tables: RoundsTables, arm: int) -> bool:
    """Return whether an arm may still be worth more than what has been spent."""
    return bool(state[section(tables.cost, LOSS) + arm] > tables.patience * state[SPENT])


def stop_if_even(state: State, tables: RoundsTables) -> None:
    """Stop if the largest loss is no more than what the spend allows, and it is not too early."""
    rival = int(state[RIVAL])
    if not is_open(state, tables, rival) and state[PULLS] >= tables.not_before:
        state[STOPPED] = 1
