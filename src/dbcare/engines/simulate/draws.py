"""Rewards inside compiled loops: of single arms, and of arms that share blocks.

A run starts by drawing what all its blocks share: the key and phase of Gaussian blocks, or the order of a table's rows.
It keeps these in the scratch array `work`. The part of a reward that arms share in a block is computed from the run's
key and the block's number, so it is the same whenever an arm is pulled in that block, and nothing is stored.

Two kinds cover every family: Gaussian arms, and arms with finitely many outcomes, drawn from one uniform number by
Walker's alias method. A loop first *settles* an arm in a slot, which stores the numbers a draw needs side by side in
the scratch array `work`; it then draws by slot. The loop that steps a policy pull by pull knows the block and number
of each pull as well, and draws from bandits with blocks too (`block_draws`).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from dbcare.engines.kernels.compile import OPTIONS
from dbcare.engines.simulate.rng import INLINE, next_word, normal, normal_at, uniform
from dbcare.errors import EngineError
from dbcare.problem.bandits import Bandit, BlockBandit, GaussianBlocks
from dbcare.problem.rewards import Bernoulli, Categorical, Empirical, Gaussian

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


Ints = npt.NDArray[np.int64]


class GaussianArms(NamedTuple):
    """Mean and standard deviation of each arm."""

    mean: Floats
    sigma: Floats


class FiniteArms(NamedTuple):
    """Outcomes of arm a, at first[a]..first[a+1]-1: values, probabilities and Walker's alias table.

    The table holds the probability of staying at an outcome, and how far to move otherwise.
    """

    first: Ints
    value: Floats
    probability: Floats
    stay: Floats
    alias: Ints


Arms = GaussianArms | FiniteArms | BlockArms


def make_arms(bandit: Bandit) -> Arms:
    """Convert a bandit's arms to arrays; all must be Gaussian, or all must have finitely many outcomes."""
    if isinstance(bandit, BlockBandit):
        return make_block_arms(bandit)
    if all(isinstance(arm, Gaussian) for arm in bandit.arms):
        return GaussianArms(np.array(bandit.means), np.array([arm.sigma for arm in bandit.arms]))
    laws = [arm.outcomes for arm in bandit.arms if isinstance(arm, Bernoulli | Categorical | Empirical)]
    if len(laws) < len(bandit.arms):
        kinds = ", ".join(sorted({type(arm).__name__ for arm in bandit.arms}))
        raise EngineError(f"The arms must all be Gaussian or all have finitely many outcomes but got {kinds}.")
    return make_finite_arms([(np.asarray(value), np.asarray(probability)) for value, probability in laws])


def make_finite_arms(laws: Sequence[tuple[Floats, Floats]]) -> FiniteArms:
    """Build arms from values and probabilities, one pair per arm."""
    table_by_law: dict[bytes, tuple[Floats, Ints]] = {}  # equal arms share one table
    for _, probability in laws:
        if (key := probability.tobytes()) not in table_by_law:
            table_by_law[key] = _make_alias_table(probability)
    tables = [table_by_law[probability.tobytes()] for _, probability in laws]
    return FiniteArms(
        first=np.cumsum([0, *(len(value) for value, _ in laws)]),
        value=np.concatenate([value for value, _ in laws]),
        probability=np.concatenate([probability for _, probability in laws]),
        stay=np.concatenate([stay for stay, _ in tables]),
        alias=np.concatenate([alias for _, alias in tables]),
    )


def _make_alias_table(probability: Floats) -> tuple[Floats, Ints]:
    size = len(probability)
    stay = probability * size
    alias = np.zeros(size, dtype=np.int64)
    small = [index for index in range(size) if stay[index] < 1.0]
    large = [index for index in range(size) if stay[index] >= 1.0]
    while small and large:
        low, high = small.pop(), large[-1]
        alias[low] = high - low
        stay[high] -= 1.0 - stay[low]
        if stay[high] < 1.0:
            small.append(large.pop())
    for index in small + large:
        stay[index] = 1.0
    return stay, alias


@njit(**INLINE)
def settle_gaussian(arms, work, slot, arm):
    """Make `slot` draw from `arm`."""
    work[2 * slot] = arms.mean[arm]
    work[2 * slot + 1] = arms.sigma[arm]


@njit(**INLINE)
def draw_gaussian(arms, work, slot, s0, s1, s2, s3):
    """Draw a reward from the Gaussian arm settled in `slot`; return it and the generator's new state."""
    z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
    return work[2 * slot] + work[2 * slot + 1] * z, s0, s1, s2, s3


@njit(**INLINE)
def settle_finite(arms, work, slot, arm):
    """Make `slot` draw from `arm`."""
    work[2 * slot] = arms.first[arm]
    work[2 * slot + 1] = arms.first[arm + 1] - arms.first[arm]


@njit(**INLINE)
def draw_finite(arms, work, slot, s0, s1, s2, s3):
    """Draw a reward from the finite-outcome arm settled in `slot`; return it and the generator's new state."""
    u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
    first = int(work[2 * slot])
    scaled = u * work[2 * slot + 1]
    outcome = int(scaled)
    index = first + outcome
    # A product rather than a branch, which would be mispredicted half the time.
    index += arms.alias[index] * int(scaled - outcome >= arms.stay[index])
    return arms.value[index], s0, s1, s2, s3


@njit(**INLINE)
def start_gaussian(arms, work, s0, s1, s2, s3):
    """Settle each arm in its own slot."""
    for arm in range(len(arms.mean)):
        settle_gaussian(arms, work, arm, arm)
    return s0, s1, s2, s3


@njit(**INLINE)
def pull_gaussian(arms, work, arm, block, made, s0, s1, s2, s3):
    """Draw a reward of a Gaussian arm, whatever its block."""
    return draw_gaussian(arms, work, arm, s0, s1, s2, s3)


@njit(**INLINE)
def start_finite(arms, work, s0, s1, s2, s3):
    """Settle each arm in its own slot."""
    for arm in range(len(arms.first) - 1):
        settle_finite(arms, work, arm, arm)
    return s0, s1, s2, s3


@njit(**INLINE)
def pull_finite(arms, work, arm, block, made, s0, s1, s2, s3):
    """Draw a reward of an arm with finitely many outcomes, whatever its block."""
    return draw_finite(arms, work, arm, s0, s1, s2, s3)


class Drawing(NamedTuple):
    """The functions that draw from one kind of arm by slot; no reward depends on another."""

    settle: Callable[..., Any]
    draw: Callable[..., Any]


class PullDrawing(NamedTuple):
    """The functions that start a run and draw its pulls, given the block and number of each."""

    start: Callable[..., Any]
    draw: Callable[..., Any]


def make_drawing(arms: Arms) -> Drawing:
    """Return the functions that draw from `arms` by slot."""
    if isinstance(arms, BlockArms):
        raise EngineError("Arms that share blocks can only be drawn pull by pull; use the direct engine.")
    if isinstance(arms, GaussianArms):
        return Drawing(settle_gaussian, draw_gaussian)
    return Drawing(settle_finite, draw_finite)


def make_pull_drawing(arms: Arms) -> PullDrawing:
    """Return the functions that draw from `arms` pull by pull."""
    if isinstance(arms, GaussianBlockArms):
        return PullDrawing(start_gaussian_blocks, draw_gaussian_block)
    if isinstance(arms, ScoreArms):
        return PullDrawing(start_scores, draw_score)
    if isinstance(arms, GaussianArms):
        return PullDrawing(start_gaussian, pull_gaussian)
    return PullDrawing(start_finite, pull_finite)


def name_arms(drawing: PullDrawing) -> str:
    """Name the arms that a drawing draws from."""
    names = {start_gaussian_blocks: "Gaussian blocks", start_scores: "a score table", start_gaussian: "Gaussian arms"}
    return names.get(drawing.start, "arms with few values")


def scratch_size(arms: Arms, count: int) -> int:
    """Return how many numbers a run of `count` arms keeps in `work` to draw pull by pull."""
    return len(arms.score) if isinstance(arms, ScoreArms) else 2 * count
