"""Lower and upper bounds against minimization of the proofs' expressions, hand arithmetic and exact risks."""

import math
from collections.abc import Callable
from math import cbrt, e, erfc, exp, log, sqrt
from typing import Any

import numpy as np
import pytest

from dbcare.errors import InvalidValueError
from dbcare.problem.risk import Loss
from dbcare.theory import budgets, lower, upper

MI, SR = Loss.MISIDENTIFICATION, Loss.SIMPLE_REGRET
INF = math.inf
GAPS = np.geomspace(1e-3, 3.0, 200)


def smallest(function: Callable[[float], float], high: float) -> float:
    """Find the minimum of a convex function on [0, high] by ternary search."""
    low = 0.0
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if function(left) <= function(right) else (left, high)
    return function(low)


def proof_of_lower_bound(worst: float, complexity: float, cost: float, sigma: float) -> float:
    """Minimize the last display in the proofs of Theorems 1 and 3 over the expected number of pulls."""
    scale = sigma**2 * complexity / 2
    return smallest(lambda pulls: worst / 4 * exp(-pulls / scale) + cost * pulls / 2, 100 * scale)


@pytest.mark.parametrize("sigma", [1.0, 0.5])
@pytest.mark.parametrize("times", [1e-3, 0.2, 0.999, 1.001, 5.0, 1e3])
def test_lower_bounds_are_the_minima_in_the_proofs(times: float, sigma: float) -> None:
    # `times` is the complexity in units of its value at the transition.
    cost, gap = 1e-3, 0.3
    for complexity in (times / (sigma**2 * cost), times * gap / (sigma**2 * cost)):
        assert lower.misidentification(complexity, cost, sigma) == pytest.approx(
            proof_of_lower_bound(1.0, complexity, cost, sigma), rel=1e-9
        )
        assert lower.simple_regret(complexity, gap, cost, sigma) == pytest.approx(
            proof_of_lower_bound(gap, complexity, cost, sigma), rel=1e-9
        )


@pytest.mark.parametrize(("arms", "cost", "sigma"), [(2, 1e-4, 1.0), (2, 1e-3, 0.5), (8, 1e-4, 1.0)])
def test_the_minimax_lower_bound_is_the_largest_over_equal_gaps(arms: int, cost: float, sigma: float) -> None:
    scale = cbrt((arms - 1) * sigma**2 * cost)
    gaps = np.linspace(scale, 1.5 * scale, 301)
    largest = max(proof_of_lower_bound(gap, (arms - 1) / gap**2, cost, sigma) for gap in gaps)
    assert lower.simple_regret_minimax(arms, cost, sigma) == pytest.approx(largest, rel=1e-5)


# Two arms, cost 1e-4: sigma^2 c = 1e-4 (sigma 1) or 2.5e-5 (sigma 1/2).
MI_LOG = log((e + 1) / (e * 1e-4) ** 2)
SR_BUDGET = 1.5 / e * 1e4 ** (2 / 3)
SR_LOG = log(2 * SR_BUDGET * (1 + 2e-4 * SR_BUDGET) / 1e-4)
SR_BUDGET_HALF = 1.5 / e * 5e3 ** (2 / 3)
SR_LOG_HALF = log(2 * SR_BUDGET_HALF * (3 + 2e-4 * SR_BUDGET_HALF) / 1e-4)


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (lambda: lower.misidentification(100, 1e-4), 1e-2 / 4 * log(e / 1e-2)),
        (lambda: lower.misidentification(2000, 1e-3, 0.5), 0.5 / 4 * log(e / 0.5)),
        (lambda: lower.misidentification(INF, 1e-4), 0.25),
        (lambda: lower.simple_regret(100, 0.2, 1e-4), 1e-2 / 4 * log(e * 0.2 / 1e-2)),
        (lambda: lower.simple_regret(100, 0.2, 1e-2, 0.5), 0.2 / 4),
        (lambda: lower.simple_regret(INF, 0.0, 1e-4), 0.0),
        (lambda: lower.simple_regret_minimax(2, 1e-4), 3 / 8 * (1e-4 / e) ** (1 / 3)),
        (lambda: lower.simple_regret_minimax(9, 1e-3, 0.5), 3 / 8 * (8 * 0.25e-3 / e) ** (1 / 3)),
        (lambda: lower.simple_regret_minimax(28, e * 1e-3), 3 / 8 * 3 * 0.1),
        (lambda: lower.two_arm(MI, 0.1, 1e-4), 1e-4 / 0.04 * log(e * 100)),
        (lambda: lower.two_arm(MI, 0.1, 1e-4, 0.5), 2.5e-5 / 0.04 * log(e * 400)),
        (lambda: lower.two_arm(MI, 0.009, 1e-4), 0.25),
        (lambda: lower.two_arm(MI, 0.0, 1e-4), 0.25),
        (lambda: lower.two_arm(SR, 0.1, 1e-4), 1e-4 / 0.04 * log(e * 10)),
        (lambda: lower.two_arm(SR, 0.1, 1e-4, 0.5), 2.5e-5 / 0.04 * log(e * 40)),
        (lambda: lower.two_arm(SR, 0.04, 1e-4), 0.01),
        (lambda: lower.two_arm(SR, 0.0, 1e-4), 0.0),
        (lambda: upper.oracle(MI, 0.1, 1e-4), 8e-4 / 0.01 * log(e * 100) + 2e-4),
        (lambda: upper.oracle(MI, 0.1, 1e-4, 0.5), 2e-4 / 0.01 * log(e * 400) + 2e-4),
        (lambda: upper.oracle(MI, 0.009, 1e-4), 8 + 2e-4),
        (lambda: upper.oracle(SR, 0.1, 1e-4), 8e-4 / 0.01 * log(e * 10) + 2e-4),
        (lambda: upper.oracle(SR, 0.1, 1e-4, 0.5), 2e-4 / 0.01 * log(e * 40) + 2e-4),
        (lambda: upper.oracle(SR, 0.04, 1e-4), 8 * 0.04 + 2e-4),
        (lambda: upper.oracle_curve(MI, 0.1, 1e-4), 8e-4 / 0.01 * log(e * 100 / 8) + 2e-4),
        (lambda: upper.oracle_curve(MI, 0.1, 1e-4, 0.5), 2e-4 / 0.01 * log(e * 400 / 8) + 2e-4),
        (lambda: upper.oracle_curve(MI, 0.02, 1e-4), 0.5),
        (lambda: upper.oracle_curve(MI, 0.0, 1e-4), 0.5),
        (lambda: upper.oracle_curve(SR, 0.2, 1e-4), 8e-4 / 0.04 * log(e * 80 / 8) + 2e-4),
        (lambda: upper.oracle_curve(SR, 0.2, 1e-4, 0.5), 2e-4 / 0.04 * log(e * 320 / 8) + 2e-4),
        (lambda: upper.oracle_curve(SR, 0.08, 1e-4), 0.04),
        (lambda: upper.oracle_curve(SR, 0.0, 1e-4), 0.0),
        (lambda: upper.oracle_minimax(1e-4), 3 * (1e-4 / e) ** (1 / 3) + 2e-4),
        (lambda: upper.oracle_minimax(1e-3, 0.5), 3 * (0.25e-3 / e) ** (1 / 3) + 2e-3),
        (lambda: upper.oracle_minimax(e * 1e-3), 3 * 0.1 + 2e-3 * e),
        (lambda: upper.two_arm(MI, 0.1, 1e-4), 128 * MI_LOG * 1e-4 / 0.04 * log(e * 100) + 3e-4),
        (lambda: upper.two_arm(MI, 0.1, 1e-4, 0.5), 128 * MI_LOG * 2.5e-5 / 0.04 * log(e * 400) + 3e-4),
        (lambda: upper.two_arm(MI, 0.009, 1e-4), 32 * MI_LOG + 3e-4),
        (lambda: upper.two_arm(MI, 0.1, 0.7), 32 * log((e + 1) / (0.7 * e) ** 2) + 2.1),
        (
            lambda: upper.two_arm(SR, 0.1, 1e-4),
            128 * log(3 * 1e4 ** (5 / 3)) * 1e-4 / 0.04 * log(e * 10) + 3e-4,
        ),
        (
            lambda: upper.two_arm(SR, 0.1, 1e-4, 0.5, bound=3.0),
            128 * log(9 * 0.5 ** (4 / 3) * 1e4 ** (5 / 3)) * 2.5e-5 / 0.04 * log(e * 40) + 3e-4,
        ),
        (lambda: upper.two_arm(SR, 0.04, 1e-4), 0.04 + 2 * 1e-4 ** (1 / 3) + 3e-4),
        (lambda: upper.two_arm(SR, 0.02, 1e-4, 0.5), 0.02 + 2 * 2.5e-5 ** (1 / 3) + 3e-4),
        (lambda: upper.two_arm_minimax(1e-4), 27 / 8 * (1e-4 / e) ** (1 / 3) + 3e-4),
        (lambda: upper.two_arm_minimax(1e-3, 0.5), 27 / 8 * (0.25e-3 / e) ** (1 / 3) + 3e-3),
        (lambda: upper.two_arm_minimax(e * 1e-3), 27 / 80 + 3e-3 * e),
        (lambda: upper.transition_gap(MI, 1e-4), sqrt(32 * e * 1e-4 * MI_LOG)),
        (lambda: upper.transition_gap(MI, 1e-4, 0.5), sqrt(32 * e * 2.5e-5 * MI_LOG)),
        (
            lambda: upper.transition_gap(MI, 1e-2, bound=9.0),
            sqrt(32 * e * 1e-2 * log((e + 1) / (e * 1e-2) ** 2)),
        ),
        (lambda: upper.transition_gap(SR, 1e-4), 1e-4 ** (1 / 3) * sqrt(32 * e / 3 * SR_LOG)),
        (
            lambda: upper.transition_gap(SR, 1e-4, 0.5, bound=3.0),
            2.5e-5 ** (1 / 3) * sqrt(32 * e / 3 * SR_LOG_HALF),
        ),
        (
            lambda: upper.transition_gap(SR, 1e-3, 8.0, bound=2.0),  # N* = (3/2e) * 400
            0.4 * sqrt(32 * e / 3 * log(1200 / e * (2 + 1.2 / e) / 1e-3)),
        ),
        (lambda: upper.two_arm_curve(MI, 0.0, 1e-4), 1 + 1 / e + 3e-4),
        (lambda: upper.two_arm_curve(MI, 0.05, 1e-4), exp(-0.0025 / (8e-4 * e)) + 1 / e + 3e-4),
        (lambda: upper.two_arm_curve(MI, 0.1, 1e-4, 0.5), exp(-0.01 / (2e-4 * e)) + 1 / e + 3e-4),
        (lambda: upper.two_arm_curve(MI, 0.5, 1e-4), 32e-4 * MI_LOG / 0.25 + 3e-4),
        (lambda: upper.two_arm_curve(MI, 0.5, 1e-4, 0.5), 8e-4 * MI_LOG / 0.25 + 3e-4),
        (lambda: upper.two_arm_curve(SR, 0.0, 1e-4), 3 / e * 1e-4 ** (1 / 3) + 3e-4),
        (
            lambda: upper.two_arm_curve(SR, 0.1, 1e-4),
            0.1 * exp(-0.03 / (8 * e * 1e-4 ** (2 / 3))) + 3 / e * 1e-4 ** (1 / 3) + 3e-4,
        ),
        (
            lambda: upper.two_arm_curve(SR, 0.1, 1e-4, 0.5, bound=3.0),
            0.1 * exp(-0.03 / (8 * e * 2.5e-5 ** (2 / 3))) + 3 / e * 2.5e-5 ** (1 / 3) + 3e-4,
        ),
        (lambda: upper.two_arm_curve(SR, 2.0, 1e-4), 32e-4 * SR_LOG / 4 + 3e-4),
        (lambda: upper.two_arm_curve(SR, 1.0, 1e-4, 0.5, bound=3.0), 8e-4 * SR_LOG_HALF + 3e-4),
        (
            lambda: upper.misidentification(100, 8, 1e-4),
            760 * log(8) * log(8 * log(8) / (e * 1e-8)) * 1e-2 / 4 * log(e / 1e-2) + 9e-4,
        ),
        (
            lambda: upper.misidentification(2000, 3, 1e-3, 0.5),
            760 * log(3) * log(3 * log(3) / (e * 1e-6)) * 0.5 / 4 * log(e / 0.5) + 4e-3,
        ),
        (lambda: upper.misidentification(INF, 2, 1e-4), 190 * log(2) * log(2 * log(2) / (e * 1e-8)) + 3e-4),
        (
            lambda: upper.simple_regret(100, 0.2, 8, 1e-4),
            550 * log(8) * log(8 * log(8) * 1e4 ** (5 / 3)) * 1e-2 / 4 * log(e * 20) + 9e-4,
        ),
        (
            lambda: upper.simple_regret(400, 0.2, 3, 1e-3, 0.5, bound=3.0),
            550 * log(3) * log(9 * log(3) * 0.5 ** (4 / 3) * 1e3 ** (5 / 3)) * 0.1 / 4 * log(e * 2) + 4e-3,
        ),
        (lambda: upper.simple_regret(1e4, 0.2, 8, 1e-4), 0.05 + 4 * log(8) * 8e-4 ** (1 / 3) + 9e-4),
        (lambda: upper.simple_regret(1e3, 0.2, 3, 1e-3, 0.5), 0.05 + 4 * log(3) * 0.75e-3 ** (1 / 3) + 4e-3),
        (lambda: upper.simple_regret(INF, 0.0, 3, 1e-3, 0.5), 4 * log(3) * 0.75e-3 ** (1 / 3) + 4e-3),
        (lambda: upper.simple_regret_minimax(8, 1e-4), 7.5 * log(8) * (7e-4 / e) ** (1 / 3) + 9e-4),
        (lambda: upper.simple_regret_minimax(3, 1e-3, 0.5), 7.5 * log(3) * (0.5e-3 / e) ** (1 / 3) + 4e-3),
        (lambda: upper.simple_regret_minimax(2, e * 1e-3), 0.75 * log(2) + 3e-3 * e),
        (lambda: upper.guess(MI, [0.0, 0.1, 0.3, 0.4]), 3 / 4),
        (lambda: upper.guess(MI, [0.2, 0.0, 0.0]), 1 / 3),  # a tie is not an error
        (lambda: upper.guess(SR, [0.3, 0.0, 0.1, 0.4]), 0.2),
        (lambda: upper.two_arm_guess(MI, 0.3), 1 / 2),
        (lambda: upper.two_arm_guess(MI, 0.0), 0.0),
        (lambda: upper.two_arm_guess(SR, 0.3), 0.15),
    ],
)
def test_bounds_against_hand_arithmetic(bound: Callable[[], Any], expected: float) -> None:
    assert bound() == pytest.approx(expected, rel=1e-12, abs=0.0)


def sides(function: Callable[[float], Any], point: float) -> tuple[float, float]:
    return float(function(point * (1 - 1e-9))), float(function(point * (1 + 1e-9)))


@pytest.mark.parametrize(("loss", "transition"), [(MI, sqrt(4e-4)), (SR, cbrt(4e-4))])
def test_lower_bounds_are_continuous(loss: Loss, transition: float) -> None:
    below, above = sides(lambda gap: lower.two_arm(loss, gap, 1e-4, 2.0), transition)
    assert below == pytest.approx(above, rel=1e-8)


@pytest.mark.parametrize("loss", [MI, SR])
@pytest.mark.parametrize("cost", [1e-4, 0.2])
def test_the_curve_is_nearly_continuous_at_the_transition(loss: Loss, cost: float) -> None:
    # It falls by w * (delta / 2 N*)^4, which is visible at a cost of 0.2.
    transition = float(upper.transition_gap(loss, cost))
    before, after = sides(lambda gap: upper.two_arm_curve(loss, gap, cost), transition)
    ratio = 2 * budgets.epoch_budget(loss, 2, cost) / budgets.confidence(loss, 2, cost)
    fall = (1 if loss is MI else transition) * ratio**-4
    assert before - after == pytest.approx(fall, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize(
    ("bound", "point", "expected"),
    [
        # Simple regret at Delta = cbrt(sigma^2 c) = 0.1 = s, where the lower bound is s/4: two arms, then K.
        (
            lambda gap: upper.two_arm(SR, gap, 1e-3),
            0.1,
            0.1 + 0.2 - 32 * log(3e5) * 0.1,
        ),
        (
            lambda complexity: upper.simple_regret(complexity, 0.1, 4, 1e-3),
            100.0,
            550 / 4 * log(4) * log(4 * log(4) * 1e5) * 0.1 - 0.1 / 4 - 4 * log(4) * 4 ** (1 / 3) * 0.1,
        ),
    ],
)
def test_simple_regret_bounds_jump_at_the_transition(
    bound: Callable[[float], Any], point: float, expected: float
) -> None:
    before, after = sides(bound, point)
    assert before - after == pytest.approx(expected, rel=1e-6)
    assert abs(expected) > 30


@pytest.mark.parametrize("sigma", [1.0, 0.5])
@pytest.mark.parametrize("loss", [MI, SR])
def test_the_exact_risk_of_the_oracle_lies_between_its_bounds(loss: Loss, sigma: float) -> None:
    for gap in GAPS:
        pulls = budgets.oracle_pulls(loss, gap, 1e-4, sigma)
        error = erfc(gap * sqrt(pulls) / (2 * sigma)) / 2  # difference of means: variance 2 sigma^2 / pulls
        risk = error * (1 if loss is MI else gap) + 2e-4 * pulls
        curve = float(upper.oracle_curve(loss, gap, 1e-4, sigma))
        assert lower.two_arm(loss, gap, 1e-4, sigma) <= risk <= curve <= upper.oracle(loss, gap, 1e-4, sigma)
        assert (risk == curve) == (pulls == 0)  # a guess has exactly this risk
        if loss is SR:
            assert risk <= upper.oracle_minimax(1e-4, sigma)
            assert curve <= upper.oracle_minimax(1e-4, sigma)


@pytest.mark.parametrize(
    ("loss", "gap", "risk"),
    [
        (MI, 0.05, 0.368899),
        (MI, 0.1, 0.303973),
        (MI, 0.3, 0.0333405),
        (SR, 0.05, 0.0416045),
        (SR, 0.1, 0.0359654),
        (SR, 0.3, 0.0276382),
    ],
)
def test_the_exact_risk_of_dbcare_is_below_its_bounds(loss: Loss, gap: float, risk: float) -> None:
    # Bernoulli means 1/2 +- gap/2; the risks were computed by dynamic programming.
    assert risk <= upper.two_arm_curve(loss, gap, 1e-4, 0.5) <= upper.two_arm(loss, gap, 1e-4, 0.5)
    if loss is SR:
        assert risk <= upper.two_arm_minimax(1e-4, 0.5)


@pytest.mark.parametrize("cost", [1e-2, 1e-4, 1e-6])
def test_the_curve_implies_the_corollaries(cost: float) -> None:
    for loss in Loss:
        assert np.all(upper.two_arm_curve(loss, GAPS, cost) <= upper.two_arm(loss, GAPS, cost))
    peak = np.max(upper.two_arm_curve(SR, cbrt(cost) * np.linspace(1, 3, 2001), cost))
    assert peak == pytest.approx((sqrt(4 / 3) + 3 / e) * cbrt(cost) + 3 * cost, rel=1e-6)
    assert peak <= upper.two_arm_minimax(cost)


GRID = [0.0, 1e-3, 0.02, 0.3, 2.5]
COSTS = [1e-2, 1e-4]
BY_GAP = (lower.two_arm, upper.oracle, upper.oracle_curve, upper.two_arm, upper.two_arm_curve)


@pytest.mark.parametrize(
    "function",
    [
        *(lambda x, c, f=f, loss=loss: f(loss, x, c) for loss in Loss for f in BY_GAP),
        *(lambda x, c, loss=loss: upper.transition_gap(loss, c, x + 1.0) for loss in Loss),
        lambda x, c: lower.misidentification(x * 1e3 + 1.0, c),
        lambda x, c: lower.simple_regret(x * 1e3 + 1.0, x, c),
        lambda x, c: lower.simple_regret_minimax(2, c, x + 1.0),
        lambda x, c: upper.misidentification(x * 1e3 + 1.0, 3, c),
        lambda x, c: upper.simple_regret(x * 1e3 + 1.0, x, 3, c),
        lambda x, c: upper.simple_regret_minimax(3, c, x + 1.0),
        lambda x, c: upper.oracle_minimax(c, x + 1.0),
        lambda x, c: upper.two_arm_minimax(c, x + 1.0),
    ],
)
def test_arrays_agree_with_scalars(function: Callable[[Any, Any], Any]) -> None:
    matrix = np.broadcast_to(function(np.array(GRID)[:, None], np.array(COSTS)), (len(GRID), len(COSTS)))
    np.testing.assert_allclose(matrix, [[function(x, c) for c in COSTS] for x in GRID], rtol=1e-14)
    assert isinstance(function(0.3, 1e-4), float)


@pytest.mark.parametrize("loss", list(Loss))
def test_guess_uses_the_last_axis(loss: Loss) -> None:
    rows = [[0.0, 0.1, 0.2], [0.3, 0.0, 0.0]]
    np.testing.assert_array_equal(upper.guess(loss, rows), [upper.guess(loss, row) for row in rows])
    np.testing.assert_array_equal(upper.two_arm_guess(loss, GRID), [upper.guess(loss, [0, x]) for x in GRID])
    assert isinstance(upper.two_arm_guess(loss, 0.3), float)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lower.misidentification(0.0, 1e-4), "`complexity` must be positive but got 0.0."),
        (lambda: lower.misidentification(math.nan, 1e-4), "`complexity` must be finite but got nan."),
        (lambda: lower.misidentification(10.0, [1e-4, -1.0]), "`cost` must be positive but got -1.0."),
        (lambda: lower.simple_regret(10.0, -0.1, 1e-4), "`smallest_gap` must not be negative but got -0.1."),
        (lambda: lower.simple_regret_minimax(1, 1e-4), "`arms` must be at least 2 but got 1."),
        (lambda: lower.two_arm(MI, INF, 1e-4), "`gap` must be finite but got inf."),
        (lambda: lower.two_arm("MI", 0.1, 1e-4), "`loss` must be one of"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: upper.oracle(MI, -0.1, 1e-4), "`gap` must not be negative but got -0.1."),
        (lambda: upper.oracle_minimax(0.0), "`cost` must be positive but got 0.0."),
        (lambda: upper.two_arm(SR, 0.1, 1e-4, bound=0.0), "`bound` must be positive but got 0.0."),
        (
            lambda: upper.two_arm(MI, 0.1, 0.71),
            "`cost` must be so small that the bound's logarithm is positive but got 0.71.",
        ),
        (
            lambda: upper.two_arm_curve(MI, 0.1, [0.1, 0.8]),
            "`cost` must be so small that the bound's logarithm is positive",
        ),
        (lambda: upper.two_arm_minimax(1e-4, -1.0), "`sigma` must be positive but got -1.0."),
        (lambda: upper.transition_gap(SR, 1e-4, bound=-1.0), "`bound` must be positive but got -1.0."),
        (lambda: upper.misidentification(10.0, 2.5, 1e-4), "`arms` must be a whole number but got 2.5."),
        (lambda: upper.misidentification(-1.0, 2, 1e-4), "`complexity` must be positive but got -1.0."),
        (lambda: upper.simple_regret(10.0, 0.1, 2, 1e-4, 0.0), "`sigma` must be positive but got 0.0."),
        (lambda: upper.simple_regret_minimax(1, 1e-4), "`arms` must be at least 2 but got 1."),
        (
            lambda: upper.guess(SR, [0.1, 0.2]),
            "`gaps` must have one entry for each of 2 or more arms, 0 for the best, but got",
        ),
        (lambda: upper.guess(SR, [0.0]), "`gaps` must have one entry for each of 2 or more arms"),
        (lambda: upper.guess(SR, 0.0), "`gaps` must have one entry for each of 2 or more arms"),
        (lambda: upper.two_arm_guess(SR, -0.1), "`gap` must not be negative but got -0.1."),
    ],
)
def test_invalid_arguments_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        call()
    assert str(caught.value).startswith(message)
