"""Lemmas 5 to 7 against hand arithmetic, integrals and simulation; the constant of Theorem 4 that they allow."""

import math
from collections.abc import Callable
from math import e, exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from dbcare import DBCARE, Bandit, Risk, evaluate_grid
from dbcare.engines.evaluate import evaluate
from dbcare.errors import InvalidValueError
from dbcare.problem.risk import Loss
from dbcare.theory import budgets, elimination, lower, upper

MI, SR = Loss.MISIDENTIFICATION, Loss.SIMPLE_REGRET


def delta_of(loss: Loss, arms: int, cost: float, sigma: float = 1.0, bound: float = 1.0) -> float:
    """The theorems' delta for more than two arms, as printed."""
    if loss is MI:
        return cost / (1.0 + 2.0 * cost * log(arms) / (2.0 * e * cost))
    budget = 1.5 / e * (sigma / cost) ** (2 / 3)
    return float(cost / (bound + e * arms ** (1 / 3) * log(arms) * budget))


@pytest.mark.parametrize(("arms", "k"), [(3, 2), (8, 2), (8, 5), (8, 8), (32, 17)])
def test_the_separating_gap_is_the_one_in_the_proofs(arms: int, k: int) -> None:
    """The proofs of Theorems 2 and 4 insert N* into Lemma 5's threshold."""
    cost, sigma, bound = 1e-4, 0.7, 3.0
    level = log(arms / (k * e * cost) / delta_of(MI, arms, cost))
    expected = sqrt(16.0 * e * k * sigma**2 * cost * level)
    assert elimination.separating_gap(MI, k, arms, cost, sigma, bound=bound) == pytest.approx(expected, rel=1e-12)
    budget = 1.5 / e * sigma ** (2 / 3) * ((k - 1) * cost) ** (-2 / 3)
    level = log(arms * budget / delta_of(SR, arms, cost, sigma, bound))
    expected = sqrt(32.0 * e / 3.0 * ((k - 1) * sigma**2 * cost) ** (2 / 3) * level)
    assert elimination.separating_gap(SR, k, arms, cost, sigma, bound=bound) == pytest.approx(expected, rel=1e-12)


def test_two_arms_meet_where_the_corollaries_say() -> None:
    for loss in Loss:
        assert elimination.separating_gap(loss, 2, 2, 1e-4, 0.5, bound=2.0) == pytest.approx(
            float(upper.transition_gap(loss, 1e-4, 0.5, bound=2.0)), rel=1e-15
        )


GAPS = (
    [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
    [0.1, 0.3, 0.5, 0.8, 1.0, 1.4, 2.0],
    [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1],
    [0.5, 0.7, 1.0, 3.5, 3.5, 3.6, 4.0],
    [2.0, 2.0, 3.0, 3.0, 3.5, 3.5, 4.0],
)


@pytest.mark.parametrize("loss", list(Loss))
def test_undecided_arms_are_those_that_the_lemma_counts(loss: Loss) -> None:
    """M goes down from K as long as the gap of arm M is above its threshold; Lemma 5 limits the pulls of the others."""
    cost, found = 1e-4, []
    for gaps in GAPS:
        thresholds = [float(elimination.separating_gap(loss, k, 8, cost)) for k in range(2, 9)]
        left = 8
        while left > 1 and gaps[left - 2] > thresholds[left - 2]:
            left -= 1
        assert elimination.undecided_arms(loss, gaps, cost) == left
        found.append(left)
        limits = elimination.pulls_until_dropped(loss, gaps, cost)
        for k, (gap, limit) in enumerate(zip(gaps, limits, strict=True), start=2):
            budget = float(budgets.epoch_budget(loss, k, cost))
            if k <= left:
                assert limit == math.inf
            else:
                assert limit == pytest.approx(16.0 / gap**2 * log(8 * budget / delta_of(loss, 8, cost)), rel=1e-12)
                assert limit < budget
        chances = elimination.wrong_choice(loss, gaps, cost)
        last = float(budgets.epoch_budget(loss, max(left, 2), cost))
        expected = [exp(-last * gap**2 / 4.0) if k <= left else 0.0 for k, gap in enumerate(gaps, start=2)]
        assert chances == pytest.approx(expected, rel=1e-12)
    assert found[0] == 8
    assert found[-1] == 1
    assert len(set(found)) >= 3
    stacked = elimination.undecided_arms(loss, np.array(GAPS), cost)
    np.testing.assert_array_equal(stacked, found)
    assert elimination.wrong_choice(loss, np.array(GAPS), [[1e-4], [1e-3]]).shape == (2, 5, 7)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize(("family", "sigma"), [("gaussian", 1.0), ("bernoulli", 0.5)])
def test_lemmas_6_and_7_hold_exactly_for_two_arms(loss: Loss, family: str, sigma: float) -> None:
    """P(wrong) <= P(wrong on G) + delta, from the exact engine; a bound without its factor 4 would be exceeded."""
    cost, gaps = 1e-3, np.geomspace(0.02, 0.9, 25)
    policy = DBCARE(Risk(loss, cost), 2, sigma)
    law = evaluate_grid(policy, gaps, family, sigma)
    bound = np.array([elimination.wrong_choice(loss, [gap], cost, sigma)[0] for gap in gaps]) + policy.delta
    assert np.all(law.error <= bound)
    assert np.any(law.error > bound**4)
    regret = float(elimination.regret_of_choice(budgets.epoch_budget(loss, 2, cost, sigma), 2, sigma))
    assert np.all(law.regret <= regret + policy.delta)
    assert np.max(law.regret) > 0.25 * regret


def test_lemmas_5_to_7_hold_for_several_arms() -> None:
    """20,000 runs on 8 arms; the bounds exceed the estimates by more than 5 standard errors."""
    cost = 1e-3
    for gaps in ([0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3], [0.3, 0.6, 4.0, 4.0, 5.0, 5.0, 6.0]):
        for loss in Loss:
            policy = DBCARE(Risk(loss, cost), 8, bound=6.0)
            found = evaluate(policy, Bandit.gaussian([0.0, *(-gap for gap in gaps)]), runs=20_000, seed=5)
            left = int(elimination.undecided_arms(loss, gaps, cost, bound=6.0))
            most = float(elimination.wrong_choice(loss, gaps, cost, bound=6.0).sum()) + policy.delta
            assert found.error + 5.0 * found.losses[MI].standard_error <= most
            budget = budgets.epoch_budget(loss, max(left, 2), cost)
            regret = float(elimination.regret_of_choice(budget, left)) + 6.0 * policy.delta
            assert found.simple_regret + 5.0 * found.losses[SR].standard_error <= regret
            dropped = elimination.pulls_until_dropped(loss, gaps, cost, bound=6.0)[max(left, 2) - 1 :]
            rest = float(budgets.most_pulls(loss, left, cost)) if left > 1 else 0.0
            assert left < 8 or gaps[-1] == 0.3
            assert found.pulls.mean <= rest + float(np.sum(dropped + 1.0)) + policy.delta * policy.max_pulls


def choice_among_equals(distance: float, others: int) -> float:
    """The chance that the best of `others` standard normal means beats one that is `distance` higher, by quadrature."""
    return float(
        integrate.quad(
            lambda z: stats.norm.pdf(z) * -np.expm1(others * stats.norm.logcdf(z + distance)), -9.0, 9.0, limit=200
        )[0]
    )


def worst_regret(arms: int) -> float:
    """The largest regret over equal gaps of choosing the largest of `arms` normal means, in standard errors of one."""
    found = optimize.minimize_scalar(
        lambda distance: -distance * choice_among_equals(distance, arms - 1), bounds=(0.5, 6.0), method="bounded"
    )
    return float(-found.fun)


def test_lemma_6_holds_at_a_random_epoch() -> None:
    """The rival may lead at any epoch from N to 4 N, as the last epoch is random: its chance then exceeds that at N.

    50,000 paths: the standard error is below 0.0017, and the two comparisons have 6 of them to spare.
    """
    generator, gap, first, paths = np.random.default_rng(38), 0.4, 25, 50_000
    steps = generator.normal(-gap, sqrt(2.0), (paths, 4 * first)).cumsum(axis=1)
    leads_at_first = float(np.mean(steps[:, first - 1] >= 0.0))
    leads_once = float(np.mean(np.any(steps[:, first - 1 :] >= 0.0, axis=1)))
    bound = exp(-first * gap**2 / 4.0)
    assert leads_at_first == pytest.approx(float(stats.norm.cdf(-gap * sqrt(first / 2.0))), abs=0.008)
    assert leads_once > leads_at_first + 0.02
    assert leads_once < bound - 0.02


PRINTED_LEMMA_7 = sqrt(4.0 / sqrt(e))  # times sigma / sqrt(N)


@pytest.mark.parametrize("arms", [2, 3, 8, 32, 231, 232, 5_000])
def test_our_bound_replaces_lemma_7_which_fails_from_232_arms_on(arms: int) -> None:
    """With N pulls of each arm, means have the standard error sigma/sqrt(N)."""
    regret, budget, sigma = worst_regret(arms), 1_000.0, 0.7
    assert regret <= float(elimination.regret_of_choice(budget, arms, sigma)) / (sigma / sqrt(budget))
    assert (regret > PRINTED_LEMMA_7) == (arms >= 232)


def test_the_maximum_in_the_proof_of_lemma_7() -> None:
    """2 Delta exp(-N Delta^2/(4 sigma^2)) at N = 1000, sigma = 1: 0.0542, not 0.0493; a single term has half of it."""
    gaps = np.linspace(1e-3, 0.3, 300_001)
    peak = float(np.max(2.0 * gaps * np.exp(-1000.0 * gaps**2 / 4.0)))
    assert peak == pytest.approx(sqrt(8.0 / (e * 1000.0)), rel=1e-8)
    assert peak == pytest.approx(0.0542, abs=5e-5)
    assert PRINTED_LEMMA_7 / sqrt(1000.0) == pytest.approx(0.0493, abs=5e-5)
    assert elimination.regret_of_choice(1000.0, 2) == pytest.approx(peak / 2.0, rel=1e-8)


@pytest.mark.parametrize("others", [1, 2, 3, 31])
def test_our_bound_is_the_best_x_in_its_proof(others: int) -> None:
    """The smallest over x of x + m max over Delta >= x of (Delta - x) exp(-N Delta^2/(4 sigma^2)), on a grid."""
    gaps = np.linspace(0.0, 12.0, 4_001)
    chances = np.exp(-(gaps**2) / 4.0)
    best = min(x + others * float(np.max((gaps - x) * chances * (gaps >= x))) for x in np.linspace(0.0, 5.0, 2_501))
    assert elimination.regret_of_choice(1.0, others + 1) == pytest.approx(best, rel=1e-3)


def constant_of_theorem_4(arms: int, term: Callable[[int], float]) -> float:
    """What the proof needs instead of 550: the display with M over the lower bound's, divided by ln K times the log.

    `term(M)` bounds the regret on G in units of ((M-1) sigma^2 c)^(1/3).
    """
    scale = 128.0 * e / 3.0 / log(arms)
    needed: float = scale * max(term(m) + 1.5 * log(m) * (m / (m - 1)) ** (1 / 3) for m in range(2, arms + 1))
    return needed


def ours(undecided: int) -> float:
    """Our bound at N = (3/2e) sigma^(2/3) ((M-1) c)^(-2/3), with sigma = 1 and (M-1) c = 1."""
    return float(elimination.regret_of_choice(1.5 / e, undecided))


def test_the_constant_of_theorem_4_survives() -> None:
    assert constant_of_theorem_4(2, lambda m: sqrt(8.0 * sqrt(e) / 3.0)) == pytest.approx(570.0, abs=0.1)
    assert constant_of_theorem_4(2, lambda m: sqrt(16.0 / 3.0)) == pytest.approx(605.6, abs=0.1)  # the true maximum
    needed = {arms: constant_of_theorem_4(arms, ours) for arms in range(2, 300)}
    assert needed[2] == pytest.approx(412.4, abs=0.1)  # a single term at K = 2
    assert max(needed.values()) == needed[3] == pytest.approx(435.8, abs=0.1)
    # The other parts: 4 ln K (K sigma^2 c)^(1/3) at large H, and 20 ln K H*_SR.
    for arms in range(2, 300):
        cost = 1e-6
        most = ours(arms) * ((arms - 1) * cost) ** (1 / 3) + float(budgets.expected_pulls(SR, arms, cost)) * cost
        assert most <= 4.0 * log(arms) * (arms * cost) ** (1 / 3)
        assert most <= 20.0 * log(arms) * float(lower.simple_regret_minimax(arms, cost))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: elimination.undecided_arms(MI, [0.2, 0.1], 1e-4), "`gaps` must have Delta_2 to Delta_K in ascending"),
        (lambda: elimination.undecided_arms(MI, 0.2, 1e-4), "`gaps` must have Delta_2 to Delta_K in ascending"),
        (lambda: elimination.wrong_choice(MI, [-0.2], 1e-4), "`gaps` must not be negative but got -0.2."),
        (lambda: elimination.pulls_until_dropped(SR, [0.2], 0.0), "`cost` must be positive but got 0.0."),
        (lambda: elimination.separating_gap(SR, 1, 2, 1e-4), "`survivors` must be at least 2 but got 1."),
        (lambda: elimination.separating_gap(MI, 2, 2, 0.9), "`cost` must be so small that the bound's logarithm"),
        (lambda: elimination.regret_of_choice(0.0, 2), "`budget` must be positive but got 0.0."),
        (lambda: elimination.regret_of_choice(1.0, 0), "`undecided` must be at least 1 but got 0."),
    ],
)
def test_invalid_arguments_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        call()
    assert str(caught.value).startswith(message)
