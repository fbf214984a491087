"""The skip-ahead engine for K > 2 Gaussian arms: many epochs at once, within a certified distance of the true law.

Jump: draw the survivors' sums m epochs ahead. Somebody is dropped strictly inside only if for some ordered pair (j, k)
of survivors S_j - S_k crosses the concave boundary b. Let g_a and g_b be the distances of S_j - S_k to b at the two
ends: the pair crosses with probability at most exp(-g_a g_b / (sigma^2 m)), sigma being the arms' largest. A pair
is *ruled out* if that is below EPSILON/K^2, that is if g_a g_b >= sigma^2 m ln(K^2/EPSILON).

Pairs are ruled out many at a time. At either end the distance of (j, k) is at least that of k to the largest sum there.
So if the product of these two holds for k, it holds for (j, k) whatever j is, even where different arms are largest at
the two ends and a third leads in between. Arms where it fails *may be dropped*. Likewise an arm *may drop somebody*
unless the product holds for it against the smallest sums at the two ends of those that may be dropped. An arm of either
kind is *close*. Every pair that is not of two close arms is ruled out; these are fewer than K^2, so the claim that no
such pair crosses is wrong with probability below EPSILON, whatever is learned later about the sums in between.

With fewer than two close arms the jump stands. With two, `two.cross` finds without error where their difference
crosses. With more, split: draw bridge midpoints of the close arms alone and treat each half likewise, down to single
epochs, with the close arms as the only candidates. Where somebody is first to be dropped, all other arms get their
bridge values, the rule decides, and the next jump starts: by the strong Markov property what was drawn for later may be
forgotten. So the law of a run is that of the walk up to a total variation of EPSILON times the mean number of intervals
examined (under a thousand for K = 32).
"""

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from dbcare.engines.compile import OPTIONS
from dbcare.engines.control import note_leader, note_round
from dbcare.engines.rng import begun, normal
from dbcare.engines.skip.bridge import DEPTH, between
from dbcare.engines.skip.two import cross
from dbcare.policies.rounds import ALIVE, COUNT, EACH, HIGH, LIMIT, LOW, PULLS, ROUND, SUMS, RoundRule, arms_offset

EPSILON = 1e-9  # the chance that an examined interval hides a drop

# A jump lasts this much of the longest that could stand if no sum moved, and at least this part of the epochs so far.
REACH = 0.8
LEAST = 0.125

# Work is counted in sums drawn for a jump; each sum examined inside one, and each pair followed, costs as much as this.
EXAMINED = 3
CROSSING = 36


@njit(**OPTIONS)
def close_arms(state, order, right, count, before, after, need):
    """Of the slots order[:count], move those to the front that may be dropped or drop another; say how many.

    Sums stand in `state` at the interval's start, in `right` at its end, `before` and `after` are the boundary there;
    a pair is ruled out if the product of its distances is at least `need`.
    """
    high_a = -np.inf
    high_b = -np.inf
    for index in range(count):
        slot = int(order[index])
        high_a = max(high_a, state[SUMS + slot])
        high_b = max(high_b, right[slot])
    low_a = high_a
    low_b = high_b
    close = 0
    for index in range(count):
        slot = int(order[index])
        gap_a = before - (high_a - state[SUMS + slot])
        gap_b = after - (high_b - right[slot])
        if gap_b <= 0.0 or gap_a * gap_b < need:
            low_a = min(low_a, state[SUMS + slot])
            low_b = min(low_b, right[slot])
            order[index] = order[close]
            order[close] = slot
            close += 1
    if close > 0:
        for index in range(close, count):
            slot = int(order[index])
            gap_a = before - (state[SUMS + slot] - low_a)
            gap_b = after - (right[slot] - low_b)
            if gap_b <= 0.0 or gap_a * gap_b < need:
                order[index] = order[close]
                order[close] = slot
                close += 1
    return close if close > 1 else 0


@njit(**OPTIONS)
def first_drop(arms, arm_at, boundary, need, end, state, work, s0, s1, s2, s3):
    """Move the sums from the present epoch to the first at which a drop is due, or to `end`, where they are known.

    `work` holds a stack of intervals, the leftmost on top: the end of each, how many slots of `order` have a sum there,
    how many of these are candidates, and the sums. A slot's sum in `state` stands at the epoch `since`.
    """
    count = len(arms.mean)
    order, since, work = work[4 * count : 5 * count], work[5 * count : 6 * count], work[6 * count :]
    ends, known, candidates = work[:DEPTH], work[DEPTH : 2 * DEPTH], work[2 * DEPTH : 3 * DEPTH]
    pair_work, sums = work[3 * DEPTH : 6 * DEPTH], work[6 * DEPTH :]
    epoch = int(state[ROUND])
    alive = int(state[ALIVE])
    for slot in range(alive):
        order[slot] = slot
        since[slot] = epoch
    ends[0] = end
    known[0] = alive
    candidates[0] = alive
    top = 0
    placed = 0
    while True:
        end = int(ends[top])
        length = end - epoch
        right = sums[top * count : (top + 1) * count]
        close = 0
        work[-1] += EXAMINED * candidates[top]
        if length > 1:
            close = close_arms(state, order, right, int(candidates[top]), boundary[epoch], boundary[end], need * length)
            candidates[top] = close
        if close > 2:
            half = length // 2
            for index in range(close):
                slot = int(order[index])
                spread = arms.sigma[int(state[arm_at + slot])] ** 2 * length
                sums[(top + 1) * count + slot], s0, s1, s2, s3 = between(
                    state[SUMS + slot], right[slot], spread, half / length, s0, s1, s2, s3
                )
            top += 1
            ends[top] = epoch + half
            known[top] = close
            candidates[top] = close
            continue
        if close == 2:
            work[-1] += CROSSING
            one = int(order[0])
            two = int(order[1])
            variance = arms.sigma[int(state[arm_at + one])] ** 2
            share = variance / (variance + arms.sigma[int(state[arm_at + two])] ** 2)
            found, difference, s0, s1, s2, s3 = cross(
                boundary, variance / share, epoch, state[SUMS + one] - state[SUMS + two],
                end, right[one] - right[two], pair_work, s0, s1, s2, s3,
            )  # fmt: skip
            if found < end:
                # This mean of the two sums, weighted by the other's variance, is independent of their difference.
                mean, s0, s1, s2, s3 = between(
                    (1.0 - share) * state[SUMS + one] + share * state[SUMS + two],
                    (1.0 - share) * right[one] + share * right[two],
                    (1.0 - share) * variance * length, (found - epoch) / length, s0, s1, s2, s3,
                )  # fmt: skip
                state[SUMS + one] = mean + share * difference
                state[SUMS + two] = mean - (1.0 - share) * difference
                epoch = found
                placed = 2
                break
        high = -np.inf
        low = np.inf
        placed = int(known[top])
        for index in range(placed):
            slot = int(order[index])
            high = max(high, right[slot])
            low = min(low, right[slot])
            state[SUMS + slot] = right[slot]
            since[slot] = end
        epoch = end
        top -= 1
        if top < 0 or high - low > boundary[epoch]:
            break
    while top >= 0:
        for index in range(placed, int(known[top])):
            slot = int(order[index])
            length = int(ends[top] - since[slot])
            spread = arms.sigma[int(state[arm_at + slot])] ** 2 * length
            fraction = (epoch - since[slot]) / length
            state[SUMS + slot], s0, s1, s2, s3 = between(
                state[SUMS + slot], sums[top * count + slot], spread, fraction, s0, s1, s2, s3
            )
        placed = int(known[top])
        top -= 1
    return epoch, s0, s1, s2, s3


def work_size(arms: int) -> int:
    """How many numbers of scratch memory the loop needs.

    The first 4 for each arm belong to the control variate; the last counts the work done.
    """
    return 6 * arms + 6 * DEPTH + arms * DEPTH + 1


def skip_loop(rule: RoundRule) -> Callable[..., None]:
    """The loop for elimination among Gaussian arms, which may differ in sigma; notes who leads at `checkpoint` > 0."""
    init, decide, recommend = rule.init, rule.decide, rule.recommend

    def simulate_skip_many(first, seed, arms, tables, state, work, checkpoint, recommended, pulls, undecided, leaders):
        count = len(arms.mean)
        arm_at = arms_offset(state)
        right = work[6 * count + 6 * DEPTH : 7 * count + 6 * DEPTH]
        sigma = 0.0
        for arm in range(count):
            sigma = max(sigma, arms.sigma[arm])
        need = sigma * sigma * math.log(count * count / EPSILON)
        for place in range(len(pulls)):
            tie, s0, s1, s2, s3 = begun(seed, first + place)
            init(state, tables, tie)
            while state[EACH] > 0:
                alive = int(state[ALIVE])
                epoch = int(state[ROUND])
                boundary = tables.boundary[tables.row[alive] :]
                until = int(state[LIMIT])
                if epoch < checkpoint:
                    until = min(until, checkpoint)
                # LOW is too low after a drop, which only shortens the jump.
                gap = max(boundary[epoch] - (state[HIGH] - state[LOW]), 0.0) if epoch > 0 else 0.0
                length = int(min(max(REACH * gap * gap / need, LEAST * epoch, 1.0), until - epoch))
                root = math.sqrt(length)
                high = -np.inf
                low = np.inf
                work[-1] += alive
                for slot in range(alive):
                    arm = int(state[arm_at + slot])
                    z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
                    total = state[SUMS + slot] + length * arms.mean[arm] + root * arms.sigma[arm] * z
                    right[slot] = total
                    high = max(high, total)
                    low = min(low, total)
                end = epoch + length
                ahead = boundary[end] - (high - low)
                if length == 1 or (ahead > 0.0 and gap * ahead >= need * length):
                    for slot in range(alive):
                        state[SUMS + slot] = right[slot]
                else:
                    end, s0, s1, s2, s3 = first_drop(arms, arm_at, boundary, need, end, state, work, s0, s1, s2, s3)
                    high = -np.inf
                    low = np.inf
                    for slot in range(alive):
                        high = max(high, state[SUMS + slot])
                        low = min(low, state[SUMS + slot])
                state[HIGH] = high
                state[LOW] = low
                state[ROUND] = end
                state[COUNT] = end
                state[PULLS] += alive * (end - epoch)
                decide(state, tables)
                note_round(checkpoint, state, work, alive)
            recommended[place] = recommend(state, tables)
            pulls[place] = int(state[PULLS])
            undecided[place] = state[ALIVE] > 1
            if checkpoint > 0:
                note_leader(checkpoint, state, work, arms, leaders, place, s0, s1, s2, s3)

    return simulate_skip_many
