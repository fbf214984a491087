"""Skip ahead where the pulls of a round are fixed: one draw gives the sum of all rewards of an arm in a round.

The sum of m Gaussian rewards is Gaussian; the outcomes of m rewards with finitely many values are multinomial, drawn as
a chain of binomials. This is exact, and the work does not grow with the number of pulls.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from dbcare.engines.compile import OPTIONS
from dbcare.engines.draws import Arms, GaussianArms
from dbcare.engines.rng import INLINE, begun, normal
from dbcare.engines.skip.binomial import binomial
from dbcare.policies.epochs import ALIVE, EACH, HIGH, LOW, PULLS, SUMS, EpochRule, arms_offset, end_epochs


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
