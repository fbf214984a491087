"""Policies with fixed pulls: uniform, the known-gap oracle, and guessing."""

from collections import Counter

import pytest

from dbcare.policies.planned import Guess, KnownGapOracle, Uniform
from dbcare.policies.policy import Policy
from dbcare.problem.risk import Risk
from tests.helpers.play_run import play, play_by

MI = Risk.misidentification(1e-4)
SR = Risk.simple_regret(1e-4)


def test_uniform_by_hand() -> None:
    """Means 2, 3, 2.5."""
    run, asked = play(Uniform(3, pulls=2), [[4.0, 0.0], [3.0, 3.0], [0.0, 5.0]])
    assert asked == [[0, 1, 2]] * 2
    assert run.recommendation() == 1
    assert run.why().startswith("stopped after 6 pulls: all pulls planned in advance have been made")


@pytest.mark.parametrize(
    ("risk", "gap", "sigma", "pulls"),
    [
        (MI, 1.0, 1.0, 29),  # 4 ln(1/0.0008) = 4 ln 1250 = 28.52
        (SR, 1.0, 1.0, 29),
        (MI, 0.5, 1.0, 92),  # 16 ln(0.25/0.0008) = 16 ln 312.5 = 91.91
        (SR, 0.5, 1.0, 81),  # 16 ln(0.125/0.0008) = 16 ln 156.25 = 80.82
        (MI, 0.5, 0.5, 29),  # 4 ln(0.25/0.0002) = 4 ln 1250
        (SR, 0.5, 0.5, 26),  # 4 ln(0.125/0.0002) = 4 ln 625 = 25.75
        (MI, 0.02, 1.0, 0),  # 0.0004/0.0008 < 1
        (SR, 0.09, 1.0, 0),  # 0.000729/0.0008 < 1
        (SR, 0.1, 1.0, 90),  # 400 ln(0.001/0.0008) = 400 ln 1.25 = 89.26
    ],
)
def test_oracle_pulls_by_hand(risk: Risk, gap: float, sigma: float, pulls: int) -> None:
    """m = max(0, ceil(4 sigma^2/gap^2 ln x)), x = gap^2/(8 sigma^2 c) or gap^3/(8 sigma^2 c)."""
    policy = KnownGapOracle(risk, gap=gap, sigma=sigma)
    assert policy.pulls == pulls
    assert policy.max_pulls == 2 * pulls
    assert play_by(policy, float)[1] == [[0, 1]] * pulls


def test_oracle_recommends_the_larger_mean() -> None:
    assert play_by(KnownGapOracle(MI, gap=1.0), lambda arm: 1.0 - arm)[0].recommendation() == 0
    assert play_by(KnownGapOracle(MI, gap=1.0), float)[0].recommendation() == 1


@pytest.mark.parametrize("policy", [Guess(2), Guess(5), KnownGapOracle(MI, gap=0.02), KnownGapOracle(SR, gap=1e-50)])
def test_choosing_without_a_pull(policy: Policy) -> None:
    """Every arm is chosen for some seeds, none is asked for, and the reason says so."""
    assert policy.max_pulls == 0
    runs = [policy.start(seed=seed) for seed in range(60)]
    assert {run.ask() for run in runs} == {None}
    assert set(Counter(run.recommendation() for run in runs)) == set(range(policy.arms))
    assert runs[0].why() == "stopped after 0 pulls: it chooses without a pull"
