"""Skip ahead on two Gaussian arms: jumps along a bridge below the boundary.

Given its values at two epochs, a Gaussian walk is a Brownian bridge between them, observed at whole epochs. Let
`spread` be the variance it gathers from one end to the other. A bridge whose ends lie g_a and g_b > 0 below a straight
line touches the line with probability exp(-2 g_a g_b / spread). Reflected in the line from its first touch on, it
becomes a bridge that ends g_b *above* the line, and every such bridge touches: this gives the law of a point in
between, given a touch.

The boundary b(n) of an elimination rule is concave, so it lies above its chord over any interval: a walk that does not
touch the chord does not cross the boundary.

The difference D of the two sums is a Gaussian walk; the rule stops when |D_n| > b(n), at the latest at epoch LIMIT.
Jump from (n, x) to (n+m, y). A crossing strictly inside touches the upper or the lower chord of the concave boundary,
so it has probability at most B, the sum of the two touching probabilities. Draw U: if U >= B, nothing was crossed.
If y is outside or B >= 1, U is uninformative: draw the midpoint and judge each half afresh (it is *fresh*). Otherwise,
if U < B, the interval is *pending*: it contains a crossing with probability P(crossing)/B.

Pending: propose a midpoint z given that the chord is touched, on a side chosen in proportion to its term of B. Relative
to the plain bridge, z has the density (p_u + p_l)/B, where p_side is the probability that the part left or right of z
touches that chord. The target is P/B, where P = 1 if z is outside or a half's bound is 1 or more, and otherwise
P = B_1 + B_2 - B_1 B_2, with the halves' bounds taken against their own chords. These lie higher, so P <= p_u + p_l,
and z is accepted with probability P/(p_u + p_l). Rejected: nothing was crossed. Accepted: both halves are fresh if
P = 1; otherwise, with probability B_1/P the left half is pending and the right one fresh, else the left half is free of
crossings and the right one pending. By induction over the length of intervals, the stopping epoch and the sign of D
have exactly the law of the walk.
"""

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from dbcare.engines.kernels.compile import OPTIONS
from dbcare.engines.simulate.rng import INLINE, begun, normal, uniform
from dbcare.policies.elimination.elimination import EliminationTables
from dbcare.policies.epochs import ALIVE, COUNT, EACH, EPOCH, HIGH, LIMIT, LOW, PULLS, SUMS, EpochRule

DEPTH = 32  # how often an interval can be halved: more than enough for the longest table


@njit(**OPTIONS)
def touch(start, end, spread):
    """Return P(a bridge touches a line); `start` and `end` are its ends' distances to the line, negative beyond it."""
    if start <= 0.0 or end <= 0.0:
        return 1.0
    return math.exp(-2.0 * start * end / spread)


@njit(**INLINE)
def between(start, end, spread, fraction, s0, s1, s2, s3):
    """Draw a bridge's value `fraction` of the way from `start` to `end`."""
    z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
    return start + fraction * (end - start) + math.sqrt(spread * fraction * (1.0 - fraction)) * z, s0, s1, s2, s3


@njit(**OPTIONS)
def between_touching(start, end, spread, fraction, s0, s1, s2, s3):
    """Draw a bridge's distance to a line `fraction` of the way, negative beyond it, given that it touches the line."""
    mirrored, s0, s1, s2, s3 = between(start, -end, spread, fraction, s0, s1, s2, s3)
    if mirrored < 0.0:
        return -mirrored, s0, s1, s2, s3
    u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
    if u < touch(start, mirrored, spread * fraction):
        return -mirrored, s0, s1, s2, s3
    return mirrored, s0, s1, s2, s3


@njit(**INLINE)
def reachable(boundary, epoch, limit):
    """Return the farthest epoch that a jump may reach; an epoch where b falls to 0 decides all and is a single step."""
    return limit - 1 if boundary[limit] == 0.0 and epoch < limit - 1 else limit


def is_concave(tables: EliminationTables, arms: int) -> bool:
    """Return whether b(n) is concave from n = 1 on, up to rounding, for every possible number of survivors.

    A fall to 0 at the last epoch is ignored (see `reachable`). Second differences are taken over strides 1, 2, 4, ...,
    so that a slow bend cannot hide in the rounding of adjacent values.
    """
    starts, shared = np.unique(tables.row[2 : arms + 1], return_inverse=True)
    lengths = np.zeros_like(starts)
    np.maximum.at(lengths, shared, tables.last_epoch[2 : arms + 1])  # several numbers of survivors may share a row
    lengths -= (lengths > 0) & (tables.boundary[starts + lengths] == 0.0)
    ends = starts + 1 + lengths
    line = np.concatenate([tables.boundary[start + 1 : end] for start, end in zip(starts, ends, strict=True)])
    while lengths.max() > 2:
        firsts = np.cumsum(lengths) - lengths  # places in the line at which rows begin
        bends_down = np.diff(line, 2) <= 8.0 * np.finfo(np.float64).eps * np.abs(line[2:])
        across = np.concatenate([firsts[1:] - 2, firsts[1:] - 1])  # differences between two rows mean nothing
        bends_down[across[(across >= 0) & (across < len(bends_down))]] = True
        if not np.all(bends_down):
            return False
        kept = (lengths + 1) // 2
        line = line[2 * np.arange(kept.sum()) + np.repeat(firsts - 2 * (np.cumsum(kept) - kept), kept)]
        lengths = kept
    return True


FRESH, PENDING, FREE = 0, 1, 2


@njit(**OPTIONS)
def crossing_bound(x, y, left, right, spread, length):
    """Return B for a walk from x to y, where the boundary is `left` and `right`; 0 if no epoch lies inside."""
    if length == 1:
        return 0.0
    return touch(left - x, right - y, spread) + touch(left + x, right + y, spread)


@njit(**OPTIONS)
def cross(boundary, variance, epoch, x, end, y, work, s0, s1, s2, s3):
    """Find where a walk from (epoch, x) to (end, y) is first outside the boundary, or (end, y) if nowhere.

    `work` holds a stack of intervals, the leftmost on top: the end of each, the walk there, and its mark.
    """
    ends, values, marks = work[:DEPTH], work[DEPTH : 2 * DEPTH], work[2 * DEPTH : 3 * DEPTH]
    ends[0], values[0], marks[0] = end, y, FRESH
    top = 0
    while top >= 0:
        end = int(ends[top])
        y = values[top]
        mark = marks[top]
        length = end - epoch
        left = boundary[epoch]
        right = boundary[end]
        spread = variance * length
        if mark == FRESH and length > 1 and abs(y) <= right:
            bound = crossing_bound(x, y, left, right, spread, length)
            if bound < 1.0:
                u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
                mark = PENDING if u < bound else FREE
        if mark == FREE or length == 1:
            epoch = end
            x = y
            if abs(x) > right:
                break
            top -= 1
            continue
        half = length // 2
        fraction = half / length
        middle = epoch + half
        if mark == FRESH:
            z, s0, s1, s2, s3 = between(x, y, spread, fraction, s0, s1, s2, s3)
            top += 1
            ends[top], values[top], marks[top] = middle, z, FRESH
            continue
        upper = touch(left - x, right - y, spread)
        lower = touch(left + x, right + y, spread)
        u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
        side = 1.0 if u * (upper + lower) < upper else -1.0
        away, s0, s1, s2, s3 = between_touching(left - side * x, right - side * y, spread, fraction, s0, s1, s2, s3)
        chord = left + fraction * (right - left)
        z = side * (chord - away)
        spread_1 = spread * fraction
        spread_2 = spread - spread_1
        upper_1, upper_2 = touch(left - x, chord - z, spread_1), touch(chord - z, right - y, spread_2)
        lower_1, lower_2 = touch(left + x, chord + z, spread_1), touch(chord + z, right + y, spread_2)
        proposed = upper_1 + upper_2 - upper_1 * upper_2 + lower_1 + lower_2 - lower_1 * lower_2
        bound_1 = crossing_bound(x, z, left, boundary[middle], spread_1, half)
        bound_2 = crossing_bound(z, y, boundary[middle], right, spread_2, length - half)
        blunt = abs(z) > boundary[middle] or bound_1 >= 1.0 or bound_2 >= 1.0
        wanted = 1.0 if blunt else bound_1 + bound_2 - bound_1 * bound_2
        u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
        u *= proposed
        if u >= wanted:
            marks[top] = FREE
            continue
        top += 1
        ends[top], values[top] = middle, z
        if blunt:
            marks[top], marks[top - 1] = FRESH, FRESH
        elif u < bound_1:
            marks[top], marks[top - 1] = PENDING, FRESH
        else:
            marks[top], marks[top - 1] = FREE, PENDING
    return epoch, x, s0, s1, s2, s3


def work_size(arms: int) -> int:
    """Return the size of the scratch array that the loop needs."""
    return 3 * DEPTH


def skip_loop(rule: EpochRule) -> Callable[..., None]:
    """Return the loop for elimination between two Gaussian arms, which may differ in sigma.

    It has no control variate and tallies nothing.
    """
    init, decide, recommend = rule.init, rule.decide, rule.recommend

    def simulate_skip_two(
        first, seed, arms, tables, state, work, checkpoint, recommended, pulls, undecided, leaders, tallies
    ):
        drift = arms.mean[0] - arms.mean[1]
        variance = arms.sigma[0] ** 2 + arms.sigma[1] ** 2
        boundary = tables.boundary[tables.row[2] :]
        for place in range(len(pulls)):
            tie, s0, s1, s2, s3 = begun(seed, first + place)
            init(state, tables, tie)
            limit = int(state[LIMIT]) if state[EACH] > 0 else 0
            epoch = int(state[EPOCH])
            x = 0.0
            inside = True
            while inside and epoch < limit:
                gap = boundary[epoch] - abs(x) if epoch > 0 else 0.0
                length = int(min(max(gap * gap / variance, 1.0), reachable(boundary, epoch, limit) - epoch))
                z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
                y = x + length * drift + math.sqrt(length * variance) * z
                epoch, x, s0, s1, s2, s3 = cross(boundary, variance, epoch, x, epoch + length, y, work, s0, s1, s2, s3)
                inside = abs(x) <= boundary[epoch]
            if epoch > 0:
                state[SUMS] = x
                state[SUMS + 1] = 0.0
                state[HIGH] = max(x, 0.0)
                state[LOW] = min(x, 0.0)
                state[EPOCH] = epoch
                state[COUNT] = epoch
                state[PULLS] = 2 * epoch
                decide(state, tables)
            recommended[place] = recommend(state, tables)
            pulls[place] = int(state[PULLS])
            undecided[place] = state[ALIVE] > 1

    return simulate_skip_two
