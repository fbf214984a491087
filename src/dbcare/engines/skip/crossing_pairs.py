"""Pairs of Gaussian arms that may cross the boundary b in an interval, and the probabilities that they do.

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
"""

import math

import numpy as np
from numba import njit

from dbcare.engines.compile import OPTIONS
from dbcare.engines.rng import INLINE
from dbcare.policies.epochs import SUMS


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
