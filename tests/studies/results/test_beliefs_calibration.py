"""Whether what studies say when they stop is true on average; `python -m benchmarks calibration` has many cells."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy import stats

from dbcare.studies.record.statistics import ArmStatistics
from dbcare.studies.results.beliefs import ArmRewards, Beliefs
from dbcare.studies.settings import Settings

pytestmark = pytest.mark.statistical

COST = 1e-3
CELLS = {(3, 2.0): 150, (20, 2.0): 200}  # arms and spread of their means over (sigma^2 c)^(1/3), and studies
LEAST = {3: 0.4, 20: 1.0}  # stated over actual loss, by arms


@dataclass(frozen=True)
class Stops:
    """What studies said at their stops, and what was true, one entry each."""

    stated: np.ndarray
    weighed: np.ndarray  # the loss that the rule weighs
    actual: np.ndarray
    covers: np.ndarray
    covers_naively: np.ndarray
    bias: np.ndarray
    naive_bias: np.ndarray


@cache
def run_studies(arms: int, spread: float) -> Stops:
    """Run Breakeven on Gaussian rewards until it stops; the true means are drawn anew for each study."""
    settings = Settings(tuple(f"arm {number}" for number in range(arms)), COST, sigma=1.0)
    rows = []
    for seed in range(CELLS[arms, spread]):
        generator = np.random.default_rng([arms, seed])
        truth = spread * COST ** (1.0 / 3.0) * generator.standard_normal(arms)
        run = settings.built_policy.start(seed=seed)
        statistics = [ArmStatistics() for _ in range(arms)]
        while (arm := run.ask()) is not None:
            reward = float(generator.normal(truth[arm]))
            run.tell(reward)
            statistics[arm].add(reward)
        chosen = run.recommendation()
        if not statistics[chosen].variety.is_enough:
            continue
        beliefs = Beliefs(settings, range(arms), map(ArmRewards.of, statistics))
        interval, estimate = beliefs.interval(chosen), beliefs.estimate(chosen)
        assert interval is not None
        assert estimate is not None
        mean, error = truth[chosen], math.sqrt(beliefs.variance_of(chosen) / statistics[chosen].trials)
        rows.append(
            (
                beliefs.expected_loss(chosen),
                max(settings.built_policy.expected_losses(run.state) or ()),
                truth.max() - mean,
                interval[0] <= mean <= interval[1],
                abs(statistics[chosen].mean - mean) <= 1.96 * error,
                (estimate - mean) / error,
                (statistics[chosen].mean - mean) / error,
            )
        )
    return Stops(*np.array(rows, dtype=np.float64).T)


def standard_errors_above(values: np.ndarray) -> float:
    """Return how many standard errors a mean is above 0."""
    return float(values.mean() / (values.std() / math.sqrt(len(values))))


@pytest.mark.parametrize("cell", CELLS)
def test_stated_losses_are_those_that_studies_have(cell: tuple[int, float]) -> None:
    """Within a factor of 0.4, or 1 for many arms, to 2.2 by 5 standard errors: a chance below 3e-7 each if they are.

    Negative control: the loss to the strongest rival alone is too small for many arms, by as many standard errors.
    """
    stops = run_studies(*cell)
    assert len(stops.stated) > 0.9 * CELLS[cell]
    assert standard_errors_above(stops.stated - 2.2 * stops.actual) < 5.0
    assert standard_errors_above(LEAST[cell[0]] * stops.actual - stops.stated) < 5.0
    if cell[0] == 20:
        assert standard_errors_above(LEAST[cell[0]] * stops.actual - stops.weighed) > 5.0


@pytest.mark.parametrize("cell", CELLS)
def test_intervals_cover_and_estimates_are_hardly_biased(cell: tuple[int, float]) -> None:
    """90% of intervals or more: with 90%, fewer have a chance below 1e-6. The bias is below 0.7 standard errors.

    Negative control: for many arms, the usual intervals fail both.
    """
    stops = run_studies(*cell)
    studies = len(stops.covers)
    least = int(stats.binom.ppf(1e-6, studies, 0.9))
    assert stops.covers.sum() >= least
    assert standard_errors_above(stops.bias - 0.7) < 5.0
    if cell[0] == 20:
        assert stops.covers_naively.sum() < least
        assert standard_errors_above(stops.naive_bias - 0.7) > 5.0
