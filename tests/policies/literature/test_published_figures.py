"""Adaptive rules against published figures, and against what their theorems promise.

Statements about errors reject "the error is at least delta" by the exact binomial distribution at 1e-6; negative
controls must not be rejected, and must be above delta by as much. Means are compared with five standard errors.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dbcare import Bandit, Policy, Risk, evaluate, evaluate_grid
from dbcare.engines import best_sprt
from dbcare.engines.simulate.draws import make_arms
from dbcare.engines.simulate.simulators import trace
from dbcare.policies import (
    EBTCI,
    KLLUCB,
    KN,
    LUCB,
    Adaptive,
    ChickFrazier,
    LilUCB,
    TrackAndStop,
    TwoArmChickFrazier,
    UGapE,
)
from dbcare.policies.run import Run

pytestmark = [pytest.mark.statistical, pytest.mark.long]

RISK = Risk.simple_regret(1e-4)
ALPHA = 1e-6
FIRST, SECOND = Bandit.bernoulli([0.5, 0.45, 0.43, 0.4]), Bandit.bernoulli([0.3, 0.21, 0.2, 0.19, 0.18])


def is_below(policy: Policy, bandit: Bandit, delta: float, runs: int = 300) -> tuple[bool, bool]:
    """Return whether the error is certainly below delta, and whether it is certainly above."""
    result = evaluate(policy, bandit, RISK, runs=runs, seed=5, engine="direct")
    return compare_with(delta, round(result.error * runs), runs)


def compare_with(delta: float, errors: int, runs: int) -> tuple[bool, bool]:
    return bool(binom.cdf(errors, runs, delta) < ALPHA), bool(binom.sf(errors - 1, runs, delta) < ALPHA)


@pytest.mark.parametrize(
    ("policy", "bandit", "published", "runs"),
    [
        pytest.param(
            TrackAndStop(4, 0.1, family="bernoulli", rate="heuristic"), FIRST, 4052, 120, marks=pytest.mark.soak
        ),
        (TrackAndStop(5, 0.1, family="bernoulli", rate="heuristic"), SECOND, 1406, 120),
        pytest.param(KLLUCB(4, 0.1, "heuristic"), FIRST, 8437, 200, marks=pytest.mark.soak),
        (KLLUCB(5, 0.1, "heuristic"), SECOND, 2716, 200),
    ],
)
def test_published_mean_draws(policy: Policy, bandit: Bandit, published: float, runs: int) -> None:
    """Garivier and Kaufmann (2016), Table 1: within 10% of their means of 3,000 runs.

    Five standard errors are a third of Track-and-Stop's mean, and a sixth of KL-LUCB's.
    """
    result = evaluate(policy, bandit, RISK, runs=runs, seed=1, engine="direct")
    error = 5.0 * result.standard_error / RISK.single_cost
    assert 0.9 * published - error <= result.pulls.mean <= 1.1 * published + error


def test_other_rates_do_not_have_these_draws() -> None:
    """Negative control: the proven rates take far more pulls."""
    policy = TrackAndStop(5, 0.1, family="bernoulli")
    result = evaluate(policy, SECOND, RISK, runs=30, seed=1, engine="direct")
    assert result.pulls.mean - 5.0 * result.standard_error / RISK.single_cost > 1.1 * 1406


@pytest.mark.parametrize("bandit", [FIRST, SECOND], ids=["four arms", "five arms"])
@pytest.mark.parametrize("make", [TrackAndStop, KLLUCB])
def test_compiled_equals_stepped_by_hand_on_bernoulli_arms(make: Any, bandit: Bandit) -> None:
    options = {"family": "bernoulli"} if make is TrackAndStop else {}
    policy = make(len(bandit.arms), 0.1, rate="heuristic", max_pulls=300, **options)
    for number in range(3):
        compiled = trace(policy, make_arms(bandit), 11, number)
        run = Run.fresh(policy, compiled.tie)
        for arm, reward in compiled.pulls:
            assert run.ask() == arm
            run.tell(reward)
        assert run.ask() is None
        assert run.recommendation() == compiled.recommended


# With bounds as wide as these should be, errors are as rare at any gap, and a large one takes few pulls.
FAR, NEAR = Bandit.gaussian([0.4, 0.0]), Bandit.gaussian([0.1, 0.0])
CAP = 1_000_000


@pytest.mark.parametrize(
    ("policy", "cut", "runs"),
    [
        (TrackAndStop(2, 0.01, max_pulls=CAP), 2.0, 4_000),
        (EBTCI(2, 0.01, max_pulls=CAP), 2.0, 4_000),
        # The bounds of these are so wide that half of them still keeps the promise.
        (LUCB(2, 0.1, max_pulls=CAP), 4.0, 400),
        (UGapE(2, 0.1, max_pulls=CAP), 4.0, 400),
        (LilUCB(2, 0.1, max_pulls=CAP), 8.0, 200),
    ],
    ids=["Track-and-Stop", "EB-TCI", "LUCB", "UGapE", "lil'UCB"],
)
def test_errors_are_below_delta(policy: Any, cut: float, runs: int) -> None:
    """Negative control: the same rule with narrower bounds, as if sigma were smaller."""
    assert is_below(policy, FAR, policy.delta, runs) == (True, False)
    assert is_below(replace(policy, sigma=policy.sigma / cut), NEAR, policy.delta, runs) == (False, True)


@pytest.mark.parametrize(
    ("sampling", "stopping"), [("breakeven", "likelihood-ratio"), ("eb-tci", "lucb"), ("kg-star", "likelihood-ratio")]
)
def test_proven_stops_hold_under_other_samplings(sampling: str, stopping: str) -> None:
    """Stepped by hand: compiling a pair would take longer. Negative control: an eighth of sigma, and a smaller gap."""
    runs, generator = 150, np.random.default_rng(5)
    for sigma, gap, expected in ((1.0, 2.0, (True, False)), (0.125, 0.1, (False, True))):
        pair = Adaptive(2, sampling, stopping, risk=RISK, sigma=sigma, delta=0.1, max_pulls=CAP)
        errors = 0
        for seed in range(runs):
            run = pair.start(seed=seed)
            while (arm := run.ask()) is not None:
                run.tell(generator.normal(gap if arm == 0 else 0.0))
            errors += run.recommendation() == 1
        assert compare_with(0.1, errors, runs) == expected


def test_kl_lucb_errs_less_than_delta() -> None:
    """With the proven rate; negative control: the heuristic rate at a delta of 0.9, whose bounds are far too narrow."""
    assert is_below(KLLUCB(2, 0.1), Bandit.bernoulli([0.65, 0.35]), 0.1) == (True, False)
    assert is_below(KLLUCB(2, 0.9, "heuristic"), Bandit.bernoulli([0.55, 0.45]), 0.1) == (False, True)


def test_kn_errs_less_than_delta_where_the_gap_is_the_zone() -> None:
    """Negative control: a zone of three times the gap."""
    bandit = Bandit.gaussian([0.5, 0.0, 0.0, 0.0])
    assert is_below(KN(4, 0.5, 0.1), bandit, 0.1, runs=2_000) == (True, False)
    assert is_below(KN(4, 1.5, 0.1), bandit, 0.1, runs=2_000) == (False, True)


def test_two_arms_in_turn_are_near_the_known_gap_sprt() -> None:
    """Exactly: a geometric mean of 1.17 over gaps of 0.05 to 2, where Breakeven with a known sigma has 1.16."""
    gaps = np.geomspace(0.05, 2.0, 20)
    best = [float(evaluate_grid(best_sprt(RISK, gap), [gap]).risk(RISK)[0]) for gap in gaps.tolist()]
    ours = evaluate_grid(TwoArmChickFrazier(RISK), gaps.tolist()).risk(RISK)
    assert math.exp(float(np.mean(np.log(ours / best)))) == pytest.approx(1.19, abs=0.03)


def test_exact_and_simulated_risks_agree() -> None:
    """For two arms in turn, by five standard errors; the rule for K arms, which takes the other for known, is worse."""
    policy, bandit = TwoArmChickFrazier(RISK), Bandit.two_arm(0.3)
    exact = evaluate(policy, bandit, RISK, engine="exact").risk
    drawn = evaluate(policy, bandit, RISK, engine="direct", runs=20_000, seed=3)
    assert abs(drawn.risk - exact) < 5.0 * drawn.standard_error
    adaptive = evaluate(ChickFrazier(RISK, 2), bandit, RISK, engine="direct", runs=20_000, seed=3)
    assert adaptive.risk - 5.0 * adaptive.standard_error > exact


@pytest.mark.parametrize(
    ("policy", "low", "high", "runs"),
    [
        (LUCB(8, 0.1), 2.5, 2.95, 100),  # its runs are long and alike
        (EBTCI(8, 0.1, rate="heuristic"), 0.154, 0.157, 500),
        (Adaptive(8, "eb-tci", "breakeven", risk=RISK, sigma=1.0), 0.079, 0.079, 500),
    ],
    ids=["LUCB", "EB-TCI", "EB-TCI with Breakeven's stop"],
)
def test_risks_of_the_prototype(policy: Policy, low: float, high: float, runs: int) -> None:
    """One of 8 arms better by 0.3, c = 1e-4: figures of our first prototypes, by five standard errors."""
    result = evaluate(policy, Bandit.one_sparse(8, 0.3), RISK, runs=runs, seed=1, engine="direct")
    assert low - 5.0 * result.standard_error < result.risk < high + 5.0 * result.standard_error
