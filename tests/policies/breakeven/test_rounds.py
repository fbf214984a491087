"""BreakevenRounds against a slow second implementation, its promises, and its sentences."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dbcare.errors import InvalidValueError
from dbcare.policies.breakeven import pooled_rounds
from dbcare.policies.breakeven.rounds import BreakevenRounds
from dbcare.policies.rule import TIE_MODULUS, BlockRule
from dbcare.policies.run import Run
from dbcare.problem.risk import Loss, Risk
from tests.helpers.slow_rounds import SlowRounds

MODES = {
    "rounds": {},
    "pool": {"pool": 40},
    "folds": {"pool": 12, "only_these_blocks": True, "first_blocks": 3},
}


def draw_rewards(generator: np.random.Generator, arms: int, blocks: int, *, binary: bool) -> npt.NDArray[np.float64]:
    """Return rewards by block and arm: half of the variance is the block's, and arm 0 is better by 0.2."""
    common, own = generator.normal(size=(blocks, 1)), generator.normal(size=(blocks, arms))
    rewards = 0.2 * (np.arange(arms) == 0) + 0.6 * common + 0.6 * own
    return np.asarray((rewards > 0.1).astype(float) if binary else rewards)


def next_block(run: Run, arm: int) -> int:
    assert isinstance(run.policy.rule, BlockRule)
    return run.policy.rule.block(run.state, run.policy.tables, arm)


def play(run: Run, rewards: npt.NDArray[np.float64]) -> list[int]:
    """Let a run ask for rewards until it stops; return the arms asked for."""
    asked = []
    while (arm := run.ask()) is not None:
        asked.append(arm)
        run.tell(rewards[next_block(run, arm), arm])
    return asked


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("binary", [False, True], ids=["Gaussian", "binary"])
def test_decisions_are_those_of_a_slow_second_implementation(loss: Loss, mode: str, binary: bool) -> None:
    for seed in range(3):
        generator = np.random.default_rng([seed, binary])
        arms = int(generator.integers(2, 7))
        cost = tuple(generator.uniform(0.001, 0.006, arms).tolist()) if seed % 2 else 0.003
        policy = BreakevenRounds(Risk(loss, cost), arms, bound=2.0, **MODES[mode])  # type: ignore[arg-type]  # a table
        rewards = draw_rewards(generator, arms, policy.pool or 2_000, binary=binary)
        run = policy.start(seed=seed)
        slow = SlowRounds(policy, int(np.random.default_rng(seed).integers(1, TIE_MODULUS)))
        while (arm := run.ask()) is not None:
            assert slow.ask() == arm, f"seed {seed}, pull {run.pulls + 1}"
            reward = float(rewards[next_block(run, arm), arm])
            run.tell(reward)
            slow.tell(arm, reward)
        assert slow.ask() is None
        assert run.recommendation() == slow.recommendation()


def test_what_all_arms_share_changes_no_decision() -> None:
    """Whole numbers, so that sums are exact; negative control: the same shift in every other block of one arm."""
    generator = np.random.default_rng(5)
    rewards = generator.integers(0, 8, size=(3_000, 4)).astype(float) + np.array([1.0, 0.0, 0.0, 0.0])
    shift = generator.integers(-1000, 1000, size=(3_000, 1)).astype(float)
    for pool in (None, 3_000):
        policy = BreakevenRounds(Risk.simple_regret(2e-3), 4, pool=pool)
        asked = play(policy.start(seed=1), rewards)
        assert asked == play(policy.start(seed=1), rewards + shift)
        assert asked != play(policy.start(seed=1), rewards + shift * (np.arange(4) == 2))


def test_an_arm_can_come_back() -> None:
    """Arm 2 is left out at first. Then arm 0 falls behind and varies widely, so that comparisons are less certain."""
    generator = np.random.default_rng(3)
    rewards = generator.normal(scale=0.1, size=(4_000, 3)) + np.array([1.0, 0.97, 0.0])
    rewards[12:, 0] = generator.normal(-2.0, 5.0, size=3_988)
    run = BreakevenRounds(Risk.simple_regret(1e-4), 3).start(seed=1)
    members: list[set[int]] = []
    while (arm := run.ask()) is not None:
        block = next_block(run, arm)
        members += [set()] * (block == len(members))
        members[block] = members[block] | {arm}
        run.tell(float(rewards[block, arm]))
    away = next(number for number, arms in enumerate(members) if 2 not in arms)
    assert away < 12
    assert any(2 in arms for arms in members[away:])
    assert run.recommendation() == 1


def test_a_missed_pull_closes_its_block() -> None:
    """In a round, the others are compared without it; in a pool, the arm goes on to its next block."""
    policy = BreakevenRounds(Risk.simple_regret(1e-4), 2, pool=10)
    rule, run = policy.rule, policy.start(seed=1)
    first = run.ask()
    assert first is not None
    rule.miss(run.state, policy.tables, first, 0, 0.0)
    assert next_block(run, first) == 1
    timed = BreakevenRounds(Risk.simple_regret(1e-4), 3, first_blocks=2)
    run, rule = timed.start(seed=1), timed.rule
    for number in range(2):
        rule.tell_block(run.state, timed.tables, 0, number, 1.0 + number, 1e-4)
        rule.tell_block(run.state, timed.tables, 1, number, 0.5 * number, 1e-4)
        rule.miss(run.state, timed.tables, 2, number, 0.0)
        assert rule.end_round is not None
        rule.end_round(run.state, timed.tables)
    assert run.recommendation() == 0
    comparisons = timed.comparisons(run.state)
    assert comparisons is not None
    assert comparisons.blocks == (2, 2, 0)
    assert comparisons.leads[1] == pytest.approx((1.0 + 1.5) / 2)


@pytest.mark.parametrize("pool", [None, 400])
def test_an_arm_that_never_gives_a_reward_is_given_up(pool: int | None) -> None:
    """It keeps the run open for 3 x 6 of its pulls, and no longer; what they cost counts in the spend."""
    policy = BreakevenRounds(Risk.simple_regret(1e-3), 3, pool=pool)
    rule, run = policy.rule, policy.start(seed=1)
    rewards = np.random.default_rng(1).normal(size=(400, 3)) + np.array([3.0, 0.0, 0.0])
    pulls = [0, 0, 0]
    while (arm := run.ask()) is not None:
        block = next_block(run, arm)
        pulls[arm] += 1
        if arm == 2:
            rule.miss(run.state, policy.tables, arm, block, 1e-3)
        else:
            rule.tell_block(run.state, policy.tables, arm, block, float(rewards[block, arm]), 1e-3)
        if rule.end_round is not None and run.ask() is None:
            rule.end_round(run.state, policy.tables)
    assert pulls[2] == 18
    assert sum(pulls) < 60
    assert run.recommendation() == 0
    assert run.state[1] == pytest.approx(1e-3 * sum(pulls))


@pytest.mark.parametrize("lead", [1.0, 0.1, 0.0])
def test_differences_that_never_vary_end_a_run(lead: float) -> None:
    """One arm is always better by the same, or both are equal; negative control: all rewards are 0."""
    rewards = np.random.default_rng(1).integers(0, 2, size=(400, 1)) + np.array([lead, 0.0])
    run = BreakevenRounds(Risk.simple_regret(price=0.01, value=100), 2, pool=400).start(seed=1)
    pulls = len(play(run, rewards))
    assert 12 <= pulls < 200
    assert run.recommendation() == 0 or lead == 0.0
    silent = BreakevenRounds(Risk.simple_regret(price=0.01, value=100), 2, pool=400).start(seed=1)
    assert len(play(silent, np.zeros((400, 2)))) == 800


def test_a_pending_pull_counts_for_the_choice_of_the_next() -> None:
    policy = BreakevenRounds(Risk.simple_regret(1e-3), 3, pool=20)
    run = policy.start(seed=1)
    pulls = []
    for _ in range(9):
        arm = run.ask()
        assert arm is not None
        pulls.append((arm, next_block(run, arm)))
        assert policy.rule.send_block is not None
        policy.rule.send_block(run.state, policy.tables, *pulls[-1])
    assert pulls == [(arm, block) for block in range(3) for arm in range(3)]


def test_what_pulls_really_cost_decides() -> None:
    """An arm that turns out to cost more is pulled less often, and the spend is what was paid."""
    rewards = np.random.default_rng(2).normal(size=(400, 3))
    counts = []
    for dear in (1.0, 30.0):
        policy = BreakevenRounds(Risk.simple_regret(1e-4), 3, pool=400)
        run = policy.start(seed=1)
        asked, paid = [0, 0, 0], 0.0
        while (arm := run.ask()) is not None and sum(asked) < 600:
            cost = 1e-4 * (dear if arm == 2 else 1.0)
            block = next_block(run, arm)
            policy.rule.tell_block(run.state, policy.tables, arm, block, float(rewards[block, arm]), cost)
            asked[arm] += 1
            paid += cost
        assert run.state[1] == pytest.approx(paid)
        counts.append(asked[2] / sum(asked))
    assert counts[1] < counts[0]


def test_an_exhausted_pool_stops_the_run_and_says_so() -> None:
    rewards = np.random.default_rng(4).normal(size=(8, 2))
    run = BreakevenRounds(Risk.simple_regret(1e-9), 2, pool=8).start(seed=1)
    assert len(play(run, rewards)) == 16
    assert run.why().endswith("has been spent; all 8 blocks have been used")


def test_only_these_blocks_leave_nothing_to_lose_once_all_are_answered() -> None:
    rewards = np.random.default_rng(4).normal(size=(8, 2))
    policy = BreakevenRounds(Risk.simple_regret(1e-9), 2, pool=8, only_these_blocks=True)
    run = policy.start(seed=1)
    play(run, rewards)
    assert max(policy.expected_losses(run.state) or [1.0]) == 0.0
    assert run.recommendation() == int(rewards.mean(axis=0).argmax())


@pytest.mark.parametrize("pool", [None, 500])
def test_no_run_spends_more_than_promised(pool: int | None) -> None:
    policy = BreakevenRounds(Risk.misidentification(2e-3), 4, pool=pool)
    spends = []
    for seed in range(20):
        run = policy.start(seed=seed)
        play(run, np.random.default_rng(seed).normal(size=(500, 4)))
        spends.append(run.pulls * 2e-3)
    assert max(spends) <= policy.max_spend
    assert max(spends) > 0.1 * policy.max_spend
    assert math.isinf(BreakevenRounds(Risk.simple_regret(1e-3), 4).max_spend)


def test_a_guess_where_the_first_blocks_cost_too_much() -> None:
    run = BreakevenRounds(Risk.misidentification(0.1), 2).start(seed=1)
    assert run.ask() is None
    assert "the first 6 blocks of each arm would cost 1.2, and a guess cannot lose more" in run.why()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pool": 1}, "`pool` must be at least 2 but got 1"),
        ({"pool": 200_000}, "`pool` must be"),
        ({"pool": 100_000, "arms": 11}, "`pool` times `arms` must be at most 1,000,000 but got 100,000 times 11."),
        ({"arms": 101}, "`arms` must be at most 100 for rounds without a pool but got 101."),
        ({"only_these_blocks": True}, "`only_these_blocks` requires a `pool` of blocks."),
        ({"first_blocks": 1}, "`first_blocks` must be at least 2 but got 1"),
        ({"bound": -1.0}, "`bound` must be"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        BreakevenRounds(Risk.simple_regret(1e-3), **{"arms": 3, **arguments})  # type: ignore[arg-type]  # bad on purpose
    assert message in str(refused.value)


def test_arms_that_are_ahead_of_each_other_in_turn_are_not_gone_around_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A beats B, B beats C, and C beats A, each on a block of their own; 97 more arms are far behind."""
    arms, pool = 100, 3
    policy = BreakevenRounds(Risk.simple_regret(1e-6), arms, pool=pool, first_blocks=2)
    run = policy.start(seed=1)
    missing = {0: 2, 1: 0, 2: 1}  # by arm, so that the others share one block with each
    better = {(0, 0): 1.0, (1, 1): 1.0, (2, 2): 1.0}  # by arm and block
    reads = 0
    read_column = pooled_rounds.read_column

    def count_reads(*arguments: Any) -> None:
        nonlocal reads
        reads += 1
        read_column(*arguments)

    monkeypatch.setattr(pooled_rounds, "read_column", count_reads)
    for block in range(pool):
        for arm in range(arms):
            if missing.get(arm) == block:
                run.miss_block(arm, block, 1e-6)
            else:
                reward = better.get((arm, block), 0.0) if arm < 3 else -9.0
                run.count_block(arm, block, reward, 1e-6)
    assert run.recommendation() in (0, 1, 2)
    decisions = arms + 1  # from the end of the second block on
    assert reads <= 8 * decisions  # of 200 moves that each of them might make
