"""Breakeven's decision rule: which arm to pull next, and when the spend reaches the largest expected loss.

The notation is that of `policies.breakeven.policy`, the state that of `policies.breakeven.state`. A pull of an arm
other than the leader updates its own loss and variance; the losses and variances of the others, the leader among them,
stay as they are until the leader is pulled or changes, although every reward moves the pooled variance a little. So
losses and scores use the same variances, on which the bound on the spend rests. Before a stop, all are updated.

A Student-t loss is a long chain of operations that wait for each other. `weigh` computes it in several loops over the
arms, with t^2 and then z in place of the loss in between: a processor overlaps more arms in short loops, and does the
arithmetic of the first one for several arms at once.
"""

import math
from typing import NamedTuple

from dbcare.policies.breakeven.losses import (
    BreakevenTables,
    Variance,
    arm_variance,
    combined_freedom,
    gaussian_loss,
    gaussian_place,
    is_known,
    pooled_variance,
    stored_variance,
    student_loss_at,
)
from dbcare.policies.breakeven.state import (
    COUNT,
    DEVIATION,
    LEADER,
    LOSS,
    MADE,
    MEAN,
    PRICE,
    PRIORITY,
    PULLS,
    RIVAL,
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
from dbcare.policies.rule import STOP, Rule, State, index

SECTIONS = VARIANCE + 1  # those of `policies.breakeven.state` up to this one


class Lead(NamedTuple):
    """What all comparisons with the leader share."""

    mean: float
    pulls: float
    variance: Variance


def init(state: State, tables: BreakevenTables, tie: int) -> None:
    """Start a run; all variances are as stated."""
    start(state, tables.cost, tables.guess, tie)
    variance = section(tables.cost, VARIANCE)
    for arm in range(len(tables.cost)):
        state[variance + arm] = tables.stated[arm]
    if is_known(tables):
        state[DEVIATION] = 1.0


def ask(state: State, tables: BreakevenTables) -> int:
    """Return the arm to pull next, or STOP: at first, one of those with the fewest pulls."""
    if state[STOPPED]:
        return STOP
    if state[SEEN] < len(tables.cost):
        return least_pulled(state, tables.cost)
    return choose(state, tables)


def choose(state: State, tables: BreakevenTables) -> int:
    """Return the arm whose next pull removes the most loss per unit of cost, given all pulls made.

    While the spread is unknown, the first of the arms with the fewest pulls.
    """
    if state[DEVIATION] == 0.0:
        return least_pulled(state, tables.cost)
    arms = len(tables.cost)
    made, price, variance = section(tables.cost, MADE), section(tables.cost, PRICE), section(tables.cost, VARIANCE)
    loss, priority = section(tables.cost, LOSS), section(tables.cost, PRIORITY)
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
    if observe(state, tables, arm, reward) <= state[SPENT]:
        decide(state, tables)


def observe(state: State, tables: BreakevenTables, arm: int, reward: float) -> float:
    """Count a reward and update the losses; return the largest, that of RIVAL, infinite until all arms are seen."""
    before = state[section(tables.cost, MEAN) + arm]
    state[section(tables.cost, SQUARES) + arm] += count_reward(state, tables.cost, arm, reward)
    if state[SEEN] < len(tables.cost):
        return math.inf
    scale_unknown = state[DEVIATION] == 0.0
    if follow_leader(state, tables.cost, arm, before) or scale_unknown:
        weigh(state, tables)
        return largest_loss(state, tables.cost)
    weigh_rival(state, tables, arm)
    return follow_rival(state, tables, arm)


def follow_rival(state: State, tables: BreakevenTables, arm: int) -> float:
    """Return the largest loss, and set RIVAL to its arm, where only the loss of `arm` has changed."""
    loss, rival = section(tables.cost, LOSS), int(state[RIVAL])
    if arm == rival:
        return largest_loss(state, tables.cost)
    own, largest = float(state[loss + arm]), float(state[loss + rival])
    if own > largest or (own == largest and arm < rival):
        state[RIVAL] = arm
        return own
    return largest


def decide(state: State, tables: BreakevenTables) -> None:
    """Stop, as the largest loss is no more than the spend, unless that holds only for old losses or it is too early."""
    if not is_known(tables):
        weigh(state, tables)
        if largest_loss(state, tables.cost) > state[SPENT]:
            return
    if state[PULLS] >= tables.not_before:
        state[STOPPED] = 1


def weigh(state: State, tables: BreakevenTables) -> None:
    """Update all losses and variances."""
    loss, leader = section(tables.cost, LOSS), int(state[LEADER])
    if is_known(tables):
        lead = find_lead(state, tables, known_variance(state, tables, leader))
        for arm in range(len(tables.cost)):
            state[loss + arm] = known_loss(state, tables, arm, lead)
    else:
        pool = pooled_variance(state, tables)
        state[DEVIATION] = pool.value
        lead = find_lead(state, tables, arm_variance(state, tables, leader, pool))
        if pool.value > 0.0:
            weigh_learned(state, tables, pool, lead)
        else:
            state[section(tables.cost, VARIANCE) + leader] = lead.variance.value
            for arm in range(len(tables.cost)):
                state[loss + arm] = tables.largest_loss
    state[loss + leader] = 0.0


def weigh_learned(state: State, tables: BreakevenTables, pool: Variance, lead: Lead) -> None:
    """Update all losses and variances where the spread is learned; the caller sets the leader's own loss."""
    arms, loss = index(len(tables.cost)), section(tables.cost, LOSS)
    for arm in range(arms):
        state[loss + arm] = compare(state, tables, arm, pool, lead)
    for arm in range(arms):
        state[loss + arm] = gaussian_place(state[loss + arm], find_freedom(state, tables, arm, pool, lead))
    for arm in range(arms):
        state[loss + arm] = learned_loss(state, tables, arm, pool, lead)
    if tables.is_bounded:
        for arm in range(arms):
            state[loss + arm] = bounded_loss(state, tables, arm, lead)


def weigh_rival(state: State, tables: BreakevenTables, arm: int) -> None:
    """Update the loss and the variance of an arm that does not lead; the leader's variance stays as it is."""
    loss, variance, leader = section(tables.cost, LOSS), section(tables.cost, VARIANCE), int(state[LEADER])
    if is_known(tables):
        lead = find_lead(state, tables, known_variance(state, tables, leader))
        state[loss + arm] = known_loss(state, tables, arm, lead)
        return
    pool = pooled_variance(state, tables)
    state[DEVIATION] = pool.value
    latest = arm_variance(state, tables, leader, pool)
    lead = find_lead(state, tables, Variance(state[variance + leader], latest.freedom, latest.is_shared))
    if pool.value > 0.0:
        square = compare(state, tables, arm, pool, lead)
        state[loss + arm] = gaussian_place(square, find_freedom(state, tables, arm, pool, lead))
        state[loss + arm] = learned_loss(state, tables, arm, pool, lead)
        if tables.is_bounded:
            state[loss + arm] = bounded_loss(state, tables, arm, lead)
    else:
        state[loss + arm] = tables.largest_loss


def find_lead(state: State, tables: BreakevenTables, variance: Variance) -> Lead:
    """Return what all comparisons with the leader share."""
    leader = int(state[LEADER])
    return Lead(state[section(tables.cost, MEAN) + leader], state[section(tables.cost, COUNT) + leader], variance)


def known_variance(state: State, tables: BreakevenTables, arm: int) -> Variance:
    """Return an arm's stated variance, taken as certain."""
    return Variance(state[section(tables.cost, VARIANCE) + arm], tables.sigma_pulls, True)


def compare(state: State, tables: BreakevenTables, arm: int, pool: Variance, lead: Lead) -> float:
    """Update an arm's variance, and return the square of its t."""
    own = arm_variance(state, tables, arm, pool)
    state[section(tables.cost, VARIANCE) + arm] = own.value
    root = information(state, tables, arm, own.value, lead.pulls, lead.variance.value)
    t = gap_behind(state, tables, arm, lead) * root * tables.precision
    return t * t


def find_freedom(state: State, tables: BreakevenTables, arm: int, pool: Variance, lead: Lead) -> int:
    """Return the degrees of freedom of an arm's t, whose variance `compare` has updated."""
    own = stored_variance(state, tables, arm, pool)
    return combined_freedom(own, state[section(tables.cost, COUNT) + arm], lead.variance, lead.pulls, pool)


def learned_loss(state: State, tables: BreakevenTables, arm: int, pool: Variance, lead: Lead) -> float:
    """Return an arm's Student-t loss, whose z is in its LOSS."""
    z, freedom = state[section(tables.cost, LOSS) + arm], find_freedom(state, tables, arm, pool, lead)
    loss = student_loss_at(tables.series, tables.ratios, z, freedom)
    if not tables.counts_errors:
        variance = state[section(tables.cost, VARIANCE) + arm]
        loss *= tables.sigma / information(state, tables, arm, variance, lead.pulls, lead.variance.value)
    return float(min(loss, tables.largest_loss))


def bounded_loss(state: State, tables: BreakevenTables, arm: int, lead: Lead) -> float:
    """Return an arm's loss, at most the Gaussian one at the largest possible variance: no variance is larger."""
    least = information(state, tables, arm, tables.largest_variance, lead.pulls, tables.largest_variance)
    loss = state[section(tables.cost, LOSS) + arm]
    return float(min(loss, gaussian_loss_at(state, tables, arm, lead, least)))


def known_loss(state: State, tables: BreakevenTables, arm: int, lead: Lead) -> float:
    """Return an arm's Gaussian loss at the stated variances."""
    root = information(state, tables, arm, state[section(tables.cost, VARIANCE) + arm], lead.pulls, lead.variance.value)
    return gaussian_loss_at(state, tables, arm, lead, root)


def gaussian_loss_at(state: State, tables: BreakevenTables, arm: int, lead: Lead, root: float) -> float:
    """Return an arm's Gaussian loss for the `information` about its gap."""
    loss = gaussian_loss(tables.series, gap_behind(state, tables, arm, lead) * root * tables.precision)
    scaled = loss if tables.counts_errors else loss * (tables.sigma / root)
    return float(min(scaled, tables.largest_loss))


def gap_behind(state: State, tables: BreakevenTables, arm: int, lead: Lead) -> float:
    """Return how far an arm's mean is behind the leader's."""
    return float(lead.mean - state[section(tables.cost, MEAN) + arm])


def information(
    state: State, tables: BreakevenTables, arm: int, variance: float, lead: float, lead_variance: float
) -> float:
    """Return (v_k/n_k + v_L/n_L)^(-1/2): `sigma` divided by it is the standard error of the gap."""
    pulls = state[section(tables.cost, COUNT) + arm]
    return math.sqrt(pulls * lead / (lead_variance * pulls + variance * lead))


RULE = Rule(init, ask, tell, recommend, send, seldom=(decide,))
