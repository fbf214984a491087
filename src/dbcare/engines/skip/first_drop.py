"""Find the first epoch at which an arm of many is dropped, and the pair that decides it.

Arm j drops arm k where S_j - S_k > b. Let g_a and g_b be the distances of S_j - S_k to b at the interval's two ends,
and m its length. As b is concave, the pair crosses strictly inside with at most the probability of touching b's chord,

    t_jk = exp(-2 g_a g_b / ((sigma_j^2 + sigma_k^2) m)).

A pair is *ruled out* if t_jk < e^-far, which holds whenever g_a g_b >= sigma^2 m far with the largest sigma. Arms are
ruled out many pairs at a time. At either end, the distance of (j, k) is at least that of k to the largest sum there. So
if the product of these two distances is large enough for k, it is large enough for (j, k) for any j, even if different
arms lead at the two ends and a third one leads in between. Arms for which it is not *may be dropped*. Likewise, an arm
*may drop* another unless its product is large enough against the smallest sums, at the two ends, of the arms that may
be dropped.

Slots are listed in `order`: after `close_arms`, those in order[:lagging] may be dropped, those in order[leading:close]
may drop one of them, and no other pair matters. `work` holds each arm's sigma, where its slot was settled.

Let B be the sum of t_jk over the pairs that `crossing_pairs` does not rule out: some pair crosses the boundary strictly
inside with probability P(crossing) <= B. The method is that of `two_arms`, where the pairs are the two signs of one
difference, with more pairs. Draw U: if U >= B, nothing was crossed. If B >= 1, U is uninformative: draw the midpoint
and judge each half afresh (it is *fresh*). Otherwise, if U < B, the interval is *pending*: it contains a crossing with
probability P(crossing)/B.

Pending: choose a pair in proportion to t_jk and propose midpoints given that this pair touches its chord. Relative to
plain bridges they have the density (sum of p_jk)/B, where p_jk is the probability that the left or the right part
touches the chord. The target is P/B, where P = 1 if a pair is outside in the middle or a half's B is 1 or more, and
otherwise P = B_1 + B_2 - B_1 B_2, with the halves' sums taken against their own chords. These lie higher, so for each
pair t_1 + t_2 - t_1 t_2 <= p_jk; and B_1 B_2 >= sum of t_1 t_2, so P <= sum of p_jk. The midpoints are accepted with
probability P/(sum of p_jk). Rejected: nothing was crossed. Accepted: both halves are fresh if P = 1; otherwise, with
probability B_1/P the left half is pending and the right one fresh, else the left half is free of crossings and the
right one pending.

A short fresh interval for which U is uninformative is stepped through epoch by epoch instead of being halved.
"""

import math

import numpy as np
from numba import njit

from dbcare.engines.kernels.compile import OPTIONS
from dbcare.engines.simulate.rng import INLINE, normal, uniform
from dbcare.engines.skip.two_arms import DEPTH, FREE, FRESH, PENDING, between, between_touching
from dbcare.policies.epochs import ALIVE, EPOCH, SUMS


@njit(**OPTIONS)
def close_arms(state, order, right, count, before, after, need):
    """Move the slots of order[:count] that may be dropped, or drop another, to the front.

    `state` holds the sums at the interval's start and `right` those at its end; `before` and `after` are the boundary
    there. A product of distances is large enough from `need` up. Returns close, leading, lagging, and the smallest
    product of an arm that may be dropped.
    """
    high_a = -np.inf
    high_b = -np.inf
    for index in range(count):
        slot = order[index]
        high_a = max(high_a, state[SUMS + slot])
        high_b = max(high_b, right[slot])
    low_a = high_a
    low_b = high_b
    nearest = np.inf
    lagging = 0
    # Slots are always swapped, and counted only if they belong: branches would be mispredicted.
    for index in range(count):
        slot = order[index]
        product = (before - (high_a - state[SUMS + slot])) * max(after - (high_b - right[slot]), 0.0)
        belongs = product < need
        nearest = min(nearest, product)
        low_a = min(low_a, state[SUMS + slot] if belongs else high_a)
        low_b = min(low_b, right[slot] if belongs else high_b)
        order[index] = order[lagging]
        order[lagging] = slot
        lagging += int(belongs)
    leading = 0
    for index in range(lagging):
        slot = order[index]
        product = (before - (state[SUMS + slot] - low_a)) * max(after - (right[slot] - low_b), 0.0)
        order[index] = order[leading]
        order[leading] = slot
        leading += int(product >= need)
    close = lagging
    if lagging > 0:
        for index in range(lagging, count):
            slot = order[index]
            product = (before - (state[SUMS + slot] - low_a)) * max(after - (right[slot] - low_b), 0.0)
            order[index] = order[close]
            order[close] = slot
            close += int(product < need)
    if close < 2 or leading == close:
        close = 0
    return close, leading, lagging, nearest


@njit(**INLINE)
def touching(start, end, spread, far):
    """Return exp(-2 start end / spread); 1 beyond the line, and 0 if below e^-far."""
    exponent = 2.0 * start * end / spread
    if start <= 0.0 or end <= 0.0:
        return 1.0
    return math.exp(-exponent) if exponent < far else 0.0


@njit(**OPTIONS)
def touching_sum(state, order, right, close, leading, lagging, before, after, length, far, work, enough):
    """Sum t_jk over all pairs that matter, or until the sum is `enough`; also return the last pair that contributed."""
    total = 0.0
    one = order[close - 1]
    two = order[0]
    for behind in range(lagging):
        k = order[behind]
        for ahead in range(leading, close):
            j = order[ahead]
            if j != k:
                term = touching(
                    before - (state[SUMS + j] - state[SUMS + k]), after - (right[j] - right[k]),
                    (work[2 * j + 1] ** 2 + work[2 * k + 1] ** 2) * length, far,
                )  # fmt: skip
                if term > 0.0:
                    total += term
                    one = j
                    two = k
                    if total >= enough:
                        return total, one, two
    return total, one, two


@njit(**OPTIONS)
def halved_sums(state, order, middle, right, close, leading, lagging, line, half, rest, far, work):
    """Return three sums over pairs for an interval split into `half` and `rest` epochs; `middle` holds the sums there.

    `line` holds the boundary at the start, the chord and the boundary in the middle, and the boundary at the end. The
    first result sums the probabilities that a pair touches the long chord in either part. The other two sum t_jk over
    the two parts: at least 1 if a pair is outside in the middle, else 0 for a single epoch, which has no interior.
    """
    before, chord, bend, after = line
    proposed = 0.0
    first = 0.0
    second = 0.0
    for behind in range(lagging):
        k = order[behind]
        for ahead in range(leading, close):
            j = order[ahead]
            if j != k:
                variance = work[2 * j + 1] ** 2 + work[2 * k + 1] ** 2
                gap_a = before - (state[SUMS + j] - state[SUMS + k])
                gap_b = after - (right[j] - right[k])
                between = middle[j] - middle[k]
                touch_1 = touching(gap_a, chord - between, variance * half, far)
                touch_2 = touching(chord - between, gap_b, variance * rest, far)
                proposed += touch_1 + touch_2 - touch_1 * touch_2
                if half > 1 or between > bend:
                    first += touching(gap_a, bend - between, variance * half, far)
                if rest > 1 or between > bend:
                    second += touching(bend - between, gap_b, variance * rest, far)
    return proposed, first, second


# An arm this close to being dropped, in units of sigma^2 m, makes B so large that it is not worth computing.
NEAR = 1.3

# An interval is short if the close arms have at most this many pulls in it.
STEPPED = 120.0

UNKNOWN = -1.0  # stands for a U that has not been drawn yet

# Work, in units of one drawn pull: per interval examined, per sum in it, and per pull stepped.
INTERVAL = 50.0
EXAMINED = 5.0
STEP = 2.0


def work_size(arms: int) -> int:
    """Return the size of the scratch array that the loop needs.

    The array starts with 2 entries per arm for rewards and 2 per arm for the control variate; its last entry counts the
    work done.
    """
    return 6 * arms + 4 * DEPTH + arms * DEPTH + 1


@njit(**INLINE)
def ends_at(count):
    """Return where `work` holds the sums at a jump's end, followed by those at the ends of its parts."""
    return 6 * count + 4 * DEPTH


@njit(**OPTIONS)
def step_bridges(order, close, right, boundary, epoch, end, state, work, s0, s1, s2, s3):
    """Move the sums of the slots order[:close] to the first epoch before `end` at which a drop is due, else to end - 1.

    They follow bridges to `right`: r epochs before the end, the next step has mean (right - sum)/r and variance
    sigma^2 (1 - 1/r).
    """
    while True:
        share = 1.0 / (end - epoch)
        root = math.sqrt(1.0 - share)
        high = -np.inf
        low = np.inf
        for index in range(close):
            slot = order[index]
            z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
            total = state[SUMS + slot]
            total += share * (right[slot] - total) + root * work[2 * slot + 1] * z
            state[SUMS + slot] = total
            high = max(high, total)
            low = min(low, total)
        epoch += 1
        crossed = high - low > boundary[epoch]
        if crossed or epoch == end - 1:
            return epoch, crossed, s0, s1, s2, s3


@njit(**OPTIONS)
def first_drop(count, boundary, variance, far, end, drawn, state, work, s0, s1, s2, s3):
    """Move the sums from the present epoch to the first at which a drop is due, or to `end`, where they are known.

    `work` holds a stack of intervals, the leftmost on top: the end of each, how many slots of `order` have a sum there,
    how many of these are candidates, its mark, and the sums. A slot's sum in `state` belongs to the epoch `since`.
    `variance` is the largest variance of an arm. `drawn` is U for the whole jump if it has been drawn, else UNKNOWN; a
    drawn U is known only to lie below some number that is less than 1 and not below B.
    """
    whole = work[4 * count : ends_at(count)].view(np.int64)
    order, since, stack = whole[:count], whole[count : 2 * count], whole[2 * count :]
    ends, known, candidates, marks = stack[:DEPTH], stack[DEPTH:], stack[2 * DEPTH :], stack[3 * DEPTH :]
    sums = work[ends_at(count) :]
    epoch = int(state[EPOCH])
    alive = int(state[ALIVE])
    for slot in range(alive):
        order[slot] = slot
        since[slot] = epoch
    ends[0], known[0], candidates[0], marks[0] = end, alive, alive, FRESH
    top = 0
    bound = 1.0
    placed = 0
    # These belong to the last interval examined: a pending one is always part of it.
    leading = 0
    lagging = 0
    while True:
        end = ends[top]
        length = end - epoch
        right = sums[top * count : (top + 1) * count]
        close = candidates[top]
        mark = marks[top] if length > 1 else FREE
        if mark == FRESH:
            work[-1] += INTERVAL + EXAMINED * close
            unit = variance * length
            close, leading, lagging, nearest = close_arms(
                state, order, right, close, boundary[epoch], boundary[end], far * unit
            )
            candidates[top] = close
            if close == 0:
                mark = FREE
            elif drawn != UNKNOWN or nearest > NEAR * unit:
                u = drawn
                drawn = UNKNOWN
                if u == UNKNOWN:
                    u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
                # No pair is closer than the nearest arm is to the largest sums: this bound takes a single exp.
                bound = lagging * (close - leading) * math.exp(-nearest / unit)
                if u < bound:
                    bound, _, _ = touching_sum(
                        state, order, right, close, leading, lagging, boundary[epoch], boundary[end], length, far, work,
                        1.0,
                    )  # fmt: skip
                if u >= bound:
                    mark = FREE
                elif bound < 1.0:
                    mark = PENDING
            if mark == FRESH and length * close <= STEPPED:
                start = epoch
                epoch, crossed, s0, s1, s2, s3 = step_bridges(
                    order, close, right, boundary, start, end, state, work, s0, s1, s2, s3
                )
                work[-1] += STEP * (epoch - start) * close
                if crossed:
                    placed = close
                    break
                mark = FREE
        if mark != FREE:
            half = length // 2
            fraction = half / length
            root = math.sqrt(half * (1.0 - fraction))
            middle = sums[(top + 1) * count : (top + 2) * count]
            for index in range(close):
                slot = order[index]
                z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
                start = state[SUMS + slot]
                middle[slot] = start + fraction * (right[slot] - start) + root * work[2 * slot + 1] * z
            left_mark = FRESH
            right_mark = FRESH
            if mark == PENDING:
                before = boundary[epoch]
                after = boundary[end]
                chord = before + fraction * (after - before)
                u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
                _, one, two = touching_sum(
                    state, order, right, close, leading, lagging, before, after, length, far, work, u * bound
                )
                spread = (work[2 * one + 1] ** 2 + work[2 * two + 1] ** 2) * length
                away, s0, s1, s2, s3 = between_touching(
                    before - (state[SUMS + one] - state[SUMS + two]), after - (right[one] - right[two]),
                    spread, fraction, s0, s1, s2, s3,
                )  # fmt: skip
                # The mean of the two sums, each weighted by the other's variance, is independent of their difference.
                share = work[2 * one + 1] ** 2 * length / spread
                mean = (1.0 - share) * middle[one] + share * middle[two]
                middle[one] = mean + share * (chord - away)
                middle[two] = mean - (1.0 - share) * (chord - away)
                line = before, chord, boundary[epoch + half], after
                proposed, bound_1, bound_2 = halved_sums(
                    state, order, middle, right, close, leading, lagging, line, half, length - half, far, work
                )
                blunt = bound_1 >= 1.0 or bound_2 >= 1.0
                wanted = 1.0 if blunt else bound_1 + bound_2 - bound_1 * bound_2
                u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
                u *= proposed
                if u >= wanted:
                    marks[top] = FREE
                    continue
                if not blunt and u < bound_1:
                    left_mark = PENDING
                    bound = bound_1
                elif not blunt:
                    left_mark = FREE
                    right_mark = PENDING
                    bound = bound_2
            marks[top] = right_mark
            top += 1
            ends[top], known[top], candidates[top], marks[top] = epoch + half, close, close, left_mark
            continue
        high = -np.inf
        low = np.inf
        placed = known[top]
        for index in range(placed):
            slot = order[index]
            total = right[slot]
            high = max(high, total)
            low = min(low, total)
            state[SUMS + slot] = total
            since[slot] = end
        epoch = end
        top -= 1
        if top < 0 or high - low > boundary[epoch]:
            break
    # All other arms get their bridge values at the epoch where the first is dropped.
    while top >= 0:
        for index in range(placed, known[top]):
            slot = order[index]
            length = ends[top] - since[slot]
            spread = work[2 * slot + 1] ** 2 * length
            state[SUMS + slot], s0, s1, s2, s3 = between(
                state[SUMS + slot], sums[top * count + slot], spread, (epoch - since[slot]) / length, s0, s1, s2, s3
            )
        placed = known[top]
        top -= 1
    return epoch, s0, s1, s2, s3
