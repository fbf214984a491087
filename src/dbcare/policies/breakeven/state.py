"""The state of a Breakeven run, and what all rules of this kind do with it.

The notation is that of `policies.breakeven.policy`. A state is a header, then sections of one number per arm. Ties
between means or scores go to the arm with the higher PRIORITY, a random order drawn at the start of a run.

Most functions take the arms' costs rather than a policy's tables. The types of tables differ between policies, so
functions that take them are compiled again for each policy; these are compiled once.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dbcare.policies.rule import State, index, next_tie

Costs = npt.NDArray[np.float64]  # of a pull, by arm

PULLS = 0
SPENT = 1
LEADER = 2
RIVAL = 3  # arm with the largest loss
STOPPED = 4
SEEN = 5  # arms with at least one reward
ROUND = 6  # complete rounds, for rules that work in rounds (`rounds_state`)
DEVIATION = 7  # the one that the losses use, 0 if it is still unknown
WITHIN = 8  # sum of squared deviations from each arm's own mean
HEADER = 9

COUNT, MADE, PRICE, SUM, MEAN, LOSS, PRIORITY, SQUARES, VARIANCE = range(9)  # sections, in this order
# MADE includes pulls whose reward is pending; PRICE is 1/(MADE c_k), which saves a division per score. SQUARES is
# the arm's part of WITHIN, and VARIANCE that of a reward as it was last estimated.

ROUNDING = 1e-12  # a smaller spread, relative to the rewards, counts as zero
LEAST_FREEDOM = 3  # fewest degrees of freedom for which the t distribution has a variance


def state_size(arms: int, sections: int) -> int:
    """Return the length of a state."""
    return HEADER + sections * arms


def section(cost: Costs, which: int) -> int:
    """Return the index at which a section starts."""
    return HEADER + which * index(len(cost))


def start(state: State, cost: Costs, guess: bool, tie: int) -> None:
    """Start a run without pulls, with a random order of the arms; with `guess`, there will be none."""
    for place in range(len(state)):
        state[place] = 0.0
    priority = section(cost, PRIORITY)
    drawn = float(tie)
    for arm in range(len(cost)):
        drawn = next_tie(drawn)
        state[priority + arm] = drawn
    if guess:
        state[STOPPED] = 1


def least_pulled(state: State, cost: Costs) -> int:
    """Return the first arm with the fewest pulls made."""
    made = section(cost, MADE)
    chosen = 0
    for arm in range(1, len(cost)):
        if state[made + arm] < state[made + chosen]:
            chosen = arm
    return chosen


def send(state: State, tables: Any, arm: int, pulls: int) -> None:
    """Count pulls whose rewards are pending, so that the next arm is chosen as if they had arrived."""
    made = state[section(tables.cost, MADE) + arm]
    set_made(state, tables.cost, arm, made + pulls)


def set_made(state: State, cost: Costs, arm: int, pulls: int) -> None:
    """Set the number of pulls made of an arm."""
    state[section(cost, MADE) + arm] = pulls
    state[section(cost, PRICE) + arm] = 1.0 / (pulls * cost[arm])


def count_reward(state: State, cost: Costs, arm: int, reward: float) -> float:
    """Count a reward of an arm; return by how much it adds to the sum of squares within arms."""
    count, total, mean = section(cost, COUNT), section(cost, SUM), section(cost, MEAN)
    pulls = state[count + arm] + 1
    before = state[mean + arm]
    state[count + arm] = pulls
    if pulls > state[section(cost, MADE) + arm]:
        set_made(state, cost, arm, pulls)
    state[total + arm] += reward
    after = state[total + arm] / pulls
    state[mean + arm] = after
    state[PULLS] += 1
    state[SPENT] += cost[arm]
    if pulls == 1:
        state[SEEN] += 1
        return 0.0
    added = (reward - before) * (reward - after)
    state[WITHIN] += added
    return float(added)


def squares_of_rewards(state: State, cost: Costs) -> tuple[float, int]:
    """Return a sum of squared deviations of the rewards and its degrees of freedom; 0 of them until rewards vary.

    Deviations are those from each arm's own mean, with N - K degrees of freedom, or from the mean of all rewards, with
    N - 1. The latter sum is too large if means differ, but works when many arms have been pulled only once. The one
    with the smaller predictive variance, SS/(nu - 2), is used.
    """
    count, total, mean = section(cost, COUNT), section(cost, SUM), section(cost, MEAN)
    rewards = 0.0
    for arm in range(len(cost)):
        rewards += state[total + arm]
    middle = rewards / state[PULLS]
    between = 0.0
    size = 0.0
    for arm in range(len(cost)):
        apart = state[mean + arm] - middle
        between += state[count + arm] * apart * apart
        size += state[count + arm] * state[mean + arm] * state[mean + arm]
    rounding = ROUNDING * ROUNDING * size
    freedom = int(state[PULLS]) - 1
    squares = state[WITHIN] + between
    inside = freedom + 1 - len(cost)
    if inside >= LEAST_FREEDOM and rounding < state[WITHIN] and state[WITHIN] * (freedom - 2) < squares * (inside - 2):
        freedom = inside
        squares = state[WITHIN]
    return (0.0, 0) if freedom < LEAST_FREEDOM or squares <= rounding else (float(squares), freedom)


def follow_leader(state: State, cost: Costs, arm: int, before: float) -> bool:
    """Find the leader after a reward of `arm`, whose mean was `before`; return whether all comparisons change.

    They do if the arm leads or led, or if it is the last one to be seen; a reward of any other arm changes its own.
    """
    mean, leader = section(cost, MEAN), int(state[LEADER])
    first = state[section(cost, COUNT) + arm] == 1
    if first or (arm == leader and state[mean + arm] < before):
        leading = 0
        for other in range(1, len(cost)):
            if is_ahead(state, cost, other, leading):
                leading = other
        state[LEADER] = leading
    elif arm != leader and is_ahead(state, cost, arm, leader):
        state[LEADER] = arm
    return bool(first or arm == leader or state[LEADER] != leader)


def is_ahead(state: State, cost: Costs, one: int, other: int) -> bool:
    """Return whether one arm's mean is larger, with ties broken by PRIORITY."""
    mean, priority = section(cost, MEAN), section(cost, PRIORITY)
    difference = state[mean + one] - state[mean + other]
    return bool(difference > 0.0 or (difference == 0.0 and state[priority + one] > state[priority + other]))


def arm_with_largest_mean(state: State, cost: Costs) -> int:
    """Return the arm with the largest mean; arms without a reward are considered only if no arm has one."""
    count, priority = section(cost, COUNT), section(cost, PRIORITY)
    best = 0
    for arm in range(1, len(cost)):
        if state[count + arm] > 0 and state[count + best] > 0:
            ahead = is_ahead(state, cost, arm, best)
        elif state[count + arm] == state[count + best]:
            ahead = state[priority + arm] > state[priority + best]
        else:
            ahead = state[count + arm] > 0
        if ahead:
            best = arm
    return best


def recommend(state: State, tables: Any) -> int:
    """Return the arm to choose: the one with the largest mean."""
    return arm_with_largest_mean(state, tables.cost)


def largest_loss(state: State, cost: Costs) -> float:
    """Return the largest loss, and set RIVAL to its arm; the leader's own loss is 0."""
    loss, leader = section(cost, LOSS), int(state[LEADER])
    rival = 1 if leader == 0 else 0
    for arm in range(rival + 1, len(cost)):
        if state[loss + arm] > state[loss + rival] and arm != leader:
            rival = arm
    state[RIVAL] = rival
    return float(state[loss + rival])
