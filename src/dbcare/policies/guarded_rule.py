"""Breakeven's decision rule: which arm to pull next, and when the spend reaches the largest expected loss.

The notation is that of `policies.breakeven`. A pull changes one arm, so all losses change only if that arm is the
leader or becomes it. (Losses based on the rewards' standard deviation may therefore use an earlier value; all are
updated before a stop.) Ties between means or scores go to the arm with the higher PRIORITY, a random order drawn at
the start of a run.

State: a header, then sections of one number per arm.
"""

import math

from dbcare.policies.guarded_losses import TRUST, UNKNOWN, GuardedTables, Sample, loss_of
from dbcare.policies.rule import STOP, Rule, State, next_tie
from dbcare.theory.student import density_at_0

PULLS = 0
SPENT = 1
LEADER = 2
RIVAL = 3  # arm with the largest loss
STOPPED = 4
SEEN = 5  # arms with at least one reward
DOUBTED = 6  # whether losses use the standard deviation of the rewards
DEVIATION = 7  # the standard deviation at the last update of all losses, 0 if none was used
WITHIN = 8  # sum of squared deviations from each arm's own mean
HEADER = 9

SECTIONS = 7  # one number per arm in each, in this order
COUNT, MADE, PRICE, SUM, MEAN, LOSS, PRIORITY = range(SECTIONS)
# MADE includes pulls whose reward is pending; PRICE is 1/(MADE c_k), which saves a division per score.

ROUNDING = 1e-12  # a smaller spread, relative to the rewards, counts as zero
LEAST_FREEDOM = 3  # fewest degrees of freedom for which the t distribution has a variance


def state_size(arms: int) -> int:
    """Return the length of a state."""
    return HEADER + SECTIONS * arms


def section(tables: GuardedTables, which: int) -> int:
    """Return the index at which a section starts."""
    return HEADER + which * len(tables.cost)


def init(state: State, tables: GuardedTables, tie: int) -> None:
    """Start a run without pulls, with a random order of the arms."""
    for index in range(len(state)):
        state[index] = 0.0
    priority = section(tables, PRIORITY)
    drawn = float(tie)
    for arm in range(len(tables.cost)):
        drawn = next_tie(drawn)
        state[priority + arm] = drawn
    if tables.doubt == UNKNOWN:
        state[DOUBTED] = 1
    if tables.guess:
        state[STOPPED] = 1


def ask(state: State, tables: GuardedTables) -> int:
    """Return the arm whose next pull removes the most loss per unit of cost, given all pulls made."""
    if state[STOPPED]:
        return STOP
    arms = len(tables.cost)
    if state[SEEN] < arms:
        return least_pulled(state, tables)
    made, price = section(tables, MADE), section(tables, PRICE)
    loss, priority = section(tables, LOSS), section(tables, PRIORITY)
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


def least_pulled(state: State, tables: GuardedTables) -> int:
    """Return the first arm with the fewest pulls made."""
    made = section(tables, MADE)
    chosen = 0
    for arm in range(1, len(tables.cost)):
        if state[made + arm] < state[made + chosen]:
            chosen = arm
    return chosen


def send(state: State, tables: GuardedTables, arm: int) -> None:
    """Count a pull whose reward is pending, so that the next arm is chosen as if it had arrived; for live studies."""
    made = section(tables, MADE)
    set_made(state, tables, arm, state[made + arm] + 1)


def set_made(state: State, tables: GuardedTables, arm: int, pulls: int) -> None:
    """Set the number of pulls made of an arm."""
    state[section(tables, MADE) + arm] = pulls
    state[section(tables, PRICE) + arm] = 1.0 / (pulls * tables.cost[arm])


def tell(state: State, tables: GuardedTables, arm: int, reward: float) -> None:
    """Count a reward, update the losses, and stop if they break even."""
    count, total, mean = section(tables, COUNT), section(tables, SUM), section(tables, MEAN)
    pulls = state[count + arm] + 1
    before = state[mean + arm]
    state[count + arm] = pulls
    if pulls > state[section(tables, MADE) + arm]:
        set_made(state, tables, arm, pulls)
    state[total + arm] += reward
    after = state[total + arm] / pulls
    state[mean + arm] = after
    state[PULLS] += 1
    state[SPENT] += tables.cost[arm]
    if pulls == 1:
        state[SEEN] += 1
    else:
        state[WITHIN] += (reward - before) * (reward - after)
    if state[SEEN] < len(tables.cost):
        return
    leader = int(state[LEADER])
    if pulls == 1 or (arm == leader and after < before):
        leading = 0
        for other in range(1, len(tables.cost)):
            if is_ahead(state, tables, other, leading):
                leading = other
        state[LEADER] = leading
    elif arm != leader and is_ahead(state, tables, arm, leader):
        state[LEADER] = arm
    scale_unknown = state[DOUBTED] and state[DEVIATION] == 0.0
    all_change = pulls == 1 or arm == leader or state[LEADER] != leader or scale_unknown
    weigh(state, tables, 0 if all_change else arm, len(tables.cost) if all_change else arm + 1)
    if largest_loss(state, tables) <= state[SPENT]:
        decide(state, tables)


def is_ahead(state: State, tables: GuardedTables, one: int, other: int) -> bool:
    """Return whether the mean of `one` is larger, or equal with a higher priority."""
    mean, priority = section(tables, MEAN), section(tables, PRIORITY)
    difference = state[mean + one] - state[mean + other]
    return bool(difference > 0.0 or (difference == 0.0 and state[priority + one] > state[priority + other]))


def recommend(state: State, tables: GuardedTables) -> int:
    """Return the arm with the largest mean; arms without a reward are considered only if no arm has one."""
    count, priority = section(tables, COUNT), section(tables, PRIORITY)
    best = 0
    for arm in range(1, len(tables.cost)):
        if state[count + arm] > 0 and state[count + best] > 0:
            ahead = is_ahead(state, tables, arm, best)
        elif state[count + arm] == state[count + best]:
            ahead = state[priority + arm] > state[priority + best]
        else:
            ahead = state[count + arm] > 0
        if ahead:
            best = arm
    return best


def decide(state: State, tables: GuardedTables) -> None:
    """Stop, as the largest loss is no more than the spend.

    If sigma is in doubt, stop only if this also holds for the latest standard deviation of the rewards.
    """
    if tables.doubt != TRUST:
        state[DOUBTED] = 1
        weigh(state, tables, 0, len(tables.cost))
        if largest_loss(state, tables) > state[SPENT] or state[PULLS] <= LEAST_FREEDOM:
            return
    state[STOPPED] = 1


def largest_loss(state: State, tables: GuardedTables) -> float:
    """Return the largest loss, and set RIVAL to its arm; the leader's own loss is 0."""
    loss, leader = section(tables, LOSS), int(state[LEADER])
    rival = 1 if leader == 0 else 0
    for arm in range(rival + 1, len(tables.cost)):
        if state[loss + arm] > state[loss + rival] and arm != leader:
            rival = arm
    state[RIVAL] = rival
    return float(state[loss + rival])


def weigh(state: State, tables: GuardedTables, first: int, stop: int) -> None:
    """Update the losses of the arms from `first` up to but not including `stop`; the leader's own loss is 0."""
    count, mean, loss, leader = section(tables, COUNT), section(tables, MEAN), section(tables, LOSS), int(state[LEADER])
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
    """Return the standard deviation of the rewards so far, if it is needed.

    It is computed within arms, with N - K degrees of freedom, or over all rewards, with N - 1. The latter overstates
    sigma if means differ, but works when many arms have been pulled only once. The one with the smaller predictive
    variance, s^2 nu/(nu - 2), is used.
    """
    if not state[DOUBTED]:
        return Sample(0.0, 0, 0.0)
    count, total, mean = section(tables, COUNT), section(tables, SUM), section(tables, MEAN)
    rewards = 0.0
    for arm in range(len(tables.cost)):
        rewards += state[total + arm]
    middle = rewards / state[PULLS]
    between = 0.0
    size = 0.0
    for arm in range(len(tables.cost)):
        apart = state[mean + arm] - middle
        between += state[count + arm] * apart * apart
        size += state[count + arm] * state[mean + arm] * state[mean + arm]
    rounding = ROUNDING * ROUNDING * size
    freedom = int(state[PULLS]) - 1
    squares = state[WITHIN] + between
    inside = freedom + 1 - len(tables.cost)
    if inside >= LEAST_FREEDOM and rounding < state[WITHIN] and state[WITHIN] * (freedom - 2) < squares * (inside - 2):
        freedom = inside
        squares = state[WITHIN]
    if freedom < LEAST_FREEDOM or squares <= rounding:
        return Sample(0.0, 0, 0.0)
    peak = 0.0 if tables.counts_errors else density_at_0(freedom)
    return Sample(min(math.sqrt(squares / freedom), tables.largest_deviation), freedom, peak)


RULE = Rule(init, ask, tell, recommend, send)
