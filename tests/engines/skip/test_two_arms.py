"""Bridges, their midpoints given a touch, where bridges of several arms first cross, and concavity.

Error rate: a test on N draws allows a distance of sqrt(ln(2/ALPHA) / 2N) between distribution functions, which a
correct sampler exceeds with probability at most ALPHA (Dvoretzky, Kiefer and Wolfowitz, with Massart's constant), or it
uses exact binomial tails of ALPHA/2, or the chi-square law of a sum of squares. Fifteen tests with ALPHA = 1e-8: below
1e-6 in all. Seeds are fixed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit
from scipy.stats import binom, chi2, norm

from dbcare.engines.simulate.rng import stream
from dbcare.engines.skip.first_drop import UNKNOWN, ends_at, first_drop, work_size
from dbcare.engines.skip.two_arms import between, between_touching, is_concave, touch
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.elimination import EliminationPolicy, EliminationTables
from dbcare.policies.elimination.racing import RATES, Racing, TwoArmConfidence
from dbcare.policies.epochs import ALIVE, EPOCH, SUMS, state_size
from dbcare.problem.risk import Risk

ALPHA = 1e-8
DRAWS = 1_000_000

Floats = npt.NDArray[np.float64]


@cache
def compile_filler(function: Any) -> Any:
    """Compile a loop over a sampler."""

    def fill(start: float, end: float, spread: float, fraction: float, values: Any) -> None:
        s0, s1, s2, s3 = stream(11, 0)
        for index in range(len(values)):
            values[index], s0, s1, s2, s3 = function(start, end, spread, fraction, s0, s1, s2, s3)

    return njit(error_model="numpy")(fill)


def sample(function: Any, start: float, end: float, spread: float, fraction: float) -> Floats:
    """Draw independent values of a bridge."""
    values = np.empty(DRAWS)
    compile_filler(function)(start, end, spread, fraction, values)
    return values


def distance(values: Floats, distribution: Callable[[Floats], Floats]) -> float:
    """Return the largest difference between the empirical distribution function and the given one."""
    expected = distribution(np.sort(values))
    steps = np.arange(len(values) + 1) / len(values)
    return float(max(np.max(steps[1:] - expected), np.max(expected - steps[:-1])))


ALLOWED = math.sqrt(math.log(2.0 / ALPHA) / (2.0 * DRAWS))


def touching_distribution(start: float, end: float, spread: float, fraction: float) -> Callable[[Floats], Floats]:
    """Return the distribution of the distance to the line given a touch, from Bayes' rule."""
    mean = (1.0 - fraction) * start + fraction * end
    scale = math.sqrt(spread * fraction * (1.0 - fraction))
    grid = np.linspace(mean - 12.0 * scale, mean + 12.0 * scale, 200_001)
    left = np.exp(-2.0 * start * grid / (spread * fraction))
    right = np.exp(-2.0 * grid * end / (spread * (1.0 - fraction)))
    touched = np.where(grid <= 0.0, 1.0, left + right - left * right)
    density = touched * norm.pdf(grid, mean, scale) / math.exp(-2.0 * start * end / spread)
    area = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
    assert area[-1] == pytest.approx(1.0, abs=1e-5)
    return lambda values: np.interp(values, grid, area)


def test_touch_is_the_reflection_principle() -> None:
    assert touch(1.0, 2.0, 8.0) == pytest.approx(math.exp(-0.5))
    assert touch(0.0, 2.0, 8.0) == touch(1.0, -0.1, 8.0) == 1.0


def test_the_plain_midpoint() -> None:
    values = sample(between, 1.0, 3.0, 8.0, 0.25)
    assert distance(values, lambda x: np.asarray(norm.cdf(x, 1.5, math.sqrt(1.5)))) < ALLOWED


@pytest.mark.parametrize(
    "case", [(1.0, 1.0, 8.0, 0.5), (0.3, 2.0, 2.0, 0.4), (3.0, 1.0, 5.0, 0.5), (2.0, 2.0, 1.0, 0.5)]
)
def test_the_midpoint_given_a_touch(case: tuple[float, float, float, float]) -> None:
    assert distance(sample(between_touching, *case), touching_distribution(*case)) < ALLOWED


def test_a_midpoint_drawn_regardless_of_the_touch_is_detected() -> None:
    case = (1.0, 1.0, 8.0, 0.5)
    assert distance(sample(between, *case), touching_distribution(*case)) > 3.0 * ALLOWED


def test_the_midpoint_beyond_the_chord() -> None:
    """With gaps 1 and 1, sigma = 1 and 4 epochs, it lies beyond with probability e^(1/4) Phi(-1/sqrt 2) = 0.308."""
    beyond = int(np.sum(sample(between_touching, 1.0, 1.0, 8.0, 0.5) < 0.0))
    expected = math.exp(0.25) * norm.cdf(-math.sqrt(0.5))
    assert expected == pytest.approx(0.308, abs=5e-4)
    assert min(binom.cdf(beyond, DRAWS, expected), binom.sf(beyond - 1, DRAWS, expected)) > ALPHA / 2.0


def is_normal(values: Floats) -> bool:
    """Return whether `values` may be standard normal."""
    square = float(np.sum(values**2))
    allowed = math.sqrt(math.log(2.0 / ALPHA) / (2.0 * len(values)))
    tail = min(chi2.cdf(square, len(values)), chi2.sf(square, len(values)))
    return bool(distance(values, lambda x: np.asarray(norm.cdf(x))) < allowed and tail > ALPHA / 2.0)


@dataclass(frozen=True)
class Crossings:
    """Where the first pair of three arms crosses strictly inside, for bridges from `start` to `end` in 100 epochs."""

    start: Floats
    end: Floats
    fraction: Floats
    sums: Floats

    def scores(self, weights: Floats, sigma: Floats) -> Floats:
        """Return the weighted sum of the three arms there, in standard deviations of its bridge."""
        ahead = weights @ self.start + self.fraction * (weights @ (self.end - self.start))
        scale = np.sqrt(100.0 * self.fraction * (1.0 - self.fraction) * (weights**2 @ sigma**2))
        return np.asarray((self.sums @ weights - ahead) / scale)


def draw_crossings(start: Floats, end: Floats, sigma: Floats) -> Crossings:
    """Draw 10,000 crossings from epoch 10,000 on, where the boundary 4 sqrt(n) is 400."""
    state, work = np.zeros(state_size(3)), np.zeros(work_size(3))
    generator, boundary = stream(5, 0), 4.0 * np.sqrt(EPOCHS)
    epochs, sums = np.empty(10_000), np.empty((10_000, 3))
    for run in range(10_000):
        state[EPOCH], state[ALIVE] = 10_000, 3
        state[SUMS:] = [*start, 0, 1, 2]
        work[1:6:2] = sigma
        work[ends_at(3) : ends_at(3) + 3] = end
        epochs[run], *generator = first_drop(
            3, boundary, 1.0, 30.0, 10_100, UNKNOWN, state, work, *(np.uint64(word) for word in generator)
        )
        sums[run] = state[SUMS : SUMS + 3]
    inside = epochs < 10_100
    assert inside.sum() > 5_000
    return Crossings(start, end, (epochs[inside] - 10_000.0) / 100.0, sums[inside])


def test_a_pair_crosses_independently_of_a_bystander() -> None:
    sigma = np.array([1.0, 0.6, 0.8])
    crossings = draw_crossings(np.array([1395.0, 1000.0, 1200.0]), np.array([2400.0, 2003.0, 2200.0]), sigma)
    assert is_normal(crossings.scores(np.array([0.0, 0.0, 1.0]), sigma))
    assert is_normal(crossings.scores(np.array([0.36, 1.0, 0.0]), sigma))
    assert not is_normal(crossings.scores(np.array([1.0, -1.0, 0.0]), sigma))


def test_the_total_does_not_depend_on_where_one_of_several_pairs_crosses() -> None:
    sigma = np.ones(3)
    crossings = draw_crossings(np.array([1395.0, 1000.0, 1003.0]), np.array([2397.0, 2001.0, 2002.0]), sigma)
    assert is_normal(crossings.scores(np.ones(3), sigma))
    assert not is_normal(crossings.scores(np.array([1.0, -1.0, 0.0]), sigma))


@pytest.mark.parametrize(
    "policy",
    [
        Racing(arms=2, delta=0.01),
        Racing(arms=32, delta=0.5, sigma=0.3, max_pulls=1_000_000),
        DBCARE(Risk.misidentification(cost=1e-6), arms=2),
        DBCARE(Risk.simple_regret(cost=1e-5), arms=8, sigma=2.0),
        *(TwoArmConfidence(delta=0.1, rate=rate) for rate in RATES),
    ],
    ids=repr,
)
def test_boundaries_of_the_policies_are_concave(policy: EliminationPolicy) -> None:
    assert is_concave(policy.tables, policy.arms)


def make_tables(*lines: Floats) -> EliminationTables:
    """Build tables with one boundary for each number of survivors from 2 on."""
    length = len(lines[0])
    return EliminationTables(
        boundary=np.concatenate(lines),
        row=np.array([0, 0, *(length * index for index in range(len(lines)))]),
        last_epoch=np.array([0, 0, *(length - 1 for _ in lines)]),
        max_pulls=10**9,
    )


EPOCHS = np.arange(100_001, dtype=np.float64)


@pytest.mark.parametrize(
    "line",
    [EPOCHS**1.2, EPOCHS + 1e-12 * EPOCHS**2, np.where(EPOCHS < 7000, np.sqrt(EPOCHS), 84.0), np.full(9, np.nan)],
    ids=["convex", "slightly convex", "a jump", "not a number"],
)
def test_other_boundaries_are_not_concave(line: Floats) -> None:
    assert not is_concave(make_tables(line), 2)


def test_every_reachable_number_of_survivors_counts() -> None:
    tables = make_tables(np.sqrt(EPOCHS), 2.0 * np.sqrt(EPOCHS), EPOCHS**1.2)
    assert is_concave(tables, 2)
    assert is_concave(tables, 3)
    assert not is_concave(tables, 4)


@pytest.mark.parametrize("bent", [None, *range(9)])
def test_rows_of_different_lengths_do_not_mix(bent: int | None) -> None:
    """Rows are far from each other; a bend is found in every row that is long enough to have one."""
    lengths = [5, 1, 0, 8, 2, 3, 1, 17, 4]
    rows = [1e3 * (-1.0) ** place + np.sqrt(np.arange(length + 1.0)) for place, length in enumerate(lengths)]
    if bent is not None:
        rows[bent][-1] += 1.0
    tables = EliminationTables(
        boundary=np.concatenate(rows),
        row=np.array([0, 0, *np.cumsum([0, *(len(row) for row in rows[:-1])])]),
        last_epoch=np.array([0, 0, *lengths]),
        max_pulls=10**9,
    )
    assert is_concave(tables, len(lengths) + 1) == (bent is None or lengths[bent] < 3)
