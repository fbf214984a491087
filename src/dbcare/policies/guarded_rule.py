"""The decision rule of `breakeven-guarded`: one standard deviation for all arms, checked only before a stop.

Losses that use the rewards' standard deviation may use an earlier value; all are updated before a stop.
"""

import math

from dbcare.policies.breakeven_state import (
    COUNT,
    DEVIATION,
    DOUBTED,
    LEADER,
    LEAST_FREEDOM,
    LOSS,
    MADE,
    MEAN,
    PRICE,
    PRIORITY,
    PULLS,
    SEEN,
    SPENT,
    STOPPED,
    count_reward,
    follow_leader,
    largest_loss,
    least_pulled,
    recommend,
    section,
    send,
    squares_of_rewards,
    start,
)
from dbcare.policies.guarded_losses import GuardedTables, Sample, loss_of
from dbcare.policies.rule import STOP, Rule, State
from dbcare.theory.student import density_at_0

SECTIONS = PRIORITY + 1  # those of `policies.breakeven_state` up to this one


def init(state: State, tables: GuardedTables, tie: int) -> None:
    """Start a run; without a stated sigma, losses use the rewards' standard deviation from the start."""
    start(state, tables.cost, tables.guess, tie)
    if tables.sigma == 0.0:
        state[DOUBTED] = 1


def ask(state: State, tables: GuardedTables) -> int:
    """Return the arm whose next pull removes the most loss per unit of cost, given all pulls made."""
    if state[STOPPED]:
        return STOP
    arms = len(tables.cost)
    if state[SEEN] < arms:
        return least_pulled(state, tables.cost)
    made, price = section(tables.cost, MADE), section(tables.cost, PRICE)
    loss, priority = section(tables.cost, LOSS), section(tables.cost, PRIORITY)
    leader = int(state[LEADER])
    lead = state[made + leader]
    removed = 0.0
    best = -1.0
    chosen = leader
    for arm in range(arms):
        if arm != leader:
            share = state[loss + arm] / (state[made + arm] + lead)
            removed += share * state[made + arm]
            score = share * lead * state[price + arm]
            if score > best or (score == best and state[priority + arm] > state[priority + chosen]):
                best = score
                chosen = arm
    score = removed * state[price + leader]
    if score > best or (score == best and state[priority + leader] > state[priority + chosen]):
        return leader
    return chosen


def tell(state: State, tables: GuardedTables, arm: int, reward: float) -> None:
    """Count a reward, update the losses, and stop if they break even."""
    before = state[section(tables.cost, MEAN) + arm]
    count_reward(state, tables.cost, arm, reward)
    if state[SEEN] < len(tables.cost):
        return
    scale_unknown = state[DOUBTED] and state[DEVIATION] == 0.0
    all_change = follow_leader(state, tables.cost, arm, before) or scale_unknown
    weigh(state, tables, 0 if all_change else arm, len(tables.cost) if all_change else arm + 1)
    if largest_loss(state, tables.cost) <= state[SPENT]:
        decide(state, tables)


def decide(state: State, tables: GuardedTables) -> None:
    """Stop if the largest loss is no more than the spend for the latest standard deviation of the rewards too."""
    state[DOUBTED] = 1
    weigh(state, tables, 0, len(tables.cost))
    if largest_loss(state, tables.cost) <= state[SPENT] and state[PULLS] > LEAST_FREEDOM:
        state[STOPPED] = 1


def weigh(state: State, tables: GuardedTables, first: int, stop: int) -> None:
    """Update the losses of the arms from `first` up to but not including `stop`; the leader's own loss is 0."""
    count, mean, loss, leader = (
        section(tables.cost, COUNT),
        section(tables.cost, MEAN),
        section(tables.cost, LOSS),
        int(state[LEADER]),
    )
    sample = sample_of(state, tables)
    best, lead = state[mean + leader], state[count + leader]
    for arm in range(first, stop):
        pulls = state[count + arm]
        root = math.sqrt(pulls * lead / (pulls + lead))
        state[loss + arm] = loss_of(tables, sample, best - state[mean + arm], root)
    if first <= leader < stop:
        state[loss + leader] = 0.0
        state[DEVIATION] = sample.deviation


def sample_of(state: State, tables: GuardedTables) -> Sample:
    """Return the standard deviation of the rewards so far, if it is needed."""
    squares, freedom = squares_of_rewards(state, tables.cost) if state[DOUBTED] else (0.0, 0)
    if freedom == 0:
        return Sample(0.0, 0, 0.0)
    peak = 0.0 if tables.counts_errors else density_at_0(freedom)
    return Sample(min(math.sqrt(squares / freedom), tables.largest_deviation), freedom, peak)


RULE = Rule(init, ask, tell, recommend, send)
