"""Draw rewards of bandits with blocks inside compiled loops.

A run starts by drawing what all its blocks share: the key and phase of Gaussian blocks, or the order of a table's rows.
It keeps these in the scratch array `work`. The part of a reward that arms share in a block is computed from the run's
key and the block's number, so it is the same whenever an arm is pulled in that block, and nothing is stored.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from dbcare.engines.compile import OPTIONS
from dbcare.engines.rng import INLINE, next_word, normal, normal_at, uniform
from dbcare.problem.bandits import BlockBandit, GaussianBlocks

Floats = npt.NDArray[np.float64]

KEY, PHASE = 0, 1  # places in `work` of a run on Gaussian blocks


class GaussianBlockArms(NamedTuple):
    """Mean of each arm, standard deviations of its own and of the block's part of a reward, and the common wave."""

    mean: Floats
    own: Floats
    shared: Floats
    drift: float
    period: float


class ScoreArms(NamedTuple):
    """Scores by row and arm."""

    score: Floats


BlockArms = GaussianBlockArms | ScoreArms


def make_block_arms(bandit: BlockBandit) -> BlockArms:
    """Convert a bandit with blocks to arrays."""
    if isinstance(bandit, GaussianBlocks):
        sigma = np.array([arm.sigma for arm in bandit.arms])
        own, shared = math.sqrt(1.0 - bandit.correlation) * sigma, math.sqrt(bandit.correlation) * sigma
        return GaussianBlockArms(np.array(bandit.means), own, shared, bandit.drift, bandit.period)
    return ScoreArms(np.array(bandit.scores))


@njit(**INLINE)
def start_gaussian_blocks(arms, work, s0, s1, s2, s3):
    """Draw the run's key and phase; return the generator's new state."""
    word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    work[KEY] = np.float64(word >> uint64(11))  # 53 bits, which a float holds
    work[PHASE], s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
    return s0, s1, s2, s3


@njit(**INLINE)
def draw_gaussian_block(arms, work, arm, block, made, s0, s1, s2, s3):
    """Draw a reward of `arm` in `block` after `made` pulls; return it and the generator's new state."""
    z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
    reward = arms.mean[arm] + arms.own[arm] * z
    if arms.shared[arm] > 0.0:
        reward += arms.shared[arm] * normal_at(work[KEY], block)
    if arms.drift > 0.0:
        turns = made / arms.period + work[PHASE]
        reward += arms.drift * math.sin(2.0 * math.pi * (turns - math.floor(turns)))
    return reward, s0, s1, s2, s3


@njit(**OPTIONS)
def start_scores(arms, work, s0, s1, s2, s3):
    """Draw the order of the rows by the method of Fisher and Yates; return the generator's new state."""
    rows = len(arms.score)
    for place in range(rows):
        u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
        other = int(u * (place + 1))
        work[place] = work[other]
        work[other] = place
    return s0, s1, s2, s3


@njit(**INLINE)
def draw_score(arms, work, arm, block, made, s0, s1, s2, s3):
    """Look up the score of `arm` in `block`; return it and the generator's state."""
    return arms.score[int(work[block % len(arms.score)]), arm], s0, s1, s2, s3
