"""Properties of the elimination policies that hold for any rewards."""

import json
import math
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dbcare.base.checks import MAX_MAGNITUDE
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.elimination import EliminationPolicy
from dbcare.policies.elimination.racing import RATES, Racing, TwoArmConfidence
from dbcare.policies.run import Run
from dbcare.problem.risk import Loss, Risk

settings.register_profile("dbcare", derandomize=True, deadline=None, max_examples=100, database=None)
settings.load_profile("dbcare")

Rewards = npt.NDArray[np.float64]
ARMS = st.integers(2, 40)


@st.composite
def dbcare_policies(draw: st.DrawFn) -> DBCARE:
    """Draw DBCARE policies with costs that allow about 1 to 30 epochs for two arms."""
    arms, sigma = draw(ARMS), draw(st.sampled_from([0.125, 0.5, 1.0]))
    share = draw(st.floats(0.02, 0.9))
    if draw(st.booleans()):
        risk = Risk.misidentification(share / (math.e * arms))  # N*(K) = 1/share
    else:
        risk = Risk.simple_regret(0.4 * share * sigma / (arms - 1))  # N*(K) = 0.552/(0.4 share)^(2/3) >= 1.09
    return DBCARE(risk, arms, sigma, bound=draw(st.sampled_from([0.5, 1.0, 7.0])))


@st.composite
def confidence_policies(draw: st.DrawFn) -> Racing | TwoArmConfidence:
    delta, sigma = draw(st.floats(1e-6, 0.1)), draw(st.sampled_from([0.125, 0.5, 1.0]))
    if draw(st.booleans()):
        rate = draw(st.sampled_from(sorted(RATES)))
        return TwoArmConfidence(delta, sigma, rate, max_pulls=draw(st.integers(2, 60)))
    arms = draw(ARMS)
    return Racing(arms, delta, sigma, max_pulls=draw(st.integers(arms, 12 * arms)))


POLICIES = st.one_of(dbcare_policies(), confidence_policies())


@st.composite
def with_rewards(draw: st.DrawFn, policies: st.SearchStrategy[Any], elements: st.SearchStrategy[float]) -> Any:
    """Draw a policy and rewards[arm, pull], for as many pulls as an arm can get."""
    policy = draw(policies)
    epochs = int(max(policy.tables.last_epoch))
    return policy, draw(arrays(np.float64, (policy.arms, epochs), elements=elements, fill=elements))


# All rewards that a run accepts.
ANY = st.floats(-MAX_MAGNITUDE, MAX_MAGNITUDE)
# Near the radius, where decisions are made.
MIXED = st.one_of(st.floats(-3.0, 3.0), st.sampled_from([0.0, 1.0]), ANY)
# Multiples of 1/64: sums are exact, so adding a constant changes no difference.
DYADIC = st.integers(-1024, 1024).map(lambda numerator: numerator / 64.0)


def play(policy: EliminationPolicy, rewards: Rewards, seed: int = 0) -> tuple[Run, list[list[int]]]:
    """Step a run until it stops; also return the arms asked for, epoch by epoch, each epoch sorted."""
    run = policy.start(seed=seed)
    pulls = [0] * policy.arms
    epochs: list[list[int]] = []
    while (arm := run.ask()) is not None:
        if not epochs or arm in epochs[-1]:
            epochs.append([])
        epochs[-1].append(arm)
        run.tell(float(rewards[arm, pulls[arm]]))
        pulls[arm] += 1
    return run, [sorted(epoch) for epoch in epochs]


@given(with_rewards(POLICIES, MIXED))
def test_survivors_never_grow(example: tuple[EliminationPolicy, Rewards]) -> None:
    """Each epoch pulls a subset of the arms pulled before, starting with all; the best arm survives."""
    policy, rewards = example
    run, epochs = play(policy, rewards)
    assert epochs[0] == list(range(policy.arms))
    for before, after in pairwise(epochs):
        assert set(after) <= set(before)
        assert len(after) > 1
    dropped = [event.arm for event in run.events]
    assert len(set(dropped)) == len(dropped) < policy.arms
    assert {*range(policy.arms)} - set(dropped) <= set(epochs[-1])
    assert run.recommendation() not in dropped
    sums = {arm: math.fsum(rewards[arm, : len(epochs)]) for arm in epochs[-1]}
    scale = math.fsum(abs(rewards[arm, epoch]) for arm in epochs[-1] for epoch in range(len(epochs)))
    rounding = 1e-12 * scale + sys.float_info.min  # means of the smallest numbers are 0
    assert sums[run.recommendation()] >= max(sums.values()) - rounding


@given(with_rewards(POLICIES, MIXED))
def test_pulls_stay_within_the_bound(example: tuple[EliminationPolicy, Rewards]) -> None:
    policy, rewards = example
    run, epochs = play(policy, rewards)
    assert run.pulls == sum(len(epoch) for epoch in epochs) <= policy.max_pulls


@given(with_rewards(dbcare_policies(), MIXED))
def test_pulls_of_dbcare_stay_within_the_lemma_and_one_epoch(example: tuple[DBCARE, Rewards]) -> None:
    """Lemma 4 bounds pulls with a real N*; the last epoch adds at most one pull of each arm."""
    policy, rewards = example
    cost, arms = policy.risk.single_cost, policy.arms
    if policy.risk.loss is Loss.MISIDENTIFICATION:
        lemma = 2 * math.log(arms) / (math.e * cost)
    else:
        lemma = 1.5 * math.log(arms) * (arms * policy.sigma**2) ** (1 / 3) / cost ** (2 / 3)
    run, _ = play(policy, rewards)
    assert run.pulls <= lemma + arms


@st.composite
def late_drops(draw: st.DrawFn) -> tuple[DBCARE, list[int]]:
    """Draw a DBCARE policy and an order in which to drop its arms, each in the last epoch it may reach."""
    policy = draw(dbcare_policies())
    return policy, draw(st.permutations(range(policy.arms)))


@given(late_drops())
def test_the_bound_on_pulls_is_attained(example: tuple[DBCARE, list[int]]) -> None:
    """With k arms left, the next arm to be dropped fails in epoch last(k): no smaller bound would hold."""
    policy, order = example
    rewards = np.zeros((policy.arms, policy.epoch_limit(2)))
    for rank, arm in enumerate(order[:-1]):
        rewards[arm, policy.epoch_limit(policy.arms - rank) - 1] = -1e6
    run, _ = play(policy, rewards)
    assert run.pulls == policy.max_pulls
    assert run.recommendation() == order[-1]


@given(with_rewards(POLICIES, MIXED), st.randoms(use_true_random=False))
def test_permuting_the_arms_permutes_the_result(example: tuple[EliminationPolicy, Rewards], random: Any) -> None:
    """new[i] is the old arm that is now called i; a tie may be broken differently, but only among equals."""
    policy, rewards = example
    new = list(range(policy.arms))
    random.shuffle(new)
    old_run, old_epochs = play(policy, rewards)
    new_run, new_epochs = play(policy, rewards[new])
    assert [sorted(new[arm] for arm in epoch) for epoch in new_epochs] == old_epochs
    assert {new[event.arm]: event.text for event in new_run.events} == {e.arm: e.text for e in old_run.events}
    pulled = len(old_epochs)
    old_total, new_total = 0.0, 0.0
    for epoch in range(pulled):  # in the order of the run, so that the rounding is the same
        old_total += rewards[old_run.recommendation(), epoch]
        new_total += rewards[new[new_run.recommendation()], epoch]
    assert old_total / pulled == new_total / pulled


@given(with_rewards(POLICIES, DYADIC), DYADIC, st.integers(0, 2**32))
def test_a_constant_added_to_all_rewards_changes_nothing(
    example: tuple[EliminationPolicy, Rewards], constant: float, seed: int
) -> None:
    policy, rewards = example
    run, epochs = play(policy, rewards, seed)
    shifted, shifted_epochs = play(policy, rewards + constant, seed)
    assert shifted_epochs == epochs
    assert shifted.events == run.events
    assert shifted.recommendation() == run.recommendation()


@given(with_rewards(POLICIES, MIXED), st.integers(0, 2**32), st.floats(0.0, 1.0))
def test_the_state_survives_json_at_any_pull(
    example: tuple[EliminationPolicy, Rewards], seed: int, moment: float
) -> None:
    """A run that is paused at any pull, stored as JSON and resumed ends as it would have otherwise."""
    policy, rewards = example
    whole, _ = play(policy, rewards, seed)
    run = policy.start(seed=seed)
    pulls = [0] * policy.arms
    while (arm := run.ask()) is not None:
        run.tell(float(rewards[arm, pulls[arm]]))
        pulls[arm] += 1
        if run.pulls == math.ceil(moment * whole.pulls):
            run = policy.resume(json.loads(json.dumps(run.snapshot(), allow_nan=False)))
    assert run.snapshot() == whole.snapshot()
    assert run.why() == whole.why()
    assert run.recommendation() == whole.recommendation()


@given(with_rewards(dbcare_policies(), MIXED))
def test_every_drop_obeys_the_radius_of_algorithm_1(example: tuple[DBCARE, Rewards]) -> None:
    """Recompute survivors from the rewards and the formula written here, if no mean is within 1e-9 of the radius."""
    policy, rewards = example
    _, epochs = play(policy, rewards)
    alive = set(range(policy.arms))
    totals = [0.0] * policy.arms
    for n, asked in enumerate(epochs, start=1):
        assert asked == sorted(alive)
        for arm in asked:
            totals[arm] += rewards[arm, n - 1]
        radius = math.sqrt(4 * policy.sigma**2 / n * math.log(policy.arms * n / policy.delta))
        best = max(totals[arm] for arm in asked) / n
        deficits = {arm: best - totals[arm] / n for arm in asked}
        assume(all(abs(deficit - radius) > 1e-9 for deficit in deficits.values()))
        alive = {arm for arm in asked if deficits[arm] <= radius}
    assert len(alive) == 1 or len(epochs) == policy.epoch_limit(len(alive))
