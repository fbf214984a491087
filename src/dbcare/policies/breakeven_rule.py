"""Breakeven's decision rule: which arm to pull next, and when the spend reaches the largest expected loss.

The notation is that of `policies.breakeven`, the state that of `policies.breakeven_state`. A pull of an arm other than
the leader updates its own loss and variance; the losses and variances of the others, the leader among them, stay as
they are until the leader is pulled or changes, although every reward moves the pooled variance a little. So losses and
scores use the same variances, on which the bound on the spend rests. Before a stop, all are updated.
"""

import math

from dbcare.policies.breakeven_losses import gaussian_loss, student_loss
from dbcare.policies.breakeven_spread import (
    BreakevenTables,
    Variance,
    arm_variance,
    combined_freedom,
    is_known,
    pooled_variance,
)
from dbcare.policies.breakeven_state import (
    COUNT,
    DEVIATION,
    LEADER,
    LOSS,
    MADE,
    MEAN,
    PRICE,
    PRIORITY,
    PULLS,
    SEEN,
    SPENT,
    SQUARES,
    STOPPED,
    VARIANCE,
    count_reward,
    follow_leader,
    largest_loss,
    least_pulled,
    recommend,
    section,
    send,
    start,
)
from dbcare.policies.rule import STOP, Rule, State

SECTIONS = VARIANCE + 1  # those of `policies.breakeven_state` up to this one


def init(state: State, tables: BreakevenTables, tie: int) -> None:
    """Start a run; all variances are as stated."""
    start(state, tables, tie)
    variance = section(tables, VARIANCE)
    for arm in range(len(tables.cost)):
        state[variance + arm] = tables.stated[arm]
    if is_known(tables):
        state[DEVIATION] = 1.0


def ask(state: State, tables: BreakevenTables) -> int:
    """Return the arm whose next pull removes the most loss per unit of cost, given all pulls made.

    While the spread is unknown, the first of the arms with the fewest pulls.
    """
    if state[STOPPED]:
        return STOP
    arms = len(tables.cost)
    if state[SEEN] < arms or state[DEVIATION] == 0.0:
        return least_pulled(state, tables)
    made, price, variance = section(tables, MADE), section(tables, PRICE), section(tables, VARIANCE)
    loss, priority = section(tables, LOSS), section(tables, PRIORITY)
    leader = int(state[LEADER])
    lead, lead_variance = state[made + leader], state[variance + leader]
    removed = 0.0
    best = -1.0
    chosen = leader
    for arm in range(arms):
        if arm != leader:
            of_leader = lead_variance * state[made + arm]
            of_arm = state[variance + arm] * lead
            share = state[loss + arm] / (of_leader + of_arm)
            removed += share * of_leader
            score = share * of_arm * state[price + arm]
            if score > best or (score == best and state[priority + arm] > state[priority + chosen]):
                best = score
                chosen = arm
    score = removed * state[price + leader]
    if score > best or (score == best and state[priority + leader] > state[priority + chosen]):
        return leader
    return chosen


def tell(state: State, tables: BreakevenTables, arm: int, reward: float) -> None:
    """Count a reward, update the losses, and stop if they break even."""
    before = state[section(tables, MEAN) + arm]
    state[section(tables, SQUARES) + arm] += count_reward(state, tables, arm, reward)
    if state[SEEN] < len(tables.cost):
        return
    scale_unknown = state[DEVIATION] == 0.0
    all_change = follow_leader(state, tables, arm, before) or scale_unknown
    weigh(state, tables, 0 if all_change else arm, len(tables.cost) if all_change else arm + 1)
    if largest_loss(state, tables) <= state[SPENT]:
        decide(state, tables)


def decide(state: State, tables: BreakevenTables) -> None:
    """Stop, as the largest loss is no more than the spend, unless that holds only for old losses or it is too early."""
    if not is_known(tables):
        weigh(state, tables, 0, len(tables.cost))
        if largest_loss(state, tables) > state[SPENT]:
            return
    if state[PULLS] >= tables.not_before:
        state[STOPPED] = 1


def weigh(state: State, tables: BreakevenTables, first: int, stop: int) -> None:
    """Update the losses and variances of the arms from `first` up to but not including `stop`."""
    loss, leader = section(tables, LOSS), int(state[LEADER])
    if is_known(tables):
        for arm in range(first, stop):
            state[loss + arm] = known_loss(state, tables, arm)
    else:
        pool = pooled_variance(state, tables)
        state[DEVIATION] = pool.value
        latest = arm_variance(state, tables, leader, pool)
        if first <= leader < stop:
            state[section(tables, VARIANCE) + leader] = latest.value
        best = Variance(state[section(tables, VARIANCE) + leader], latest.freedom, latest.is_shared)
        for arm in range(first, stop):
            state[loss + arm] = tables.largest_loss
            if pool.value > 0.0:
                state[loss + arm] = learned_loss(state, tables, arm, pool, best)
    if first <= leader < stop:
        state[loss + leader] = 0.0


def known_loss(state: State, tables: BreakevenTables, arm: int) -> float:
    """Return an arm's Gaussian loss at the stated variances."""
    variance = section(tables, VARIANCE)
    root = information(state, tables, arm, state[variance + arm], state[variance + int(state[LEADER])])
    return gaussian_loss_at(state, tables, arm, root)


def learned_loss(state: State, tables: BreakevenTables, arm: int, pool: Variance, best: Variance) -> float:
    """Estimate an arm's variance, and return its Student-t loss, or the Gaussian one at the largest possible variance.

    The latter is a limit: whatever the variances are, they are no larger.
    """
    own = arm_variance(state, tables, arm, pool)
    state[section(tables, VARIANCE) + arm] = own.value
    count = section(tables, COUNT)
    freedom = combined_freedom(own, state[count + arm], best, state[count + int(state[LEADER])], pool)
    root = information(state, tables, arm, own.value, best.value)
    t = gap_behind(state, tables, arm) * root * tables.precision
    loss = in_units(tables, student_loss(tables.series, tables.ratios, t, freedom), root)
    if tables.is_bounded:
        least = information(state, tables, arm, tables.largest_variance, tables.largest_variance)
        loss = min(loss, gaussian_loss_at(state, tables, arm, least))
    return loss


def gaussian_loss_at(state: State, tables: BreakevenTables, arm: int, root: float) -> float:
    """Return an arm's Gaussian loss for the `information` about its gap."""
    loss = gaussian_loss(tables.series, gap_behind(state, tables, arm) * root * tables.precision)
    return in_units(tables, loss, root)


def gap_behind(state: State, tables: BreakevenTables, arm: int) -> float:
    """Return how far an arm's mean is behind the leader's."""
    mean = section(tables, MEAN)
    return float(state[mean + int(state[LEADER])] - state[mean + arm])


def information(state: State, tables: BreakevenTables, arm: int, variance: float, lead_variance: float) -> float:
    """Return (v_k/n_k + v_L/n_L)^(-1/2): `sigma` divided by it is the standard error of the gap."""
    count = section(tables, COUNT)
    pulls, lead = state[count + arm], state[count + int(state[LEADER])]
    return math.sqrt(pulls * lead / (lead_variance * pulls + variance * lead))


def in_units(tables: BreakevenTables, loss: float, root: float) -> float:
    """Return a loss in standard errors, or a chance of an error, in units of the risk."""
    scaled = loss if tables.counts_errors else loss * (tables.sigma / root)
    return float(min(scaled, tables.largest_loss))


RULE = Rule(init, ask, tell, recommend, send)
