"""What comparing within blocks gains and costs, on Gaussian blocks: bounds hold with five standard errors to spare.

So a sound implementation fails with a probability below 1e-6; each test has a negative control.
"""

import math

import pytest

from dbcare import Bandit, Breakeven, BreakevenRounds, Policy, Risk, evaluate
from dbcare.engines import Evaluation
from dbcare.problem import GaussianBlocks

pytestmark = pytest.mark.statistical

CELLS = [(2, 0.3), (4, 0.5), (8, 0.3)]  # arms, and the gap of the best
RISKS = {"misidentification": Risk.misidentification(1e-4), "simple_regret": Risk.simple_regret(1e-4)}
DRIFT = 0.5
RUNS = 3_000


def measure(policy: Policy, gap: float, correlation: float = 0.0, drift: float = 0.0, runs: int = RUNS) -> Evaluation:
    bandit = GaussianBlocks.of([gap] + [0.0] * (policy.arms - 1), correlation=correlation, drift=drift)
    return evaluate(policy, bandit, runs=runs, seed=3)


def divide(pairs: list[tuple[Evaluation, Evaluation]]) -> tuple[float, float]:
    """Return the geometric mean of ratios of risks, and its relative standard error."""
    logs = [math.log(one.risk / other.risk) for one, other in pairs]
    squares = [(each.standard_error / each.risk) ** 2 for pair in pairs for each in pair]
    return math.exp(sum(logs) / len(logs)), math.sqrt(sum(squares)) / len(logs)


@pytest.mark.parametrize("name", RISKS)
def test_blocks_cost_little_without_correlation_and_save_most_with_it(name: str) -> None:
    """Over Breakeven with a known sigma, on a fresh block for every pull; the bars are those of the benchmark."""
    risk = RISKS[name]
    base = {
        (arms, gap): evaluate(Breakeven(risk, arms, 1.0, math.inf), Bandit.one_sparse(arms, gap), runs=RUNS, seed=4)
        for arms, gap in CELLS
    }
    ratios = {}
    for correlation, bar in ((0.0, 1.25), (0.9, 0.35)):
        pairs = [(measure(BreakevenRounds(risk, arms), gap, correlation), base[arms, gap]) for arms, gap in CELLS]
        ratios[correlation], error = divide(pairs)
        assert ratios[correlation] * (1.0 + 5.0 * error) <= bar
    assert ratios[0.0] > 0.35  # negative control: without correlation there is nothing to gain
    late = {(arms, gap): BreakevenRounds(risk, arms, first_blocks=400) for arms, gap in CELLS}
    ratio, error = divide([(measure(late[cell], cell[1], runs=RUNS // 6), base[cell]) for cell in CELLS])
    assert ratio * (1.0 - 5.0 * error) > 1.25  # negative control: comparing too late


@pytest.mark.parametrize("name", RISKS)
def test_a_common_drift_does_no_harm_to_rounds(name: str) -> None:
    """Negative control: it multiplies the risk of Breakeven, which tries arms at different times."""
    risk = RISKS[name]
    rounds = BreakevenRounds(risk, 8)
    ratio, error = divide([(measure(rounds, 0.5, drift=DRIFT), measure(rounds, 0.5))])
    assert ratio * (1.0 + 5.0 * error) <= 1.3
    adaptive = Breakeven(risk, 8, 1.0, math.inf)
    runs = RUNS if name == "misidentification" else 2 * RUNS  # simple regrets vary more
    ratio, error = divide([(measure(adaptive, 0.5, drift=DRIFT, runs=runs), measure(adaptive, 0.5, runs=runs))])
    assert ratio * (1.0 - 5.0 * error) > 1.5
