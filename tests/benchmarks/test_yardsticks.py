"""The rivals of `python -m benchmarks best_rivals`, against closed forms, published numbers, and the exact engine."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from benchmarks.parts import yardsticks
from dbcare import Risk, evaluate_grid
from dbcare.policies import TwoArmChickFrazier
from dbcare.policies.literature.chick_frazier import boundary

COST = 1e-3
RISK = Risk.simple_regret(COST)


def test_equal_sizes() -> None:
    """For two arms, Phi(gap sqrt(n/2)); the exact engine agrees; the planner's example has sigma 1/2 and 5 arms."""
    for size, gap in ((0, 0.3), (7, 0.3), (50, 0.1)):
        wrong = 0.5 if size == 0 else stats.norm.sf(gap * math.sqrt(size / 2.0))
        assert yardsticks.equal_size_risk(size, 2, gap, COST) == pytest.approx(
            2.0 * size * COST + gap * wrong, rel=1e-9
        )
        if size:
            limits = yardsticks.PairLimits((math.inf,) * size)
            assert evaluate_grid(limits, [gap]).risk(RISK)[0] == pytest.approx(
                2.0 * size * COST + gap * wrong, rel=1e-6
            )
    for gap, size, loss, of_60 in ((0.01, 0, 160.0, 272.4), (0.05, 65, 699.5, 699.7), (0.2, 92, 231.5, 306.2)):
        in_sigmas, cost = gap / 0.5, 0.40 / 20_000 / 0.5
        assert yardsticks.best_equal_size(5, in_sigmas, cost) == pytest.approx(size, abs=1)
        for each, expected in ((size, loss), (60, of_60)):
            assert 10_000 * yardsticks.equal_size_risk(each, 5, in_sigmas, cost) == pytest.approx(expected, abs=0.5)


def test_test_and_roll() -> None:
    """The website of Feit and Berman (2019): N = 100,000, s^2 = .68 x .32, sigma = .03: 2,284 visitors in each group.

    With a price per trial, the mean loss is that of a numerical integral over the prior, and the size minimizes it.
    """
    assert yardsticks.test_and_roll_size(100_000, math.sqrt(0.68 * 0.32), 0.03) == pytest.approx(2_284, abs=0.5)

    def mean_risk(size: int, spread: float) -> float:
        def at(gap: float) -> float:
            density = 2.0 * stats.norm.pdf(gap, scale=math.sqrt(2.0) * spread)
            return float(density * yardsticks.equal_size_risk(size, 2, gap, COST))

        return integrate.quad(at, 0.0, 12.0 * spread)[0]

    for spread in (0.05, 0.3):
        best = yardsticks.roll_size(spread, COST)
        assert mean_risk(best, spread) <= min(mean_risk(max(0, best + step), spread) for step in (-3, 3)) + 1e-12


def test_expected_loss_thresholds() -> None:
    """At each limit, the expected loss of the leader is the threshold: the integral of the posterior beyond 0."""
    limits = yardsticks.caring_limits(0.01, 2_000).limits
    for pair in (1, 20, 300):
        mean, error = limits[pair - 1] / pair, math.sqrt(2.0 / pair)
        loss = integrate.quad(lambda gap, m=mean, e=error: gap * stats.norm.pdf(gap, -m, e), 0.0, 10.0)[0]
        assert loss == pytest.approx(0.01, rel=1e-6)
    assert len(limits) == 2_000
    assert len(yardsticks.caring_limits(0.1, 2_000).limits) < 40  # here a guess is good enough


def test_group_sequential() -> None:
    """O'Brien and Fleming's five looks: 5% at no gap, two-sided, and 80% power at the gap, both within 0.6 points.

    The exact engine says how often the wrong arm wins; that a limit was passed comes from 200,000 random walks.
    """
    design = yardsticks.group_sequential(0.3)
    pairs = np.flatnonzero(np.isfinite(design.limits))
    assert list(np.diff(pairs, prepend=-1)) == pytest.approx([len(design.limits) / 5.0] * 5, abs=1.0)
    generator = np.random.default_rng(1)
    for gap, chance in ((0.0, 0.05), (0.3, 0.8)):
        steps = np.diff(pairs + 1, prepend=0)
        sums = np.cumsum(generator.normal(gap * steps, np.sqrt(2.0 * steps), (200_000, 5)), axis=1)
        crossed = np.any(np.abs(sums) > np.array(design.limits)[pairs], axis=1)
        assert crossed.mean() == pytest.approx(chance, abs=0.006)


def test_the_optimal_boundary() -> None:
    """Within 4% of Chick and Frazier's approximation, near s^2/4 for small s, and better than it under a flat prior.

    Negative control: limits a quarter higher or lower have a larger mean risk over gaps, which stand for a flat prior.
    """
    s, b = yardsticks.chernoff_petkau()
    for place in (1.0, 2.0, 3.0, 5.0, 10.0, 40.0, 100.0, 400.0):
        found = float(np.interp(place, s, b))
        assert found == pytest.approx(boundary(place), rel=0.06 if place == 1.0 else 0.04)
    assert float(np.interp(1.0, s, b)) == pytest.approx(0.25 * (1.0 - 1.0 / 12.0 + 7.0 / 240.0), rel=0.05)
    gaps = list(map(float, np.linspace(0.01, 1.5, 60)))

    def total(policy: object) -> float:
        return float(np.sum(evaluate_grid(policy, gaps).risk(RISK)))  # type: ignore[arg-type]

    optimal = yardsticks.optimal_limits(COST)
    assert total(optimal) <= 1.002 * total(TwoArmChickFrazier(RISK))
    for factor in (0.75, 1.25):
        other = yardsticks.PairLimits(tuple(factor * limit for limit in optimal.limits))
        assert total(other) > 1.001 * total(optimal)
