"""The compiled simulator makes the same decisions as a run stepped by hand, pull by pull."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from dbcare import DBCARE, Bandit, Breakeven, BreakevenRacing, Policy, Risk
from dbcare.engines.simulate.draws import Arms, GaussianArms, make_arms, make_drawing
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.rng import begun
from dbcare.engines.simulate.simulators import direct_simulator, trace
from dbcare.policies import (
    Guess,
    KnownGapOracle,
    Racing,
    SequentialHalving,
    SuccessiveRejects,
    TwoArmConfidence,
    Uniform,
)
from dbcare.policies.policy import EpochPolicy
from dbcare.policies.run import Run

SEED = 11
RUNS = 8


def policies(arms: int) -> Iterator[Policy]:
    regret, error = Risk.simple_regret(1e-3), Risk.misidentification(1e-3)
    yield DBCARE(regret, arms)
    yield DBCARE(error, arms, sigma=0.5)
    yield BreakevenRacing(regret, arms, sigma=0.5)
    yield Breakeven(regret, arms, sigma=0.5)
    yield Breakeven(error, arms, sigma=0.5, sigma_pulls=math.inf)
    yield Breakeven(Risk.misidentification([1e-3 * (1 + arm % 3) for arm in range(arms)]), arms, sigma=None)
    yield Racing(arms, delta=0.1, sigma=0.5, max_pulls=4_000)
    yield SequentialHalving(arms, 30 * arms)
    yield SequentialHalving(arms, 30 * arms, ranking="all")
    yield SuccessiveRejects(arms, 20 * arms)
    yield Uniform(arms, 9)
    yield Guess(arms)
    if arms == 2:
        yield TwoArmConfidence(0.05, sigma=0.5, max_pulls=4_000)
        yield KnownGapOracle(regret, gap=0.3)
        yield KnownGapOracle(error, gap=0.3)


def bandits(arms: int) -> Iterator[Bandit]:
    means = np.linspace(0.7, 0.2, arms).round(3).tolist()
    yield Bandit.gaussian(means, sigma=0.6)
    yield Bandit.categorical((0.0, 0.2, 0.5, 0.7), [(1.0 - mean, mean / 2, mean / 4, mean / 4) for mean in means])
    if arms == 2:  # drawn by the same code as categorical arms
        yield Bandit.bernoulli(means)
        yield Bandit.empirical([[mean, 0.5, mean + 0.25, 0.5] for mean in means])


def step_traced(policy: Policy, truth: Arms, number: int) -> Run:
    """Step a run by hand with the rewards of the kernel for any policy, whose decisions must be the same."""
    compiled = trace(policy, truth, SEED, number)
    run = Run.fresh(policy, compiled.tie)
    for arm, reward in compiled.pulls:
        assert run.ask() == arm
        run.tell(reward)
    assert run.recommendation() == compiled.recommended
    return run


def step_drawn(policy: Policy, truth: Arms, number: int) -> Run:
    """Step a run by hand, drawing its rewards one by one."""
    settle, draw = make_drawing(truth)
    work = np.zeros(2 * policy.arms)
    for arm in range(policy.arms):
        settle(truth, work, arm, arm)
    tie, *words = begun(SEED, number)
    run = Run.fresh(policy, tie)
    while (asked := run.ask()) is not None:
        reward, *words = draw(truth, work, asked, *(np.uint64(word) for word in words))
        run.tell(reward)
    return run


@pytest.mark.parametrize("arms", [2, 5, 32])
def test_compiled_runs_equal_runs_stepped_by_hand(arms: int) -> None:
    for policy in policies(arms):
        for bandit in bandits(arms):
            truth = make_arms(bandit)
            outcomes = Outcomes.empty(RUNS, control=True)
            direct_simulator(policy, truth, SEED).block()(outcomes, 0)
            # Policies in epochs have a kernel of their own; they need the one for any policy only to be traced.
            drawn = isinstance(policy, EpochPolicy) and not isinstance(truth, GaussianArms)
            for number in range(RUNS if arms < 32 else 3):  # such runs are long
                run = (step_drawn if drawn else step_traced)(policy, truth, number)
                assert run.ask() is None
                assert run.recommendation() == outcomes.recommended[number]
                assert run.pulls == outcomes.pulls[number]


def test_a_changed_reward_changes_a_run() -> None:
    """The test above can fail: it depends on every reward."""
    policy, truth = Racing(2, 0.1, max_pulls=4_000), make_arms(Bandit.two_arm(1.0))
    compiled = trace(policy, truth, SEED, 0)
    run = Run.fresh(policy, compiled.tie)
    for _, reward in compiled.pulls[:-1]:
        run.tell(reward)
    run.tell(compiled.pulls[-1][1] + 100.0)
    assert (run.ask() is None, run.recommendation()) != (True, compiled.recommended)
