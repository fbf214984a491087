"""Skip ahead in rounds that are planned in advance: one draw per arm and round.

With few expected successes: inversion, which takes one uniform number and walks up the distribution. Otherwise:
transformed rejection with squeeze (algorithm BTRS of Hoermann 1993), about 1.2 pairs of uniform numbers per draw for
any number of trials.

The sum of m Gaussian rewards is Gaussian; the outcomes of m rewards with finitely many values are multinomial, drawn as
a chain of binomials. This is exact, and the work does not grow with the number of pulls.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from dbcare.engines.kernels.compile import OPTIONS
from dbcare.engines.simulate.draws import Arms, GaussianArms
from dbcare.engines.simulate.rng import INLINE, begun, normal, uniform
from dbcare.policies.epochs import ALIVE, EACH, HIGH, LOW, PULLS, SUMS, EpochRule, arms_offset, end_epochs


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


@njit(**INLINE)
def sum_gaussian(arms, arm, pulls, s0, s1, s2, s3):
    """Draw the sum of `pulls` Gaussian rewards."""
    z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
    return pulls * arms.mean[arm] + math.sqrt(pulls) * arms.sigma[arm] * z, s0, s1, s2, s3


@njit(**OPTIONS)
def sum_finite(arms, arm, pulls, s0, s1, s2, s3):
    """Draw the sum of `pulls` rewards with finitely many outcomes."""
    total = 0.0
    left = pulls
    chance_left = 1.0
    last = arms.first[arm + 1] - 1
    for index in range(arms.first[arm], last):
        if left > 0:
            chance = min(1.0, arms.probability[index] / chance_left) if chance_left > 0.0 else 0.0
            count, s0, s1, s2, s3 = binomial(left, chance, s0, s1, s2, s3)
            total += count * arms.value[index]
            left -= count
            chance_left -= arms.probability[index]
    return total + left * arms.value[last], s0, s1, s2, s3


def choose_sum(arms: Arms) -> Any:
    """Return the function that draws sums of rewards from `arms`."""
    return sum_gaussian if isinstance(arms, GaussianArms) else sum_finite


def sums_loop(rule: EpochRule, draw_sum: Callable[..., Any]) -> Callable[..., None]:
    """Return the loop for policies whose rounds are planned in advance."""
    init, decide, recommend = rule.init, rule.decide, rule.recommend

    def simulate_sums(first, seed, arms, tables, state, recommended, pulls, undecided):
        arm_at = arms_offset(state)
        for place in range(len(pulls)):
            tie, s0, s1, s2, s3 = begun(seed, first + place)
            init(state, tables, tie)
            while state[EACH] > 0:
                high = -np.inf
                low = np.inf
                for slot in range(int(state[ALIVE])):
                    arm = int(state[arm_at + slot])
                    gained, s0, s1, s2, s3 = draw_sum(arms, arm, int(state[EACH]), s0, s1, s2, s3)
                    total = state[SUMS + slot] + gained
                    state[SUMS + slot] = total
                    high = max(high, total)
                    low = min(low, total)
                state[HIGH] = high
                state[LOW] = low
                end_epochs(state, 1)
                decide(state, tables)
            recommended[place] = recommend(state, tables)
            pulls[place] = int(state[PULLS])
            undecided[place] = state[ALIVE] > 1

    return simulate_sums
