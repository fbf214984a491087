"""The engines' random numbers have the laws they claim; each test fails by chance with probability below 1e-6."""

import numba
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dbcare import Bandit
from dbcare.engines.simulate.draws import FiniteArms, draw_finite, make_arms, settle_finite
from dbcare.engines.simulate.rng import next_word, normal, stream, uniform
from dbcare.engines.skip.planned import binomial, sum_finite

pytestmark = pytest.mark.statistical

LEVEL = 1e-6
COUNT = 2_000_000
MASK = 2**64 - 1


@numba.njit
def normals(seed, count):
    s0, s1, s2, s3 = stream(seed, 0)
    drawn = np.empty(count)
    for index in range(count):
        drawn[index], s0, s1, s2, s3 = normal(s0, s1, s2, s3)
    return drawn


@numba.njit
def first_normals(seed, count):
    drawn = np.empty(count)
    for run in range(count):
        s0, s1, s2, s3 = stream(seed, run)
        drawn[run], s0, s1, s2, s3 = normal(s0, s1, s2, s3)
    return drawn


@numba.njit
def uniforms(seed, count):
    s0, s1, s2, s3 = stream(seed, 0)
    drawn = np.empty(count)
    for index in range(count):
        drawn[index], s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
    return drawn


@numba.njit
def words(s0, s1, s2, s3, count):
    drawn = np.empty(count, np.uint64)
    for index in range(count):
        drawn[index], s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    return drawn


@numba.njit
def binomials(seed, trials, chance, count):
    s0, s1, s2, s3 = stream(seed, 0)
    drawn = np.empty(count, np.int64)
    for index in range(count):
        drawn[index], s0, s1, s2, s3 = binomial(trials, chance, s0, s1, s2, s3)
    return drawn


@numba.njit
def finite(seed, arms, arm, pulls, count):
    """Draw single rewards if `pulls` is 0, else sums of `pulls` rewards."""
    s0, s1, s2, s3 = stream(seed, 0)
    work = np.zeros(2)
    settle_finite(arms, work, 0, arm)
    drawn = np.empty(count)
    for index in range(count):
        if pulls == 0:
            drawn[index], s0, s1, s2, s3 = draw_finite(arms, work, 0, s0, s1, s2, s3)
        else:
            drawn[index], s0, s1, s2, s3 = sum_finite(arms, arm, pulls, s0, s1, s2, s3)
    return drawn


def fits(observed: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> bool:
    """Run a chi-square test at LEVEL; cells with fewer than 20 expected are merged."""
    rare = expected < 20.0
    counts = np.append(observed[~rare], observed[rare].sum())
    means = np.append(expected[~rare], expected[rare].sum())
    kept = means > 0.0
    assert counts[~kept].sum() == 0
    statistic = float(((counts[kept] - means[kept]) ** 2 / means[kept]).sum())
    return bool(stats.chi2.sf(statistic, kept.sum() - 1) > LEVEL)


def normal_cells(drawn: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Count in 400 cells of equal probability and in the tails beyond 3.65, where the ziggurat's lowest layer ends."""
    edges = np.unique(np.concatenate([stats.norm.ppf(np.linspace(0, 1, 401)), [-4.2, -3.66, 3.66, 4.2]]))
    counts, _ = np.histogram(drawn, bins=edges)
    return counts.astype(float), len(drawn) * np.diff(stats.norm.cdf(edges))


@pytest.mark.parametrize("draw", [normals, first_normals])
def test_normal(draw: object) -> None:
    drawn = draw(5, COUNT)  # type: ignore[operator]  # a compiled function
    assert fits(*normal_cells(drawn))
    # Neighbors are uncorrelated: the mean product has standard error 1/sqrt(COUNT); 5 standard errors are p = 6e-7.
    assert abs(np.mean(drawn[1:] * drawn[:-1])) < 5.0 / np.sqrt(COUNT)


def test_the_normal_test_can_fail() -> None:
    drawn = normals(5, COUNT)
    drawn[::500] = 0.0
    assert not fits(*normal_cells(drawn))


def test_uniform() -> None:
    drawn = uniforms(6, COUNT)
    assert drawn.min() > 0.0
    assert drawn.max() < 1.0
    counts, _ = np.histogram(drawn, bins=1000, range=(0, 1))
    assert fits(counts.astype(float), np.full(1000, COUNT / 1000))


def test_generator_is_xoshiro256_plus_plus() -> None:
    """Compare with the published recurrence, written with Python's integers."""

    def rotate(x: int, k: int) -> int:
        return (x << k | x >> (64 - k)) & MASK

    state = [0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x0F1E2D3C4B5A6978, 0x8796A5B4C3D2E1F0]
    drawn = words(*(np.uint64(word) for word in state), 100)
    for index in range(100):
        assert int(drawn[index]) == (rotate((state[0] + state[3]) & MASK, 23) + state[0]) & MASK
        t = (state[1] << 17) & MASK
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= t
        state[3] = rotate(state[3], 45)


@pytest.mark.parametrize(("trials", "chance"), [(1, 0.3), (7, 0.5), (40, 0.1), (40, 0.97), (200, 0.4), (10_000, 0.6)])
def test_binomial(trials: int, chance: float) -> None:
    drawn = binomials(7, trials, chance, 500_000)
    counts = np.bincount(drawn, minlength=trials + 1).astype(float)
    assert fits(counts, 500_000 * stats.binom.pmf(np.arange(trials + 1), trials, chance))


def test_the_binomial_test_can_fail() -> None:
    drawn = binomials(7, 200, 0.4, 500_000)
    counts = np.bincount(drawn, minlength=201).astype(float)
    assert not fits(counts, 500_000 * stats.binom.pmf(np.arange(201), 200, 0.402))


def test_finite_rewards() -> None:
    arms = make_arms(Bandit.drug_leveled())
    assert isinstance(arms, FiniteArms)
    values, probabilities = Bandit.drug_leveled().arms[2].outcomes  # type: ignore[attr-defined]  # these families have finitely many outcomes
    drawn = finite(8, arms, 2, 0, COUNT)
    counts = np.array([(drawn == value).sum() for value in values], dtype=float)
    assert fits(counts, COUNT * np.array(probabilities))
    assert not fits(counts, COUNT * np.array(probabilities)[[0, 1, 3, 2]])


def test_sums_of_finite_rewards() -> None:
    """Compare with the convolution of the law of a single reward, on the lattice of tenths."""
    bandit = Bandit.drug_leveled()
    single = np.zeros(8)
    values, probabilities = bandit.arms[0].outcomes  # type: ignore[attr-defined]  # these families have finitely many outcomes
    for value, probability in zip(values, probabilities, strict=True):
        single[round(10 * value)] = probability
    law = np.ones(1)
    for _ in range(30):
        law = np.convolve(law, single)
    drawn = np.rint(10 * finite(9, make_arms(bandit), 0, 30, 500_000)).astype(int)
    assert fits(np.bincount(drawn, minlength=len(law)).astype(float), 500_000 * law)
