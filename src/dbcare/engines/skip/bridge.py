"""Gaussian walks between two known points, and lines they may touch: the basis of both skip-ahead engines.

Given its values at two epochs, a Gaussian walk is a Brownian bridge between them, observed at whole epochs. Let
`spread` be the variance it gathers from one end to the other. A bridge whose ends lie g_a and g_b > 0 below a straight
line touches the line with probability exp(-2 g_a g_b / spread). Reflected in the line from its first touch on, it
becomes a bridge that ends g_b *above* the line, and every such bridge touches: this gives the law of a point in
between, given a touch.

The boundary b(n) of an elimination rule is concave, so it lies above its chord over any interval: a walk that does not
touch the chord does not cross the boundary.
"""

import math

import numpy as np
from numba import njit

from dbcare.engines.compile import OPTIONS
from dbcare.engines.rng import INLINE, normal, uniform
from dbcare.policies.elimination.elimination import EliminationTables

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
