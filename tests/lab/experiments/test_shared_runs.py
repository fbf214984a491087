"""Breakeven at several costs in one pass of runs, against runs of each policy alone."""

import numpy as np
import pytest

from dbcare import DBCARE, Bandit, Breakeven, Loss, Risk
from dbcare.engines.simulate.draws import make_arms
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.runs import extend_runs
from dbcare.engines.simulate.simulators import direct_simulator
from dbcare.lab.experiments.shared_runs import CostRuns, without_cost

COSTS = (1e-2, 3e-3, 1e-3, 3e-4)
RUNS = 300
SEED = 5
BANDIT = Bandit.drug_binary()


def make_policies(loss: Loss) -> list[Breakeven]:
    return [Breakeven(Risk(loss, cost), 5, sigma=0.5, bound=1.0, largest_sigma=0.5) for cost in COSTS]


def simulate_alone(policy: Breakeven) -> Outcomes:
    simulator = direct_simulator(policy, make_arms(BANDIT), SEED, tallied=True)
    return extend_runs(simulator.allocate(0), simulator, RUNS, threads=1)


def is_same(one: Outcomes, other: Outcomes) -> bool:
    pairs = (
        (one.recommended, other.recommended),
        (one.pulls, other.pulls),
        (one.undecided, other.undecided),
        (one.tallies.pulls, other.tallies.pulls),
        (one.tallies.sums, other.tallies.sums),
    )
    return all(np.array_equal(left, right) for left, right in pairs)


@pytest.mark.parametrize("loss", list(Loss))
def test_every_cost_has_the_runs_of_its_own_policy(loss: Loss) -> None:
    """To the bit, also where a run goes on after its losses were computed anew; some runs do."""
    policies = make_policies(loss)
    together = CostRuns(policies, make_arms(BANDIT), SEED)
    together.extend(dict.fromkeys(range(len(policies)), RUNS))
    alone = [simulate_alone(policy) for policy in policies]
    for shared, own in zip(together.outcomes, alone, strict=True):
        assert is_same(shared, own)
    assert not is_same(together.outcomes[0], alone[1])
    assert together.pulls_simulated > alone[-1].pulls.sum()
    assert together.pulls_simulated < sum(own.pulls.sum() for own in alone)


def test_runs_may_be_added_at_some_of_the_costs() -> None:
    policies = make_policies(Loss.MISIDENTIFICATION)
    at_once, in_parts = (CostRuns(policies, make_arms(BANDIT), SEED) for _ in range(2))
    at_once.extend(dict.fromkeys(range(len(policies)), RUNS))
    in_parts.extend({place: 20 + 30 * place for place in range(len(policies))})
    in_parts.extend({0: 130, 2: 70 + 80})
    in_parts.extend(dict.fromkeys(range(len(policies)), RUNS))
    assert all(map(is_same, at_once.outcomes, in_parts.outcomes))


def test_only_policies_whose_choices_do_not_depend_on_the_cost_share_runs() -> None:
    risk, other = Risk.simple_regret(1e-3), Risk.simple_regret(2e-3)
    shared = without_cost(Breakeven(risk, 3, sigma=0.5))
    assert shared is not None
    assert shared == without_cost(Breakeven(other, 3, sigma=0.5))
    assert shared != without_cost(Breakeven(other, 3, sigma=0.6))
    assert shared != without_cost(Breakeven(Risk.misidentification(1e-3), 3, sigma=0.5))
    assert without_cost(DBCARE(risk, 3, bound=1.0)) is None
    assert without_cost(Breakeven(Risk.simple_regret([1e-3, 2e-3, 1e-3]), 3, sigma=0.5)) is None
    assert without_cost(Breakeven(risk, 3, sigma=0.5, not_before=100)) is None
    assert without_cost(Breakeven(Risk.simple_regret(0.9), 3, sigma=0.5, bound=1.0)) is None  # it guesses
