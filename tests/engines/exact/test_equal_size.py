"""The fixed-size test, exactly: against simulation, the engine for two arms, and a search of all sizes."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from dbcare import plan
from dbcare.engines.exact.equal_size import OneBest
from dbcare.engines.exact.law import bernoulli_error, gaussian_error
from dbcare.policies import Uniform

RUNS = 200_000


@pytest.mark.parametrize("pulls", [1, 2, 17, 400, 20_000])
@pytest.mark.parametrize(
    ("best", "other"), [(0.05, 0.04), (0.5, 0.3), (0.999, 0.99), (0.3, 0.0), (1.0, 0.6), (1.0, 0.0)]
)
def test_two_rates_are_those_of_the_exact_engine(pulls: int, best: float, other: float) -> None:
    expected = bernoulli_error(pulls, best, other)
    assert OneBest(2, best, other).chance_wrong(pulls) == pytest.approx(expected, rel=1e-4, abs=1e-12)
    wrong = OneBest(2, best, other).chance_wrong(pulls)
    assert OneBest(3, best, other).chance_wrong(pulls) >= wrong * (1.0 - 1e-9)  # more rivals, more wrong choices


@pytest.mark.parametrize("pulls", [1, 9, 100, 3_000])
def test_two_gaussian_arms_are_those_of_the_exact_engine(pulls: int) -> None:
    expected = float(gaussian_error(pulls, 0.2, 1.3)[0])
    assert OneBest(2, 0.2, 0.0, 1.3).chance_wrong(pulls) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("arms", "pulls", "best", "other"), [(3, 900, 0.05, 0.04), (10, 60, 0.3, 0.2), (50, 40, 0.6, 0.5)]
)
def test_rates_of_many_arms_are_those_of_a_simulation(arms: int, pulls: int, best: float, other: float) -> None:
    """Five standard errors fail one time in 1.7 million; without shared ties, the chance would be another."""
    rng = np.random.default_rng(arms)
    ours, largest = rng.binomial(pulls, best, RUNS), np.zeros(RUNS, np.int64)
    ties = np.zeros(RUNS)
    for _ in range(arms - 1):
        rival = rng.binomial(pulls, other, RUNS)
        ties = np.where(rival > largest, 1.0, ties + (rival == largest))
        largest = np.maximum(largest, rival)
    right = float(np.mean(np.where(ours > largest, 1.0, np.where(ours == largest, 1.0 / (1.0 + ties), 0.0))))
    wrong = OneBest(arms, best, other).chance_wrong(pulls)
    error = math.sqrt(wrong * (1.0 - wrong) / RUNS)
    assert 1.0 - right == pytest.approx(wrong, abs=5.0 * error)
    assert 1.0 - float(np.mean(ours > largest)) != pytest.approx(wrong, abs=5.0 * error)


@pytest.mark.parametrize("arms", [3, 20])
def test_gaussian_arms_are_those_of_an_adaptive_integral(arms: int) -> None:
    right, _ = integrate.quad(lambda x: stats.norm.pdf(x - 2.1) * stats.norm.cdf(x) ** (arms - 1), -10.0, 20.0)
    assert OneBest(arms, 0.21, 0.0, 1.0).chance_wrong(100) == pytest.approx(1.0 - right, rel=1e-7)


@pytest.mark.parametrize(
    ("case", "loss", "cost"),
    [
        (OneBest(4, 0.05, 0.04), 0.01, 2.5e-6),
        (OneBest(2, 0.3, 0.2), 1.0, 1e-3),
        (OneBest(3, 1.0, 0.0), 1.0, 1e-4),
        (OneBest(8, 0.5, 0.0, 1.0), 0.5, 1e-4),
        (OneBest(50, 0.2, 0.0, 1.0), 0.2, 1e-4),
        (OneBest(5, 0.01, 0.0, 1.0), 0.01, 1e-3),
    ],
)
def test_the_best_size_loses_least_of_all(case: OneBest, loss: float, cost: float) -> None:
    """Ties make the total of rates uneven; a millionth of it is no difference."""

    def total(size: int) -> float:
        return loss * case.chance_wrong(size) + case.arms * size * cost

    largest = min(math.ceil(loss / (case.arms * cost)), 3_000)
    assert total(case.best_size(loss, cost)) <= min(map(total, range(largest + 1))) * (1.0 + 1e-6)
    assert case.best_size(loss, cost, least=largest) == largest


def test_a_plan_has_both_tests() -> None:
    """The sizes and losses that a referee computed for this plan: 160, 700 and 232, at 0, 65 and 92 of each arm."""
    planned = plan(5, price=0.4, value=20_000, sigma=0.5, gaps=[0.01, 0.05, 0.2], policies=["best-fixed-size"])
    losses = [outlook.total_loss for outlook in planned.outlooks]
    assert losses == pytest.approx([160.0, 699.5, 231.5], abs=0.5)
    assert [outlook.observations for outlook in planned.outlooks] == pytest.approx([0, 5 * 65, 5 * 92], abs=5)
    assert planned.outlooks[0].policy.max_pulls == 0
    options: dict[str, Any] = {"cost": 1e-3, "sigma": 1.0, "gaps": 0.4, "policies": "fixed-size-test"}
    [outlook] = plan(3, **options).outlooks
    assert isinstance(outlook.policy, Uniform)
    lead = 0.4 * math.sqrt(outlook.policy.pulls)
    right, _ = integrate.quad(lambda x: stats.norm.pdf(x - lead) * stats.norm.cdf(x) ** 2, -10.0, 20.0)
    assert outlook.chance_wrong == pytest.approx(1.0 - right, rel=1e-6)
    assert (outlook.evaluation.engine, outlook.observations) == ("exact", 3.0 * outlook.policy.pulls)
    [waiting] = plan(3, **options, not_before=1_000).outlooks
    assert waiting.observations == 1_002
