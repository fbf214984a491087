"""Binomial numbers for compiled loops.

With few expected successes: inversion, which takes one uniform number and walks up the distribution. Otherwise:
transformed rejection with squeeze (algorithm BTRS of Hoermann 1993), about 1.2 pairs of uniform numbers per draw for
any number of trials.
"""

import math

from numba import njit

from dbcare.engines.compile import OPTIONS
from dbcare.engines.rng import uniform


@njit(**OPTIONS)
def binomial(trials, chance, s0, s1, s2, s3):
    """Draw the number of successes in `trials` with probability `chance`; return it and the generator's new state."""
    if trials <= 0 or chance <= 0.0:
        return 0, s0, s1, s2, s3
    if chance >= 1.0:
        return trials, s0, s1, s2, s3
    flipped = chance > 0.5
    p = 1.0 - chance if flipped else chance
    if trials * p < 10.0:
        count, s0, s1, s2, s3 = inverted(trials, p, s0, s1, s2, s3)
    else:
        count, s0, s1, s2, s3 = rejected(trials, p, s0, s1, s2, s3)
    return (trials - count if flipped else count), s0, s1, s2, s3


@njit(**OPTIONS)
def inverted(trials, p, s0, s1, s2, s3):
    """Draw by inversion from zero up; start over if rounding has eaten the far tail."""
    odds = p / (1.0 - p)
    none = math.exp(trials * math.log1p(-p))
    while True:
        u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
        mass = none
        count = 0
        while u > mass and count <= trials:
            u -= mass
            count += 1
            mass *= (trials - count + 1) / count * odds
        if count <= trials:
            return count, s0, s1, s2, s3


@njit(**OPTIONS)
def rejected(trials, p, s0, s1, s2, s3):
    """Draw by Hoermann's BTRS, for trials * p >= 10 and p <= 1/2."""
    spread = math.sqrt(trials * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = trials * p + 0.5
    quick = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    mode = math.floor((trials + 1) * p)
    log_odds = math.log(p / (1.0 - p))
    at_mode = math.lgamma(mode + 1.0) + math.lgamma(trials - mode + 1.0)
    while True:
        u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
        v, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
        u -= 0.5
        us = 0.5 - abs(u)
        count = math.floor((2.0 * a / us + b) * u + centre)
        if count < 0 or count > trials:
            continue
        if us >= 0.07 and v <= quick:
            return int(count), s0, s1, s2, s3
        v = math.log(v * alpha / (a / (us * us) + b))
        density = at_mode - math.lgamma(count + 1.0) - math.lgamma(trials - count + 1.0) + (count - mode) * log_odds
        if v <= density:
            return int(count), s0, s1, s2, s3
