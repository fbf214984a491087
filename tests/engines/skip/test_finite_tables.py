"""The laws of sums of rewards, and the bounds on jumps in which no arm can be dropped."""

import numpy as np
import pytest
from scipy.stats import binom

from dbcare import Bandit
from dbcare.engines.simulate.draws import FiniteArms, make_arms
from dbcare.engines.skip.finite import MAX_VALUES, add_sums, double_law, make_reach
from dbcare.policies import Racing
from dbcare.policies.elimination.elimination import EliminationTables


def finite(bandit: Bandit) -> FiniteArms:
    arms = make_arms(bandit)
    assert isinstance(arms, FiniteArms)
    return arms


def read_law(arms: FiniteArms, arm: int) -> dict[float, float]:
    """Return the probability of each value under Walker's table."""
    law: dict[float, float] = {}
    start, stop = int(arms.first[arm]), int(arms.first[arm + 1])
    for index in range(start, stop):
        for place, share in ((index, arms.stay[index]), (index + arms.alias[index], 1.0 - arms.stay[index])):
            value = round(float(arms.value[place]), 6)
            law[value] = law.get(value, 0.0) + float(share) / (stop - start)
    return {value: mass for value, mass in law.items() if mass > 1e-17}


def test_sums_of_bernoulli_rewards_are_binomial() -> None:
    sums, levels = add_sums(finite(Bandit.bernoulli([0.3, 0.9, 0.0])), 256.0)
    assert levels == 8
    for level in range(levels + 1):
        size = 2**level
        for arm, chance in enumerate((0.3, 0.9, 0.0)):
            law = read_law(sums, 3 * level + arm)
            for count in range(size + 1):
                assert law.get(float(count), 0.0) == pytest.approx(binom.pmf(count, size, chance), abs=1e-14)


@pytest.mark.parametrize(
    "values", [(0.0, 0.2, 0.5, 0.7), (-1.0, 3.0, 10.0), (0.0, 1.0, 0.7071067811865476), (5.0,), (1e6, 1e6 + 1.0)]
)
def test_sums_have_the_law_of_adding_one_reward_at_a_time(values: tuple[float, ...]) -> None:
    probabilities = np.arange(1.0, len(values) + 1) / sum(range(1, len(values) + 1))
    sums, levels = add_sums(finite(Bandit.categorical(values, [tuple(probabilities)] * 2)), 8.0)
    assert levels == 3
    mass_by_counts = {(0,) * len(values): 1.0}  # keys: how often each value was drawn
    for _ in range(8):
        following: dict[tuple[int, ...], float] = {}
        for counts, mass in mass_by_counts.items():
            for index, probability in enumerate(probabilities):
                key = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
                following[key] = following.get(key, 0.0) + mass * float(probability)
        mass_by_counts = following
    law: dict[float, float] = {}
    for counts, mass in mass_by_counts.items():
        total = round(float(np.dot(counts, values)), 6)
        law[total] = law.get(total, 0.0) + mass
    assert read_law(sums, 2 * levels) == pytest.approx(law, abs=1e-14)


def test_tables_stay_small() -> None:
    sums, levels = add_sums(finite(Bandit.drug_leveled()), 1e9)
    assert 2**levels >= 128
    assert np.diff(sums.first).max() <= MAX_VALUES
    generator = np.random.default_rng(1)
    assert double_law((np.sort(generator.random(60)), np.full(60, 1 / 60))) is None
    assert add_sums(finite(Bandit.empirical(generator.random((2, 60)))), 1e9)[1] == 0


def test_the_floor_is_the_lowest_boundary_from_an_epoch_on() -> None:
    generator = np.random.default_rng(2)
    boundary = generator.random(50)
    tables = EliminationTables(boundary, np.array([0, 0, 20, 3]), np.array([0, 0, 29, 12]), 10**6)
    floor = make_reach(tables, finite(Bandit.bernoulli([0.5, 0.5, 0.5]))).floor
    for alive in (2, 3):
        row, last = tables.row[alive], tables.last_epoch[alive]
        for epoch in range(last + 1):
            assert floor[row + epoch] <= boundary[row + epoch : row + last + 1].min()
    assert all(floor[20 + epoch] == boundary[20 + epoch : 50].min() for epoch in range(30))


def test_the_margin_covers_rounding() -> None:
    """Sums of 10^6 rewards, added one by one, are off by less than the margin allows."""
    policy, arms = Racing(3, 0.1, max_pulls=2_000_000), finite(Bandit.categorical((0.0, 0.7), [(0.5, 0.5)] * 3))
    reach = make_reach(policy.tables, arms)
    rewards = np.full(10**6, 0.7)
    assert abs(float(np.cumsum(rewards)[-1]) - 700_000.0) < len(rewards) * reach.margin
    assert reach.margin < 1e-8
    assert (reach.low.tolist(), reach.high.tolist()) == ([0.0] * 3, [0.7] * 3)
