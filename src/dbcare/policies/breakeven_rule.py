"""Breakeven's decision rule: which arm to pull next, and when the largest expected loss breaks even with the spending.

Notation of `policies.breakeven`. A pull changes one arm, so only a pull of the leader, or a new leader, touches every
loss. Ties of means and scores go to the arm of higher PRIORITY, a random order of the arms drawn when a run begins.

State: a header, then one number for each arm in each section.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.policies.rule import STOP, Rule, State, next_tie
from dbcare.theory.normal import PSI_AT_0, expected_excess, upper_tail
from dbcare.theory.student import density_at_0, student_excess, student_tail

PULLS = 0
SPENT = 1
LEADER = 2
RIVAL = 3  # the arm with the largest loss
STOPPED = 4
FORCED = 5  # an arm that must be pulled again before a stop, or NO_ARM
DOUBTED = 6  # whether losses come from the sample's standard deviation (too)
SQUARES = 7  # sum of squared deviations from each arm's own mean
SEEN = 8  # arms with at least one reward
HEADER = 9

SECTIONS = 6  # of one number for each arm, in this order
COUNT, OUT, SUM, MEAN, LOSS, PRIORITY = range(SECTIONS)  # OUT: asked, not answered yet; written by live studies

NO_ARM = -1

TRUST, GUARD, UNKNOWN = range(3)  # what is made of sigma


class BreakevenTables(NamedTuple):
    """What a Breakeven policy is made of."""

    cost: npt.NDArray[np.float64]
    sigma: float
    doubt: int  # TRUST, GUARD or UNKNOWN
    counts_errors: bool  # misidentification, else simple regret
    largest_loss: float
    largest_deviation: float  # of the sample, that is believed
    guess: bool  # whether not to pull at all
    series: npt.NDArray[np.float64]  # of `loss_series`


GRID = 64  # points of the loss's table in a unit of z
FARTHEST = 38.0  # beyond it the losses are below the smallest number


@cache
def loss_series(counts_errors: bool) -> npt.NDArray[np.float64]:
    """Q or Psi around each point of a grid, as four coefficients of Taylor's series: good to 1e-6 up to z = 8.

    Reading it costs a tenth of the error function, of which every pull of the leader needs one for each arm.
    """
    z = np.arange(0.0, FARTHEST + 1.0 / GRID, 1.0 / GRID)
    density = PSI_AT_0 * np.exp(-0.5 * z * z)
    tail = upper_tail(z)
    if counts_errors:
        series = [tail, -density, z * density / 2.0, (1.0 - z * z) * density / 6.0]
    else:
        series = [expected_excess(z), -tail, density / 2.0, -z * density / 6.0]
    return np.column_stack(series).ravel()


class Sample(NamedTuple):
    """The pooled standard deviation, its degrees of freedom, and the t density at 0; of use from 2 degrees on."""

    deviation: float
    freedom: int
    peak: float


def state_size(arms: int) -> int:
    """How many numbers a state holds."""
    return HEADER + SECTIONS * arms


def section(tables: BreakevenTables, which: int) -> int:
    """Where a section begins."""
    return HEADER + which * len(tables.cost)


def init(state: State, tables: BreakevenTables, tie: int) -> None:
    """No pull made, a random order of the arms."""
    for index in range(len(state)):
        state[index] = 0.0
    priority = section(tables, PRIORITY)
    drawn = float(tie)
    for arm in range(len(tables.cost)):
        drawn = next_tie(drawn)
        state[priority + arm] = drawn
    state[FORCED] = NO_ARM
    state[DOUBTED] = tables.doubt == UNKNOWN
    state[STOPPED] = tables.guess


def ask(state: State, tables: BreakevenTables) -> int:
    """The arm whose next pull removes the largest share of loss per unit of cost; pulls that are out count as made."""
    if state[STOPPED]:
        return STOP
    arms = len(tables.cost)
    count, out = section(tables, COUNT), section(tables, OUT)
    if state[SEEN] < arms:
        return least_pulled(state, tables)
    forced = int(state[FORCED])
    if forced != NO_ARM and state[count + forced] + state[out + forced] < 2:
        return forced
    loss, priority = section(tables, LOSS), section(tables, PRIORITY)
    leader = int(state[LEADER])
    lead = state[count + leader] + state[out + leader]
    removed = 0.0
    best = -1.0
    chosen = leader
    for arm in range(arms):
        if arm != leader:
            pulls = state[count + arm] + state[out + arm]
            share = state[loss + arm] / (pulls + lead)
            removed += share * pulls
            score = share * lead / (pulls * tables.cost[arm])
            if score > best or (score == best and state[priority + arm] > state[priority + chosen]):
                best = score
                chosen = arm
    score = removed / (lead * tables.cost[leader])
    if score > best or (score == best and state[priority + leader] > state[priority + chosen]):
        return leader
    return chosen


def least_pulled(state: State, tables: BreakevenTables) -> int:
    """The first of the arms with the fewest pulls, made or out."""
    count, out = section(tables, COUNT), section(tables, OUT)
    fewest = math.inf
    chosen = 0
    for arm in range(len(tables.cost)):
        pulls = state[count + arm] + state[out + arm]
        if pulls < fewest:
            fewest = pulls
            chosen = arm
    return chosen


def tell(state: State, tables: BreakevenTables, arm: int, reward: float) -> None:
    """Count a reward, bring the losses up to date, and stop where they break even."""
    count, total, mean = section(tables, COUNT), section(tables, SUM), section(tables, MEAN)
    pulls = state[count + arm] + 1
    before = state[mean + arm]
    state[count + arm] = pulls
    state[total + arm] += reward
    after = state[total + arm] / pulls
    state[mean + arm] = after
    state[PULLS] += 1
    state[SPENT] += tables.cost[arm]
    if pulls == 1:
        state[SEEN] += 1
    else:
        state[SQUARES] += (reward - before) * (reward - after)
    if state[SEEN] < len(tables.cost):
        return
    leader = int(state[LEADER])
    if pulls == 1 or (arm == leader and after < before):
        state[LEADER] = recommend(state, tables)
    elif arm != leader and is_ahead(state, tables, arm, leader):
        state[LEADER] = arm
    all_change = pulls == 1 or arm == leader or state[LEADER] != leader
    weigh(state, tables, 0 if all_change else arm, len(tables.cost) if all_change else arm + 1)
    state[FORCED] = NO_ARM
    if largest_loss(state, tables) <= state[SPENT]:
        decide(state, tables)


def is_ahead(state: State, tables: BreakevenTables, one: int, other: int) -> bool:
    """Whether the mean of `one` is larger, or the same with the higher priority."""
    mean, priority = section(tables, MEAN), section(tables, PRIORITY)
    difference = state[mean + one] - state[mean + other]
    return bool(difference > 0.0 or (difference == 0.0 and state[priority + one] > state[priority + other]))


def recommend(state: State, tables: BreakevenTables) -> int:
    """The arm of the largest mean; those without a reward count only if there is no other."""
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


def decide(state: State, tables: BreakevenTables) -> None:
    """Stop, now that the largest loss is no more than what has been spent.

    Where sigma is in doubt, only if that is so at the sample's standard deviation too, and leader and rival have been
    pulled twice.
    """
    if tables.doubt != TRUST:
        state[DOUBTED] = 1
        weigh(state, tables, 0, len(tables.cost))
        if largest_loss(state, tables) > state[SPENT]:
            return
        count = section(tables, COUNT)
        if state[count + int(state[LEADER])] < 2:
            state[FORCED] = state[LEADER]
        elif state[count + int(state[RIVAL])] < 2:
            state[FORCED] = state[RIVAL]
    state[STOPPED] = state[FORCED] == NO_ARM


def largest_loss(state: State, tables: BreakevenTables) -> float:
    """The largest loss, of which RIVAL is noted; the leader's own is 0."""
    loss, leader = section(tables, LOSS), int(state[LEADER])
    rival = 1 if leader == 0 else 0
    for arm in range(rival + 1, len(tables.cost)):
        if state[loss + arm] > state[loss + rival] and arm != leader:
            rival = arm
    state[RIVAL] = rival
    return float(state[loss + rival])


def weigh(state: State, tables: BreakevenTables, first: int, stop: int) -> None:
    """Bring the losses of the arms from `first` to before `stop` up to date; the leader's own is 0."""
    count, mean, loss, leader = section(tables, COUNT), section(tables, MEAN), section(tables, LOSS), int(state[LEADER])
    sample = sample_deviation(state, tables)
    best, share = state[mean + leader], 1.0 / state[count + leader]
    for arm in range(first, stop):
        spread = math.sqrt(1.0 / state[count + arm] + share)
        state[loss + arm] = loss_of(tables, sample, best - state[mean + arm], spread)
    if first <= leader < stop:
        state[loss + leader] = 0.0


def sample_deviation(state: State, tables: BreakevenTables) -> Sample:
    """What the rewards so far say of sigma; nothing unless that is asked for."""
    freedom = int(state[PULLS]) - len(tables.cost)
    if not state[DOUBTED] or freedom < 2:
        return Sample(0.0, 0, 0.0)
    peak = 0.0 if tables.counts_errors else density_at_0(freedom)
    return Sample(min(math.sqrt(state[SQUARES] / freedom), tables.largest_deviation), freedom, peak)


def loss_of(tables: BreakevenTables, sample: Sample, gap: float, spread: float) -> float:
    """The expected loss of choosing the leader over an arm `gap` behind, under a flat prior.

    `spread` times a standard deviation is the standard error of the gap.
    """
    loss = 0.0
    if tables.doubt != UNKNOWN:
        error = tables.sigma * spread
        loss = normal_loss(tables, gap / error) * (1.0 if tables.counts_errors else error)
    elif sample.deviation == 0.0:
        loss = tables.largest_loss  # nothing is known of the scale yet
    if sample.deviation > 0.0:
        error = sample.deviation * spread
        if tables.counts_errors:
            loss = max(loss, student_tail(gap / error, sample.freedom))
        else:
            loss = max(loss, error * student_excess(gap / error, sample.freedom, sample.peak))
    return float(min(loss, tables.largest_loss))


def normal_loss(tables: BreakevenTables, z: float) -> float:
    """Q(z) or Psi(z), from its series."""
    if z >= FARTHEST:
        return 0.0
    point = int(z * GRID + 0.5)
    apart = z - point / GRID
    first = 4 * point
    series = tables.series
    return float(series[first] + apart * (series[first + 1] + apart * (series[first + 2] + apart * series[first + 3])))


RULE = Rule(init, ask, tell, recommend)
