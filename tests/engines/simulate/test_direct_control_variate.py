"""The control variate has the law of the integral and does not change runs or expectations.

The estimate with control differs from the plain one by a coefficient, fitted on other runs, times E[loss(C)] - mean
loss(C), so it is unbiased if C, the leader at the checkpoint, has the law of the integral. Chi-square tests at 1e-7
each; seeds are fixed.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dbcare import DBCARE, Bandit, Risk, evaluate
from dbcare.engines.simulate import simulators
from dbcare.engines.simulate.direct import leader_law
from dbcare.engines.simulate.draws import GaussianArms, make_arms
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.simulator import Simulator
from dbcare.engines.simulate.simulators import direct_simulator, skip_simulator
from dbcare.engines.statistics import Control, Moments
from dbcare.problem.risk import Loss

pytestmark = pytest.mark.statistical

RUNS = 50_000
LEVEL = 1e-7

# In the first setting no arm is dropped early; in the others many are, at different epochs, and the budget then grows.
SETTINGS = [
    (DBCARE(Risk.misidentification(2e-3), 3), Bandit.gaussian([0.1, 0.05, 0.0])),
    (DBCARE(Risk.misidentification(5e-4), 5, sigma=0.5, bound=3.0), Bandit.gaussian([0.6, 0.55, 0.3, 0.0, -1.5], 0.5)),
    (DBCARE(Risk.simple_regret(2e-5), 8, sigma=0.3, bound=2.0), Bandit.linear_decay(8, 0.08, 0.3)),
]


def simulate(make: Callable[..., Simulator], policy: DBCARE, bandit: Bandit, seed: int = 21) -> tuple[Outcomes, int]:
    simulator = make(policy, make_arms(bandit), seed)
    outcomes = Outcomes.empty(RUNS, control=True)
    simulator.block()(outcomes, 0)
    return outcomes, simulator.checkpoint


def fits(outcomes: Outcomes, law: np.ndarray) -> bool:
    """Test the leaders against `law`; cells with fewer than 20 expected are merged with the rarest of the others."""
    order = np.argsort(law)
    counts, expected = np.bincount(outcomes.leader, minlength=len(law))[order], RUNS * law[order]
    start = int(np.argmax(np.cumsum(expected) >= 20.0))
    counts = np.append(counts[: start + 1].sum(), counts[start + 1 :])
    expected = np.append(expected[: start + 1].sum(), expected[start + 1 :])
    return bool(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(expected) - 1) > LEVEL)


@pytest.mark.parametrize("make", [direct_simulator, skip_simulator])
@pytest.mark.parametrize(("policy", "bandit"), SETTINGS)
def test_the_leader_has_the_law_of_the_integral(make: Callable[..., Simulator], policy: DBCARE, bandit: Bandit) -> None:
    outcomes, checkpoint = simulate(make, policy, bandit)
    assert checkpoint == policy.epoch_limit(policy.arms)
    arms = make_arms(bandit)
    assert isinstance(arms, GaussianArms)
    assert fits(outcomes, leader_law(arms, checkpoint))
    assert not fits(outcomes, leader_law(arms, int(1.3 * checkpoint)))


def test_the_law_of_two_arms_and_of_equal_arms() -> None:
    """Two arms: P(first leads) = Phi(gap sqrt(N / 2) / sigma). Equal arms: 1/K each."""
    law = leader_law(GaussianArms(np.array([0.3, 0.1]), np.array([0.7, 0.7])), 50)
    assert law == pytest.approx([stats.norm.cdf(0.2 * 5.0 / 0.7), stats.norm.sf(0.2 * 5.0 / 0.7)], abs=1e-12)
    assert leader_law(GaussianArms(np.zeros(32), np.ones(32)), 9) == pytest.approx(np.full(32, 1 / 32), abs=1e-12)


@pytest.mark.parametrize(("policy", "bandit"), SETTINGS)
def test_the_control_does_not_change_runs(policy: DBCARE, bandit: Bandit, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, _ = simulate(direct_simulator, policy, bandit)
    monkeypatch.setattr(simulators, "find_checkpoint", lambda policy, arms: 0)
    plain, checkpoint = simulate(direct_simulator, policy, bandit)
    assert checkpoint == 0
    assert np.array_equal(watched.recommended, plain.recommended)
    assert np.array_equal(watched.pulls, plain.pulls)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize(("setting", "max_ratio"), [(0, 0.3), (1, 1.01), (2, 0.9)])
def test_the_estimate_agrees_and_has_less_noise(setting: int, max_ratio: float, loss: Loss) -> None:
    """Two independent sets of runs, one with control and one without, agree within 5.4 standard errors (p = 7e-8)."""
    policy, bandit = SETTINGS[setting]
    gaps = np.array(bandit.gaps)
    watched, checkpoint = simulate(direct_simulator, policy, bandit, seed=31)
    arms = make_arms(bandit)
    assert isinstance(arms, GaussianArms)
    law = leader_law(arms, checkpoint)
    controlled = Moments(watched, gaps, Control(checkpoint, law)).total(loss, policy.cost)
    plain = Moments(simulate(direct_simulator, policy, bandit, seed=32)[0], gaps, None).total(loss, policy.cost)
    assert abs(controlled.value - plain.value) < 5.4 * np.hypot(controlled.standard_error, plain.standard_error)
    assert controlled.standard_error < max_ratio * plain.standard_error
    wrong_control = Control(checkpoint, np.roll(law, 1))
    biased = Moments(watched, gaps, wrong_control).total(loss, policy.cost)
    assert abs(biased.value - plain.value) > 5.4 * np.hypot(biased.standard_error, plain.standard_error)


def test_evaluate_reports_the_control() -> None:
    policy, bandit = SETTINGS[1]
    control = evaluate(policy, bandit, runs=2_000, engine="direct").control
    assert control is not None
    arms = make_arms(bandit)
    assert isinstance(arms, GaussianArms)
    assert control.known_error == pytest.approx(1.0 - leader_law(arms, policy.epoch_limit(5))[0], abs=1e-12)
    assert 0 < control.disagreements < 2_000
    assert 0.0 < control.coefficient < 1.0
    assert evaluate(replace(policy, arms=2), Bandit.two_arm(0.2), runs=10, engine="direct").control is None
