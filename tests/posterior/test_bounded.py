"""Intervals of bounded means that hold however often one looks: against confseq, at their edges, and their coverage."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dbcare.posterior import AlwaysValid
from dbcare.posterior.bounded import bound_deviations, bound_rates, log_mean_wealth, log_rate_wealth

ALPHA = 0.025  # of one of two arms
X = -2.0 * math.log(ALPHA)


@pytest.mark.parametrize(
    ("variation", "optimum", "bound"),
    [
        (0.3, 2, 6.010661973),
        (0.3, 50, 9.292780965),
        (3, 2, 10.38904303),
        (3, 50, 11.04359891),
        (25, 2, 23.31668895),
        (25, 50, 20.10265751),
        (400, 2, 86.5302595),
        (400, 50, 73.70516005),
    ],
)
def test_empirical_bernstein_bounds_are_those_of_confseq(variation: float, optimum: float, bound: float) -> None:
    """`gamma_exponential_mixture_bound(v, 0.0125, v_opt, c=1, alpha_opt=0.0125)` of confseq 0.0.11 (commit 70b1ef3)."""
    rho = optimum / (X + math.log1p(X))
    assert log_mean_wealth(bound, variation, rho) == pytest.approx(math.log(2.0 / ALPHA), abs=1e-6)
    counts = 10_000.0
    assert counts * bound_deviations(variation - 0.25, counts, rho, ALPHA) == pytest.approx(bound, rel=1e-8)


@pytest.mark.parametrize(
    ("rate", "count", "ones", "logarithm"),
    [
        (0.01, 50, 2, -0.007134863134),
        (0.01, 1_000, 14, -0.7478945109),
        (0.01, 20_000, 261, 5.692688531),
        (0.04, 50, 3, None),
        (0.04, 50, 4, -0.03178775795),
        (0.04, 1_000, 53, 0.507474237),
        (0.04, 20_000, 1_041, 31.69956666),
        (0.5, 50, 34, 0.8629845895),
        (0.5, 1_000, 651, 40.68514671),
        (0.5, 20_000, 13_001, 907.1516842),
    ],
)
def test_wealth_of_bets_on_rates_is_that_of_confseq(
    rate: float, count: int, ones: int, logarithm: float | None
) -> None:
    """`beta_binomial_log_mixture(s - m n, m (1 - m) n, m (1 - m) 1000, m, 1 - m, 0.025, false)` of the same.

    Its r is ours minus 1. None: negative control, another number of ones.
    """
    found = log_rate_wealth(float(ones), count, rate, 1_000.0 / (X + math.log1p(X)) - 1.0)
    if logarithm is None:
        assert found != pytest.approx(-0.03178775795, rel=1e-3)
    else:
        assert found == pytest.approx(logarithm, rel=1e-7)


def test_wealth_is_fair() -> None:
    """Its mean over all sequences is exactly 1 for rates, and at most 1 for means, whatever the law of a reward."""
    counts, rate, r, rho = 12, 0.3, 4.0, 1.5
    ones = np.arange(counts + 1.0)
    chances = stats.binom.pmf(ones, counts, rate)
    assert chances @ np.exp(log_rate_wealth(ones, counts, rate, r)) == pytest.approx(1.0, rel=1e-12)
    assert chances @ np.exp(log_rate_wealth(ones, counts, 0.35, r)) > 1.01  # negative control: another rate is refuted
    values, chances = np.array([0.0, 0.1, 1.0]), np.array([0.5, 0.4, 0.1])
    mean = float(values @ chances)
    paths = np.stack(np.meshgrid(*[np.arange(3)] * 7, indexing="ij"), axis=-1).reshape(-1, 7)
    rewards, weights = values[paths], chances[paths].prod(axis=1)
    before = np.cumsum(rewards, axis=1)[:, :-1] / np.arange(1.0, 7.0)
    variation = (rewards[:, 0] - 0.5) ** 2 + ((rewards[:, 1:] - before) ** 2).sum(axis=1)
    bets = (np.arange(4_000) + 0.5) / 4_000  # of the mixture: 1 - b has the density u^(rho - 1) exp(-rho u) up to 1
    law = (1.0 - bets) ** (rho - 1.0) * np.exp(-rho * (1.0 - bets))
    law /= law.sum()

    def mix(sums: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(np.outer(sums, bets) + np.outer(variation, np.log1p(-bets) + bets)) @ law)

    for sign in (1.0, -1.0):
        sums = sign * (rewards - mean).sum(axis=1)
        wealth = mix(sums)
        assert 0.3 < weights @ wealth <= 1.0
        assert np.exp(log_mean_wealth(sums[sums > 0.0], variation[sums > 0.0], rho)) == pytest.approx(
            wealth[sums > 0.0], rel=1e-5
        )
    assert weights @ mix((rewards - mean + 0.2).sum(axis=1)) > 1.0  # negative control


def test_edges() -> None:
    """No data, only zeros, only ones, tiny and huge constants: intervals are within the range, and finite."""
    for r in (0.0, 1e-3, 50.0, 1e30):
        low, high = bound_rates([0.0, 5.0, 1.0, 1e6], [5.0, 5.0, 1.0, 1e6], r, ALPHA).T
        assert np.all((low >= 0.0) & (high <= 1.0) & (low <= high))
        assert low[0] == 0.0
        assert high[1] == high[3] == 1.0
        found = bound_deviations([0.0, math.inf, 0.0], [1.0, 10.0, 1e6], r, ALPHA)
        assert np.all((found > 0.0) & (found <= 1.0))
    low, high = bound_rates(40.0, 1_000.0, 150.0, ALPHA)
    refuted = [log_rate_wealth(40.0, 1_000.0, end, 150.0) for end in (low, high)]
    assert refuted == pytest.approx([-math.log(ALPHA)] * 2, abs=1e-6)
    # As wide as the Gaussian interval with the true spread, 2% at most apart from it.
    assert (high - low) / 2.0 == pytest.approx(
        AlwaysValid(ALPHA, 150.0 * (X + math.log1p(X))).margin(0.196, 1_000), rel=0.02
    )


Draw = Callable[[np.random.Generator, int], np.ndarray]
SHAPES: dict[str, tuple[Draw, float]] = {
    "rate 1%": (lambda generator, size: (generator.random(size) < 0.01).astype(float), 0.01),
    "rate 4%": (lambda generator, size: (generator.random(size) < 0.04).astype(float), 0.04),
    "rate 50%": (lambda generator, size: (generator.random(size) < 0.5).astype(float), 0.5),
    "skewed": (lambda generator, size: generator.beta(0.2, 3.8, size), 0.05),
    "two points": (lambda generator, size: generator.choice([0.2, 0.9], size, p=[0.95, 0.05]), 0.235),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_coverage_at_every_look(shape: str) -> None:
    """Of 2,000 arms looked at after each of 1,000 rewards, at least 97.5% are covered throughout.

    Fewer than 1,913 then have a chance below 1e-6 (binomial). Negative control: of the usual intervals, with the true
    spread, fewer than three quarters are right throughout.
    """
    arms, looks = 2_000, 1_000
    assert stats.binom.cdf(1_912, arms, 1.0 - ALPHA) < 1e-6
    draw, mean = SHAPES[shape]
    rewards = draw(np.random.default_rng(3), arms * looks).reshape(arms, looks)
    counts, sums = np.arange(1.0, looks + 1.0), np.cumsum(rewards, axis=1)
    if shape.startswith("rate"):
        refuted = log_rate_wealth(sums, counts, mean, 40.0) >= -math.log(ALPHA)
    else:
        before = sums[:, :-1] / counts[:-1]
        variation = 0.25 + np.cumsum((rewards[:, 1:] - before) ** 2, axis=1)
        variation = np.concatenate((np.full((arms, 1), 0.25), variation), axis=1)
        away = np.abs(sums - counts * mean)
        refuted = log_mean_wealth(away, variation, 0.6) >= -math.log(ALPHA / 2.0)
    assert np.sum(~refuted.any(axis=1)) >= 1_913
    usual = np.abs(sums / counts - mean) <= 1.96 * rewards.std() / np.sqrt(counts)
    assert np.sum(usual.all(axis=1)) < 0.75 * arms
