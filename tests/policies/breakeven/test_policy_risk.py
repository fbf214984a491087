"""Breakeven's risk against its bars, on a small fixed subset of the paper's settings.

Each check concerns a geometric mean of ratios, which must clear its bar by 5 standard errors (one-sided 3e-7) at a
fixed seed; the negative controls must miss the same bars by as much. `python -m benchmarks policies` measures all
settings.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from dbcare import DBCARE, Bandit, Breakeven, BreakevenRacing, Loss, Policy, Risk, evaluate
from dbcare.engines import Evaluation, best_sprt

pytestmark = pytest.mark.statistical

COST, RUNS, SIGMAS = 1e-4, 1_000, 5.0
BANDITS = [
    Bandit.two_arm(0.3),
    Bandit.one_sparse(8, 0.5),
    Bandit.linear_decay(8, 0.5),
    Bandit.one_sparse(16, 1.0),
    Bandit.linear_decay(16, 0.7),
]
Maker = Callable[[Risk, Bandit], Policy]


def dbcare(risk: Risk, bandit: Bandit) -> Policy:
    return DBCARE(risk, len(bandit.arms), bound=3.0)


def racing(risk: Risk, bandit: Bandit) -> Policy:
    return BreakevenRacing(risk, len(bandit.arms))


@cache  # the same maker for the same values, so that `measure` knows it again
def breakeven(sigma: float | None = 1.0, pulls: float = 6.0) -> Maker:
    return lambda risk, bandit: Breakeven(risk, len(bandit.arms), sigma, pulls, bound=3.0)


@cache  # several checks compare with the same policy
def measure(make: Maker, loss: Loss, bandit: Bandit, runs: int, seed: int) -> Evaluation:
    risk = Risk(loss, COST)
    return evaluate(make(risk, bandit), bandit, risk, runs=runs, seed=seed)


def log_ratio(
    ours: Maker, theirs: Maker, losses: Sequence[Loss], bandits: Sequence[Bandit], runs: int = RUNS
) -> tuple[float, float]:
    """Return the mean logarithm of the ratio of risks, and its standard error."""
    total, variance, cells = 0.0, 0.0, 0
    for loss in losses:
        for place, bandit in enumerate(bandits):
            one, other = (
                measure(make, loss, bandit, runs, 100 * place + turn) for turn, make in enumerate((ours, theirs))
            )
            total += math.log(one.risk / other.risk)
            variance += (one.standard_error / one.risk) ** 2 + (other.standard_error / other.risk) ** 2
            cells += 1
    return total / cells, math.sqrt(variance) / cells


def is_below(bar: float, estimate: tuple[float, float]) -> bool:
    return estimate[0] + SIGMAS * estimate[1] < math.log(bar)


def is_above(bar: float, estimate: tuple[float, float]) -> bool:
    return estimate[0] - SIGMAS * estimate[1] > math.log(bar)


@pytest.mark.parametrize(("policy", "bar"), [(breakeven(), 0.34), (racing, 0.42)], ids=["Breakeven", "BreakevenRacing"])
def test_the_risk_is_about_a_third_of_dbcares(policy: Maker, bar: float) -> None:
    assert is_below(bar, log_ratio(policy, dbcare, list(Loss), BANDITS))


@pytest.mark.parametrize("sigma", [0.5, 2.0, None])
def test_a_wrong_or_unknown_sigma_costs_little(sigma: float | None) -> None:
    """Half, double or no sigma: at most 1.35 times the risk with the right one; not so if a wrong one is trusted."""
    right = breakeven(1.0, math.inf)
    assert is_below(1.35, log_ratio(breakeven(sigma), right, list(Loss), BANDITS))
    if sigma is not None:
        assert is_above(1.35, log_ratio(breakeven(sigma, math.inf), right, list(Loss), BANDITS))


@pytest.mark.parametrize("loss", list(Loss))
def test_rates_of_a_few_percent(loss: Loss) -> None:
    """Rates of 5% and 4%, c = 1e-5, sigma 0.5 stated: at most 0.7 of the risk of trusting it, by 5 standard errors.

    Negative control: the rule that trusts it, with other random numbers, misses the bar.
    """
    bandit, risk = Bandit.bernoulli([0.05, 0.04]), Risk(loss, 1e-5)

    def measure_here(make: Maker, seed: int) -> tuple[float, float]:
        evaluation = evaluate(
            make(risk, bandit), bandit, risk, runs=800 if loss is Loss.MISIDENTIFICATION else 6_000, seed=seed
        )
        return math.log(evaluation.risk), evaluation.standard_error / evaluation.risk

    trusting = breakeven(0.5, math.inf)
    base = measure_here(trusting, 1)
    for make, expected in ((breakeven(0.5), True), (trusting, False)):
        log_risk, error = measure_here(make, 2)
        assert is_below(0.7, (log_risk - base[0], math.hypot(error, base[1]))) is expected


@pytest.mark.parametrize(("loss", "bar"), [(Loss.MISIDENTIFICATION, 1.4), (Loss.SIMPLE_REGRET, 1.25)])
def test_the_risk_is_near_that_of_the_known_gap_sprt(loss: Loss, bar: float) -> None:
    """For two arms and gaps from 0.1 to 0.8; DBCARE misses the bar."""
    bandits = [Bandit.two_arm(gap) for gap in (0.1, 0.2, 0.4, 0.8)]

    def sprt(risk: Risk, bandit: Bandit) -> Policy:
        return best_sprt(risk, bandit.smallest_gap)

    assert is_below(bar, log_ratio(breakeven(), sprt, [loss], bandits, 3 * RUNS))
    assert is_above(bar, log_ratio(dbcare, sprt, [loss], bandits))
