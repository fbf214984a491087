"""The known-gap SPRT: its threshold is optimal, its risk matches known figures, and it guesses if data do not pay."""

import math

import numpy as np
import pytest

from dbcare import DBCARE, Bandit, BreakevenRacing, Risk, evaluate, evaluate_grid
from dbcare.engines import best_sprt
from dbcare.errors import InvalidValueError
from dbcare.policies import KnownGapOracle, KnownGapSPRT

RISKS = [Risk.misidentification(1e-4), Risk.simple_regret(1e-4)]


def exact_risk(policy: KnownGapSPRT, family: str = "gaussian") -> float:
    assert policy.risk is not None
    return float(evaluate_grid(policy, [policy.gap], family, policy.sigma).risk(policy.risk)[0])


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("gap", [0.1, 0.6, 2.0])
def test_no_other_threshold_is_better(risk: Risk, gap: float) -> None:
    best = best_sprt(risk, gap)
    least = exact_risk(best)
    for threshold in np.concatenate(
        [np.linspace(0.0, 3.0 * best.threshold, 31), best.threshold * np.array([0.99, 1.01])]
    ):
        assert exact_risk(KnownGapSPRT(risk, gap, float(threshold))) >= least * (1.0 - 1e-5)


@pytest.mark.parametrize("risk", RISKS)
def test_no_other_whole_threshold_is_better_for_bernoulli_arms(risk: Risk) -> None:
    best = best_sprt(risk, 0.3, "bernoulli", 0.5)
    assert best.threshold == int(best.threshold)
    least = exact_risk(best, "bernoulli")
    others = [
        exact_risk(KnownGapSPRT(risk, 0.3, float(threshold), 0.5), "bernoulli")
        for threshold in range(2 * int(best.threshold) + 3)
    ]
    assert min(others) == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize(("risk", "dbcare", "ours"), [(RISKS[0], 5.4, 1.32), (RISKS[1], 3.6, 1.16)])
def test_the_ratio_of_other_risks_to_its_risk(risk: Risk, dbcare: float, ours: float) -> None:
    """Geometric means over gaps in [0.05, 2]: DBCARE 5.4 and 3.6, BreakevenRacing 1.32 and 1.16 (docs, Breakeven)."""
    gaps = np.geomspace(0.05, 2.0, 20)
    least = np.array([exact_risk(best_sprt(risk, float(gap))) for gap in gaps])
    oracle = evaluate_grid(lambda gap: KnownGapOracle(risk, gap), gaps).risk(risk)
    assert np.all(oracle > least)  # the oracle does not look at data until it has made all its pulls
    for policy, expected in ((DBCARE(risk, 2, bound=2.0), dbcare), (BreakevenRacing(risk, 2), ours)):
        ratio = evaluate_grid(policy, gaps).risk(risk) / least
        assert np.all(ratio > 1.0)
        assert np.exp(np.mean(np.log(ratio))) == pytest.approx(expected, rel=0.03)


def test_the_risk_against_walds_bound_and_a_simulation() -> None:
    """The error is below Wald's bound 1/(1 + e^x), x = gap h / sigma^2, and the simulated risk agrees."""
    policy = KnownGapSPRT(Risk.misidentification(1e-3), gap=0.5, threshold=8.0)
    simulated = evaluate(policy, Bandit.two_arm(0.5), runs=40_000, seed=3, engine="direct")
    known = evaluate(policy, Bandit.two_arm(0.5), engine="exact")
    assert known.error < 1.0 / (1.0 + math.exp(0.5 * 8.0))
    assert known.capped < 1e-10
    assert abs(simulated.risk - known.risk) < 5.5 * simulated.standard_error  # error rate 4e-8


def test_it_guesses_where_data_do_not_pay() -> None:
    policy = best_sprt(Risk.misidentification(0.4), gap=0.1)
    assert policy.threshold == math.inf
    assert policy.max_pulls == 0
    run = policy.start(seed=1)
    assert run.ask() is None
    assert exact_risk(policy) == pytest.approx(0.5)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(InvalidValueError, match="`threshold` must not be negative"):
        KnownGapSPRT(RISKS[0], 0.5, -1.0)
    with pytest.raises(InvalidValueError, match="`gap` must be positive"):
        best_sprt(RISKS[0], 0.0)
