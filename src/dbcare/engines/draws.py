"""Rewards inside compiled loops: a bandit's arms as arrays, and how to draw from them.

Two kinds cover every family: Gaussian arms, and arms with finitely many outcomes, drawn by Walker's alias method from
one uniform number. A loop first *settles* an arm in a slot, which puts what a draw needs side by side into the scratch
array `work`, and then draws by slot.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from dbcare.bandit import Bandit
from dbcare.engines.rng import INLINE, normal, uniform
from dbcare.errors import EngineError
from dbcare.rewards import Bernoulli, Categorical, Empirical, Gaussian

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class GaussianArms(NamedTuple):
    """Mean and standard deviation of each arm."""

    mean: Floats
    sigma: Floats


class FiniteArms(NamedTuple):
    """Outcomes of arm a at first[a]..first[a+1]-1: values, probabilities, and Walker's table of when to stay, else how
    far to move.
    """

    first: Ints
    value: Floats
    probability: Floats
    stay: Floats
    alias: Ints


Arms = GaussianArms | FiniteArms


def arms_of(bandit: Bandit) -> Arms:
    """A bandit's arms as arrays; all Gaussian, or all with finitely many outcomes."""
    if all(isinstance(arm, Gaussian) for arm in bandit.arms):
        return GaussianArms(np.array(bandit.means), np.array([arm.sigma for arm in bandit.arms]))
    listed = [arm.outcomes for arm in bandit.arms if isinstance(arm, Bernoulli | Categorical | Empirical)]
    if len(listed) < len(bandit.arms):
        kinds = ", ".join(sorted({type(arm).__name__ for arm in bandit.arms}))
        raise EngineError(f"The arms must all be Gaussian or all have finitely many outcomes but got {kinds}.")
    return tables_of([(np.asarray(value), np.asarray(probability)) for value, probability in listed])


def tables_of(laws: Sequence[tuple[Floats, Floats]]) -> FiniteArms:
    """Arms with the given values and probabilities."""
    known: dict[bytes, tuple[Floats, Ints]] = {}  # equal arms are done once
    for _, probability in laws:
        if (key := probability.tobytes()) not in known:
            known[key] = _walker(probability)
    tables = [known[probability.tobytes()] for _, probability in laws]
    return FiniteArms(
        first=np.cumsum([0, *(len(value) for value, _ in laws)]),
        value=np.concatenate([value for value, _ in laws]),
        probability=np.concatenate([probability for _, probability in laws]),
        stay=np.concatenate([stay for stay, _ in tables]),
        alias=np.concatenate([alias for _, alias in tables]),
    )


def _walker(probability: Floats) -> tuple[Floats, Ints]:
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
    """Let `slot` draw from `arm`."""
    work[2 * slot] = arms.mean[arm]
    work[2 * slot + 1] = arms.sigma[arm]


@njit(**INLINE)
def draw_gaussian(arms, work, slot, s0, s1, s2, s3):
    """One reward of the Gaussian arm settled in `slot`, and the new state of the generator."""
    z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
    return work[2 * slot] + work[2 * slot + 1] * z, s0, s1, s2, s3


@njit(**INLINE)
def settle_finite(arms, work, slot, arm):
    """Let `slot` draw from `arm`."""
    work[2 * slot] = arms.first[arm]
    work[2 * slot + 1] = arms.first[arm + 1] - arms.first[arm]


@njit(**INLINE)
def draw_finite(arms, work, slot, s0, s1, s2, s3):
    """One reward of the arm with finitely many outcomes settled in `slot`, and the new state of the generator."""
    u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
    first = int(work[2 * slot])
    scaled = u * work[2 * slot + 1]
    outcome = int(scaled)
    index = first + outcome
    # A product, not a branch, which would be mispredicted half the time.
    index += arms.alias[index] * int(scaled - outcome >= arms.stay[index])
    return arms.value[index], s0, s1, s2, s3


class Drawing(NamedTuple):
    """The functions that draw from one kind of arms."""

    settle: Callable[..., Any]
    draw: Callable[..., Any]


def drawing_of(arms: Arms) -> Drawing:
    """How to draw from such arms."""
    if isinstance(arms, GaussianArms):
        return Drawing(settle_gaussian, draw_gaussian)
    return Drawing(settle_finite, draw_finite)
