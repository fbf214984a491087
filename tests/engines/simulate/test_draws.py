"""Rewards in blocks have the laws they claim; each test fails by chance with probability below 1e-6."""

import math

import numba
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dbcare.engines.simulate.draws import PHASE, make_arms, start_gaussian_blocks, start_scores
from dbcare.engines.simulate.rng import begun, normal_at, uniform
from dbcare.engines.simulate.simulators import trace
from dbcare.policies.rule import Rule
from dbcare.problem import GaussianBlocks, ScoreTable
from tests.helpers.block_rules import POOL, ROUNDS, WITHOUT_BLOCKS, make_fixed_policy

pytestmark = pytest.mark.statistical

Floats = npt.NDArray[np.float64]

LEVEL = 1e-6
BLOCKS = 40_000
SIGMA = (1.0, 0.5, 2.0)


def draw_rewards(rule: Rule, correlation: float) -> Floats:
    """Return the rewards of one long run, less their means, by arm and block."""
    bandit = GaussianBlocks.of([0.5, 0.0, -1.0], sigma=SIGMA, correlation=correlation)
    run = trace(make_fixed_policy(rule, 3, BLOCKS), make_arms(bandit), 3, 0)
    rewards = np.empty((3, BLOCKS))
    for place, (arm, reward) in enumerate(run.pulls):
        rewards[arm, run.blocks[place] if rule is not WITHOUT_BLOCKS else place // 3] = reward - bandit.means[arm]
    return rewards


def find_correlation_p_value(one: Floats, other: Floats, correlation: float) -> float:
    """Test the correlation of Gaussian pairs by Fisher's transformation, whose error has variance 1/(n - 3)."""
    seen = np.corrcoef(one, other)[0, 1]
    z = (math.atanh(seen) - math.atanh(correlation)) * math.sqrt(len(one) - 3)
    return float(2.0 * stats.norm.sf(abs(z)))


@pytest.mark.parametrize(
    ("rule", "correlation"),
    [(ROUNDS, 0.0), (ROUNDS, 0.5), (ROUNDS, 0.9), (POOL, 0.5)],
    ids=["block by block, 0", "block by block, 0.5", "block by block, 0.9", "arm by arm, 0.5"],
)
def test_means_variances_and_correlations_within_a_block(rule: Rule, correlation: float) -> None:
    rewards = draw_rewards(rule, correlation)
    level = LEVEL / 15  # the number of comparisons below
    for arm, sigma in enumerate(SIGMA):
        assert stats.kstest(rewards[arm] / sigma, "norm").pvalue > level
        mean = stats.norm.sf(abs(rewards[arm].mean()) * math.sqrt(BLOCKS) / sigma)
        assert 2.0 * mean > level
        squares = stats.chi2(BLOCKS).cdf(float(np.sum(rewards[arm] ** 2)) / sigma**2)
        assert level < 2.0 * squares < 2.0 - level
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert find_correlation_p_value(rewards[one], rewards[other], correlation) > level
        # Blocks are independent of each other.
        assert find_correlation_p_value(rewards[one][1:], rewards[other][:-1], 0.0) > level


def test_other_correlations_are_seen() -> None:
    """Negative control: a correlation that is wrong by 0.03, and a rule whose pulls share no blocks."""
    rewards = draw_rewards(ROUNDS, 0.5)
    assert find_correlation_p_value(rewards[0], rewards[1], 0.53) < LEVEL
    apart = draw_rewards(WITHOUT_BLOCKS, 0.5)
    assert find_correlation_p_value(apart[0], apart[1], 0.5) < LEVEL
    assert find_correlation_p_value(apart[0], apart[1], 0.0) > LEVEL


@numba.njit
def normals_at(keys, places):
    drawn = np.empty(len(keys) * len(places))
    for index, key in enumerate(keys):
        for offset, place in enumerate(places):
            drawn[index * len(places) + offset] = normal_at(key, place)
    return drawn


@pytest.mark.parametrize(
    ("keys", "places"),
    [
        (np.array([0.0]), np.arange(400_000)),
        (np.array([2.0**53 - 1]), np.arange(400_000)),
        (np.arange(400_000.0), np.array([0])),
        (np.arange(400.0), np.arange(1_000)),
    ],
    ids=["one key", "the largest key", "one place", "keys and places"],
)
def test_numbers_by_key_and_place_are_normal(keys: Floats, places: npt.NDArray[np.int64]) -> None:
    drawn = normals_at(keys, places)
    level = LEVEL / 4
    assert stats.kstest(drawn, "norm").pvalue > level
    # The tail, which the ziggurat draws in another way.
    beyond = int(np.sum(np.abs(drawn) > 3.7))
    assert stats.binomtest(beyond, len(drawn), 2.0 * stats.norm.sf(3.7)).pvalue > level
    assert find_correlation_p_value(drawn[1:], drawn[:-1], 0.0) > level
    assert find_correlation_p_value(drawn[1:] ** 2, drawn[:-1] ** 2, 0.0) > level
    assert stats.kstest(drawn * 1.03, "norm").pvalue < LEVEL  # negative control


@numba.njit
def phases(arms, work, runs):
    drawn = np.empty(runs)
    for run in range(runs):
        _tie, s0, s1, s2, s3 = begun(8, run)
        start_gaussian_blocks(arms, work, s0, s1, s2, s3)
        drawn[run] = work[PHASE]
    return drawn


def test_phases_are_uniform() -> None:
    drawn = phases(make_arms(GaussianBlocks.of([0.0, 0.0])), np.zeros(4), 200_000)
    assert stats.kstest(drawn, "uniform").pvalue > LEVEL
    assert stats.kstest(drawn**1.05, "uniform").pvalue < LEVEL  # negative control


@numba.njit
def shuffle_wrongly(arms, work, s0, s1, s2, s3):
    """Swap each row with any row, a common mistake: some orders are more likely than others."""
    for place in range(len(arms.score)):
        work[place] = place
    for place in range(len(arms.score)):
        u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
        other = int(u * len(arms.score))
        kept = work[place]
        work[place] = work[other]
        work[other] = kept
    return s0, s1, s2, s3


def count_orders(start, rows: int, runs: int) -> npt.NDArray[np.int64]:
    """Count how often each order of the rows was drawn."""
    arms = make_arms(ScoreTable(np.zeros((rows, 2))))

    @numba.njit
    def draw_orders(arms, work, orders):
        for run in range(len(orders)):
            _tie, s0, s1, s2, s3 = begun(2, run)
            start(arms, work, s0, s1, s2, s3)
            number = 0
            for place in range(len(work)):
                number = number * len(work) + int(work[place])
            orders[run] = number

    orders = np.empty(runs, np.int64)  # the rows as digits of a number
    draw_orders(arms, np.zeros(rows), orders)
    _, counts = np.unique(orders, return_counts=True)
    assert len(counts) == math.factorial(rows)
    return counts


def test_all_orders_of_a_table_are_equally_likely() -> None:
    assert stats.chisquare(count_orders(start_scores, 4, 100_000)).pvalue > LEVEL
    assert stats.chisquare(count_orders(shuffle_wrongly, 4, 100_000)).pvalue < LEVEL  # negative control
