"""The bounds for BreakevenRacing: integrals by a second quadrature, known values, and exact risks below them."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from dbcare import BreakevenRacing, Loss, Risk, evaluate, evaluate_grid
from dbcare.errors import InvalidValueError
from dbcare.problem.bandits import Bandit
from dbcare.theory import breakeven, lower, upper

ERROR, REGRET = Loss.MISIDENTIFICATION, Loss.SIMPLE_REGRET


def excess(z: float) -> float:
    return float(norm.pdf(z) - z * norm.sf(z))


def by_theta(loss: Loss, hardness: float) -> tuple[float, float]:
    """Compute J and T as in the theorem: integrals over theta, with the boundary found by root finding at each."""
    if loss is ERROR:
        last = math.sqrt(1.0 / (math.e * hardness))

        def boundary(theta: float) -> float:
            return float(norm.isf(hardness * theta**2))

        def crossing(theta: float) -> float:
            z = boundary(theta)
            return (z * norm.pdf(z) / norm.sf(z) + 2.0) * theta * math.exp(-z * theta - theta**2 / 2.0)
    else:
        last = (excess(0.0) / hardness) ** (1.0 / 3.0)

        def boundary(theta: float) -> float:
            return float(brentq(lambda z: excess(z) - hardness * theta**3, 0.0, 30.0, xtol=1e-13))

        def crossing(theta: float) -> float:
            z = boundary(theta)
            residual = excess(z) / norm.sf(z)
            weight = (z + 3.0 * residual) * norm.pdf(z) / excess(z)
            return weight * theta**2 * math.exp(-z * theta - theta**2 / 2.0)

    def sampling(theta: float) -> float:
        return float(2.0 * theta * norm.cdf(boundary(theta) - theta))

    whole = partial(quad, limit=400, epsabs=1e-9, epsrel=1e-8)
    start, end = 1e-4, last * (1.0 - 1e-12)
    return whole(crossing, start, end)[0], whole(sampling, start, end)[0]


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("hardness", [1e-3, 0.05, 0.8])
def test_integrals_against_a_second_quadrature(loss: Loss, hardness: float) -> None:
    integrals = [float(integral) for integral in breakeven.integrals(loss, hardness)]
    assert integrals == pytest.approx(by_theta(loss, hardness), rel=1e-4)  # the second one leaves out theta < 1e-4


def test_known_values() -> None:
    """c = 1e-4, sigma = 1, gap 0.2: J = 1.219, T = 3.890, bound 0.0513; the suprema are 1.44 and 3.11."""
    crossing, sampling = breakeven.integrals(ERROR, 0.01)
    assert float(crossing) == pytest.approx(1.219, abs=5e-4)
    assert float(sampling) == pytest.approx(3.890, abs=5e-4)
    assert float(breakeven.two_arm_integral(ERROR, 0.2, 1e-4)) == pytest.approx(0.0513, abs=5e-5)
    hardness = np.geomspace(1e-10, 100.0, 400)
    assert 1.43 < float(breakeven.integrals(ERROR, hardness)[0].max()) <= 1.44
    assert 3.10 < float(breakeven.integrals(REGRET, hardness)[0].max()) <= 3.11
    # 1.635 (sigma^2 c)^(1/3) is 6.09 times the minimax lower bound.
    ratio = (breakeven.two_arm_minimax(1e-4) - 2e-4) / lower.simple_regret_minimax(2, 1e-4)
    assert 6.08 < float(ratio) <= 6.09


@pytest.mark.parametrize("cost", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("loss", Loss)
def test_exact_risks_lie_below_both_bounds(loss: Loss, cost: float) -> None:
    """Check 26 gaps from a tenth of the critical scale to 6, for two sigmas."""
    risk = Risk(loss, cost)
    for sigma in (1.0, 0.5):
        critical = sigma * math.sqrt(cost) if loss is ERROR else (sigma**2 * cost) ** (1 / 3)
        gaps = np.geomspace(0.1 * critical, 6.0, 26)
        exact = evaluate_grid(BreakevenRacing(risk, 2, sigma), gaps, sigma=sigma).risk(risk)
        sharp, plain = (bound(loss, gaps, cost, sigma) for bound in (breakeven.two_arm_integral, breakeven.two_arm))
        assert np.all(exact <= sharp)
        assert np.all(exact <= plain)
        if loss is REGRET:
            assert exact.max() <= breakeven.two_arm_minimax(cost, sigma)
        assert np.any(exact > 0.5 * sharp)  # the bound is not loose: half of it would fail


def test_there_is_no_logarithmic_factor() -> None:
    """At the smallest costs the bound stays 32 times the lower bound, while DBCARE's grows."""
    for cost in (1e-4, 1e-8):
        ours, theirs = breakeven.two_arm(ERROR, 1.0, cost), upper.two_arm(ERROR, 1.0, cost)
        lower_bound = lower.two_arm(ERROR, 1.0, cost)
        assert float((ours - 2.0 * cost) / lower_bound) == pytest.approx(32.0)
        assert float(theirs / ours) > 60.0


@pytest.mark.parametrize("arms", [3, 8])
def test_risks_for_many_arms_lie_below_their_bounds(arms: int) -> None:
    cost = 1e-3
    for gap in (0.1, 0.5, 1.5):
        bandit = Bandit.one_sparse(arms, gap)
        error_risk = evaluate(BreakevenRacing(Risk.misidentification(cost), arms), bandit, runs=4_000, seed=1)
        assert error_risk.risk < breakeven.misidentification(bandit.complexity, arms, cost)
        regret_risk = evaluate(BreakevenRacing(Risk.simple_regret(cost), arms), bandit, runs=4_000, seed=1)
        assert regret_risk.risk < breakeven.simple_regret_minimax(arms, cost)


def test_bounds_for_many_arms_against_hand_arithmetic() -> None:
    """K = 3, H = 50, c = 1e-3: lower = 0.05/4 ln(e/0.05) = 0.0499466; 119 (1 + ln 2) lower + (1+e) 0.003."""
    least = 0.05 / 4.0 * math.log(math.e / 0.05)
    expected = 119.0 * (1.0 + math.log(2.0)) * least + (1.0 + math.e) * 0.003
    assert float(breakeven.misidentification(50.0, 3, 1e-3)) == pytest.approx(expected)
    assert float(breakeven.misidentification(2000.0, 3, 1e-3)) == pytest.approx(5.48 / 4.0 + 0.003)
    expected = (14.0 + 6.0 * math.log(3.0)) * (2e-3) ** (1 / 3) + 0.003
    assert float(breakeven.simple_regret_minimax(3, 1e-3)) == pytest.approx(expected)
    with pytest.raises(InvalidValueError, match=r"`cost` times `arms` must be at most 0\.13 but got 0\.2"):
        breakeven.misidentification(10.0, 20, 0.01)


@pytest.mark.parametrize("loss", Loss)
def test_a_loss_may_be_named(loss: Loss) -> None:
    named: Any = str(loss)
    assert breakeven.two_arm_integral(named, 0.1, 1e-4) == breakeven.two_arm_integral(loss, 0.1, 1e-4)
