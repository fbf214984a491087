"""`evaluate_grid` equals `evaluate` point by point and accepts policies that know the gap."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from dbcare import DBCARE, Bandit, Risk, evaluate, evaluate_grid
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies import KnownGapOracle, TwoArmConfidence

RISK = Risk.simple_regret(1e-3)
GAPS = [0.1, 0.4, 0.9]


@pytest.mark.parametrize("policy", [DBCARE(RISK, 2, sigma=0.5), TwoArmConfidence(0.1, sigma=0.5, max_pulls=2_000)])
def test_the_grid_equals_single_points(policy: DBCARE) -> None:
    gaussian = evaluate_grid(policy, GAPS, sigma=0.5)
    bernoulli = evaluate_grid(policy, GAPS, family="bernoulli")
    for place, gap in enumerate(GAPS):
        for curve, bandit in ((gaussian, Bandit.two_arm(gap, 0.5)), (bernoulli, Bandit.two_arm_bernoulli(gap))):
            point = evaluate(policy, bandit, RISK)
            assert point.engine == "exact"
            assert curve.risk(RISK)[place] == pytest.approx(point.risk, rel=1e-9)
            assert curve.error[place] == pytest.approx(point.error, rel=1e-7)
            assert curve.quantiles[place].tolist() == list(point.pulls.quantiles.values())


def test_a_negative_estimate_is_printed_as_0_and_kept() -> None:
    curve = replace(evaluate_grid(DBCARE(RISK, 2), GAPS), error=np.array([0.1, -1e-9, 0.0]))
    assert [line.split()[1] for line in str(curve).splitlines()[3:6]] == ["0.1", "0", "0"]
    assert curve.error[1] == -1e-9


def test_the_oracle_is_passed_as_a_function_of_the_gap() -> None:
    """m = ceil(4/gap^2 ln(gap^3/(8 c))) pulls each (0 if negative); P(error) = Q(gap sqrt(m/2)), or 1/2 for m = 0."""
    curve = evaluate_grid(lambda gap: KnownGapOracle(RISK, gap), GAPS)
    for place, gap in enumerate(GAPS):
        pulls = max(0.0, np.ceil(4.0 / gap**2 * np.log(gap**3 / 8e-3)))
        assert curve.mean_pulls[place] == 2.0 * pulls
        assert curve.error[place] == pytest.approx(norm.sf(gap * np.sqrt(pulls / 2.0)), rel=1e-12)
    assert curve.mean_pulls[0] == 0.0
    assert curve.mean_pulls[2] > 0.0


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(InvalidValueError, match="gaussian, bernoulli"):
        evaluate_grid(DBCARE(RISK, 2), GAPS, family="cauchy")
    with pytest.raises(EngineError, match=r"needs two arms.*; pass a `shape`"):
        evaluate_grid(DBCARE(RISK, 3), GAPS)
