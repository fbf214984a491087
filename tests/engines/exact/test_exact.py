"""Closed forms against direct sums, and the choice of the exact engine's method."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from dbcare.engines import exact
from dbcare.engines.exact.bernoulli import two_arm_bernoulli, two_arm_bernoulli_pair
from dbcare.engines.exact.gaussian import two_arm_gaussian
from dbcare.engines.exact.law import bernoulli_error, binomial, gaussian_error
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.racing import Racing, TwoArmConfidence
from dbcare.policies.planned import Guess, KnownGapOracle, SequentialHalving, SuccessiveRejects, Uniform
from dbcare.policies.policy import Policy
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Risk

RISK = Risk.misidentification(1e-3)


def exact_binomial(trials: int, chance: Fraction) -> list[Fraction]:
    return [math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]


@pytest.mark.parametrize("pulls", [0, 1, 2, 7, 60])
@pytest.mark.parametrize(("best", "other"), [("3/4", "1/4"), ("1/2", "1/2"), ("1", "2/5"), ("9/10", "0"), ("1", "0")])
def test_bernoulli_error_against_a_direct_sum(pulls: int, best: str, other: str) -> None:
    ahead, behind = exact_binomial(pulls, Fraction(best)), exact_binomial(pulls, Fraction(other))
    direct = sum(
        (p * q * (2 if k > j else 1 if k == j else 0) / 2 for j, p in enumerate(ahead) for k, q in enumerate(behind)),
        start=Fraction(0),
    )
    error = bernoulli_error(pulls, float(Fraction(best)), float(Fraction(other)))
    assert error == pytest.approx(float(direct), rel=1e-12, abs=1e-16)


@pytest.mark.parametrize(("trials", "chance"), [(1, 0.3), (50, 0.5), (1000, 0.02), (20_000, 0.7)])
def test_the_binomial_law(trials: int, chance: float) -> None:
    law = binomial(trials, chance, 0, trials)
    k = np.arange(trials + 1)
    assert law.sum() == pytest.approx(1.0, rel=1e-14)
    assert law @ k == pytest.approx(trials * chance, rel=1e-13)
    assert law @ (k - trials * chance) ** 2 == pytest.approx(trials * chance * (1.0 - chance), rel=1e-12)


def test_bernoulli_error_of_very_many_pulls() -> None:
    """The whole law would not fit into memory; the normal law agrees to the order of 1/pulls."""
    pulls, gap = 10**10, 1e-5
    expected = NormalDist().cdf(-gap * math.sqrt(pulls / 0.5))
    assert bernoulli_error(pulls, 0.5, 0.5 - gap) == pytest.approx(expected, rel=1e-8)
    assert bernoulli_error(pulls, 0.9, 0.1) == 0.0


def test_gaussian_error_against_the_normal_law() -> None:
    """Q(gap sqrt(m / (2 sigma^2))): the difference of two means of m pulls has variance 2 sigma^2 / m."""
    for pulls, gap, sigma in [(5, 0.5, 1.0), (250, 0.1, 1.0), (1, 1.0, 0.5)]:
        expected = NormalDist(gap, sigma * math.sqrt(2.0 / pulls)).cdf(0.0)
        assert gaussian_error(pulls, gap, sigma)[0] == pytest.approx(expected, rel=1e-13)
    assert gaussian_error(0, [0.3, 2.0], 1.0).tolist() == [0.5, 0.5]
    assert gaussian_error([0, 4], [0.3, 0.5], 1.0) == pytest.approx([0.5, NormalDist().cdf(-math.sqrt(0.5))])


@pytest.mark.parametrize("budget", [10, 500])
def test_halving_of_two_arms(budget: int) -> None:
    gaps = [0.0, 0.05, 0.5]
    law = exact.two_arm_curve(SequentialHalving(2, budget), gaps, sigma=2.0, levels=(0.5,))
    assert law.error[0] == 0.0
    assert law.error[1:] == pytest.approx(gaussian_error(budget // 2, gaps[1:], 2.0))
    assert law.mean_pulls.tolist() == law.quantiles[:, 0].tolist() == [budget] * 3
    assert law.capped.tolist() == law.deviation_pulls.tolist() == [0.0] * 3
    law = exact.two_arm_curve(SequentialHalving(2, budget), gaps, family="bernoulli")
    assert law.error[2] == bernoulli_error(budget // 2, 0.75, 0.25)


def test_oracle_uniform_and_guess() -> None:
    oracle = KnownGapOracle(RISK, gap=0.5, sigma=1.0)
    assert exact.two_arm_curve(oracle, 0.5).error == pytest.approx(gaussian_error(oracle.pulls, 0.5, 1.0))
    hopeless = KnownGapOracle(RISK, gap=0.01, sigma=1.0)
    assert exact.two_arm_curve(hopeless, 0.01).error.tolist() == [0.5]
    assert exact.two_arm_curve(Uniform(2, 30), 0.5).mean_pulls.tolist() == [60.0]
    assert exact.two_arm_law(Guess(2), Bandit.two_arm(0.4)).regret.tolist() == [0.2]
    assert exact.two_arm_law(Guess(2), Bandit.empirical([[-9.0], [-3.0]])).regret.tolist() == [3.0]
    law = exact.guess_law(Guess(4), Bandit.gaussian([1.0, 0.5, 1.0, 0.0]))
    assert law.error.tolist() == [0.5]
    assert law.regret.tolist() == [0.375]
    assert law.mean_pulls.tolist() == [0.0]


def test_a_bandit_of_two_arms() -> None:
    policy = DBCARE(RISK, arms=2, sigma=0.5)
    law = exact.two_arm_law(policy, Bandit.gaussian([0.1, 0.4], sigma=0.5), levels=(0.5,))
    assert law.error == pytest.approx(two_arm_gaussian(policy.tables, 0.3, 0.5).error)
    law = exact.two_arm_law(policy, Bandit.gaussian([0.1, 0.4], sigma=[0.3, 0.4]))
    assert law.error == pytest.approx(two_arm_gaussian(policy.tables, 0.3, math.sqrt(0.125)).error)
    assert law.levels.tolist() == [0.05, 0.25, 0.5, 0.75, 0.95]
    law = exact.two_arm_law(policy, Bandit.bernoulli([0.2, 0.9]))
    assert law.error == pytest.approx(two_arm_bernoulli_pair(policy.tables, 0.9, 0.2).error)
    law = exact.two_arm_law(Uniform(2, 9), Bandit.bernoulli([0.2, 0.9]))
    assert law.error == pytest.approx(bernoulli_error(9, 0.9, 0.2))
    law = exact.two_arm_curve(policy, [0.3], family="bernoulli")
    assert law.error == pytest.approx(two_arm_bernoulli(policy.tables, 0.3).error)


def test_both_risks_with_one_cost_or_a_cost_per_arm() -> None:
    law = exact.two_arm_curve(Uniform(2, 10), [0.5, 1.0])
    assert law.risk(Risk.misidentification(0.01)) == pytest.approx(law.error + 0.2)
    assert law.risk(Risk.simple_regret(0.01)) == pytest.approx(law.gaps * law.error + 0.2)
    assert law.risk(Risk.simple_regret((0.01, 0.03))) == pytest.approx(law.gaps * law.error + 0.4)


GAUSSIAN = Bandit.gaussian([0.0, 0.5])
BERNOULLI = Bandit.bernoulli([0.1, 0.3])
MIXED = Bandit((GAUSSIAN.arms[0], BERNOULLI.arms[0]))
EMPIRICAL = Bandit.empirical([[0.0, 1.0], [1.0]])


@pytest.mark.parametrize(
    ("policy", "bandit", "message"),
    [
        (Racing(3, 0.1), Bandit.gaussian([0.0, 0.5, 1.0]), "needs two arms, except for a guess, but got 3"),
        (Racing(3, 0.1), GAUSSIAN, "the same number of arms but got 3 and 2"),
        (
            TwoArmConfidence(0.1),
            Bandit.empirical([[0.0, 1.0], [1.0]]),
            "all Gaussian or all Bernoulli but got Empirical",
        ),
        (
            TwoArmConfidence(0.1),
            Bandit((GAUSSIAN.arms[0], Bandit.bernoulli([0.1, 0.2]).arms[0])),
            "Bernoulli, Gaussian",
        ),
    ],
)
def test_unsupported_policies_and_bandits_are_rejected(policy: Policy, bandit: Bandit, message: str) -> None:
    assert not exact.applies(policy, bandit)
    with pytest.raises(EngineError, match=message):
        exact.two_arm_law(policy, bandit)


def test_supported_policies_and_bandits() -> None:
    for policy in (DBCARE(RISK, arms=2), TwoArmConfidence(0.1), SequentialHalving(2, 10), SuccessiveRejects(2, 10)):
        assert exact.applies(policy, GAUSSIAN)
        assert exact.applies(policy, BERNOULLI)
    assert exact.applies(Guess(5), Bandit.drug_leveled())


def test_only_runs_that_can_actually_last_long_are_too_long() -> None:
    patient = TwoArmConfidence(0.1, max_pulls=2_000_000)
    assert exact.applies(patient, Bandit.two_arm(0.1))
    assert not exact.applies(patient, Bandit.two_arm(0.01))
    assert not exact.applies(patient, Bandit.two_arm(0.0))
    assert exact.applies(TwoArmConfidence(0.1, max_pulls=200_000), Bandit.two_arm(0.0))


def test_other_invalid_arguments_are_rejected() -> None:
    with pytest.raises(EngineError, match="makes no pulls"):
        exact.guess_law(Uniform(2, 3), GAUSSIAN)
    with pytest.raises(EngineError, match="needs two arms"):
        exact.two_arm_curve(Guess(3), 0.1)
    with pytest.raises(InvalidValueError, match="`family` must be one of gaussian, bernoulli"):
        exact.two_arm_curve(Guess(2), 0.1, family="cauchy")
