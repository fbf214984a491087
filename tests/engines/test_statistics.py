"""Estimates from grouped moments equal the textbook formulas."""

import numpy as np
import pytest
from scipy import stats

from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.statistics import Control, Moments, clopper_pearson
from dbcare.problem.risk import Loss

RUNS = 5_000
GAPS = np.array([0.0, 0.3, 0.1, 0.0])
COST = 1e-3


@pytest.fixture
def outcomes() -> Outcomes:
    generator = np.random.default_rng(3)
    runs = Outcomes.empty(RUNS, control=True)
    runs.recommended[:] = generator.integers(0, 4, RUNS)
    runs.pulls[:] = generator.integers(1_000_000, 1_000_400, RUNS) + 100 * runs.recommended
    runs.leader[:] = np.where(generator.random(RUNS) < 0.9, runs.recommended, generator.integers(0, 4, RUNS))
    return runs


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("cost", [0.0, COST])
def test_without_control(outcomes: Outcomes, loss: Loss, cost: float) -> None:
    gap = GAPS[outcomes.recommended]
    losses = (gap > 0) if loss is Loss.MISIDENTIFICATION else gap
    sample = losses + cost * outcomes.pulls
    estimate = Moments(outcomes, GAPS, None).total(loss, cost)
    assert estimate.value == pytest.approx(sample.mean(), rel=1e-12)
    assert estimate.standard_error == pytest.approx(sample.std(ddof=1) / np.sqrt(RUNS), rel=1e-9)


@pytest.mark.parametrize("loss", list(Loss))
def test_with_control(outcomes: Outcomes, loss: Loss) -> None:
    """Each half of the runs uses the regression coefficient of the other, shrunk toward 1 by one run."""
    law = np.array([0.4, 0.3, 0.2, 0.1])
    by_arm = np.array([0.0, 1.0, 1.0, 0.0]) if loss is Loss.MISIDENTIFICATION else GAPS
    risk = by_arm[outcomes.recommended] + COST * outcomes.pulls
    control = by_arm[outcomes.leader]
    halves = (slice(0, RUNS // 2), slice(RUNS // 2, RUNS))
    values, variances = [], []
    for here, there in (halves, halves[::-1]):
        covariance = np.cov(risk[there], control[there], ddof=0) * RUNS / 2
        largest = by_arm.max() ** 2
        slope = (covariance[0, 1] + largest) / (covariance[1, 1] + largest)
        sample = risk[here] - slope * control[here]
        values.append(sample.mean() + slope * by_arm @ law)
        variances.append(sample.var(ddof=1) / (RUNS / 2))
    moments = Moments(outcomes, GAPS, Control(5, law))
    assert moments.disagreements == np.count_nonzero(outcomes.recommended != outcomes.leader)
    assert moments.total(loss, COST).value == pytest.approx(np.mean(values), rel=1e-12)
    assert moments.total(loss, COST).standard_error == pytest.approx(np.sqrt(np.sum(variances) / 4), rel=1e-9)
    # So many plain runs would have this standard error; without a control, as many as there are.
    worth = risk.var(ddof=1) / (np.sum(variances) / 4)
    assert worth > 1.1 * RUNS
    assert moments.plain_runs(loss, COST) == pytest.approx(worth, rel=1e-9)
    assert Moments(outcomes, GAPS, None).plain_runs(loss, COST) == RUNS


def test_no_disagreements_count_as_one(outcomes: Outcomes) -> None:
    """In each half, the variance of the mean is 1/m^2, and that of the whole (1/m^2 + 1/m^2)/4, with m = RUNS/2."""
    outcomes.leader[:] = outcomes.recommended
    estimate = Moments(outcomes, GAPS, Control(5, np.full(4, 0.25))).total(Loss.MISIDENTIFICATION, 0.0)
    assert estimate.value == pytest.approx(0.5, rel=1e-12)
    assert estimate.standard_error == pytest.approx(np.sqrt(2.0) / RUNS, rel=1e-3)


def test_a_control_counts_for_no_fewer_runs_than_there_are(outcomes: Outcomes) -> None:
    """Nothing was lost, and next to nothing spent, so the error is that of events not yet seen."""
    outcomes.recommended[:] = outcomes.leader[:] = 0
    moments = Moments(outcomes, GAPS, Control(5, np.full(4, 0.25)))
    plain = 1e-9 * outcomes.pulls.std(ddof=1) / np.sqrt(RUNS)
    assert moments.total(Loss.MISIDENTIFICATION, 1e-9).standard_error > 1e3 * plain
    assert moments.plain_runs(Loss.MISIDENTIFICATION, 1e-9) == RUNS


def test_one_run_has_an_infinite_standard_error(outcomes: Outcomes) -> None:
    assert Moments(outcomes.part(0, 1), GAPS, None).total(Loss.SIMPLE_REGRET, COST).standard_error == np.inf


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (10, 10), (3, 10), (1, 100_000), (4_567, 100_000)])
def test_clopper_pearson(successes: int, trials: int) -> None:
    interval = stats.binomtest(successes, trials).proportion_ci(0.95, "exact")
    assert clopper_pearson(successes, trials) == pytest.approx((interval.low, interval.high), rel=1e-9)
