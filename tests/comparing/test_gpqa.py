"""An outside result: two models on the 198 questions of GPQA Diamond, five times each.

The scores are from the public repository stephlinds/evalconfidence (Apache-2.0), summed over the five repeats: how many
of an item's answers are right. inspect_ai#4206 states for them a difference of 0.0586, t = 2.11 (p = .036) if questions
are paired, and t = 1.45 (p = .149) if they are not.
"""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import dbcare
from dbcare.policies.rule import BlockRule
from dbcare.studies.record.ledger import Ledger
from dbcare.studies.settings import Settings

SCORES = Path(__file__).parents[1] / "golden" / "gpqa_diamond.csv"


@pytest.fixture(scope="module")
def log() -> dbcare.replay.BlockLog:
    counts = dbcare.read_block_log(SCORES, arm_column="model", reward_column="right")
    rewards = tuple(tuple(count / 5 for count in row) for row in counts.rewards)
    return dbcare.replay.BlockLog(counts.arms, counts.blocks, rewards)


def test_the_figures_are_those_that_were_published(log: dbcare.replay.BlockLog) -> None:
    assert (len(log.arms), len(log.blocks)) == (2, 198)
    first, second = np.array(log.rewards)
    assert first.mean() - second.mean() == pytest.approx(0.0586, abs=5e-5)
    paired, apart = stats.ttest_rel(first, second), stats.ttest_ind(first, second)
    assert (paired.statistic, paired.pvalue) == (pytest.approx(2.11, abs=0.005), pytest.approx(0.036, abs=0.0005))
    assert (apart.statistic, apart.pvalue) == (pytest.approx(1.45, abs=0.005), pytest.approx(0.149, abs=0.0005))


def test_the_policy_weighs_the_paired_difference(log: dbcare.replay.BlockLog) -> None:
    """With all answers, the loss that the policy weighs is that of a paired t, and not of an unpaired one.

    For misidentification it is the Student tail beyond t: half the published p, which is two-sided.
    """
    settings = Settings.from_options(list(log.arms), cost=1e-9, blocks=198, risk="misidentification")
    ledger = Ledger(settings)
    run, policy = ledger.decision.run, settings.built_policy
    assert run is not None
    assert isinstance(policy.rule, BlockRule)
    for block in range(198):
        for arm in range(2):
            policy.rule.tell_block(run.state, policy.tables, arm, block, log.rewards[arm][block], 1e-9)
    losses = ledger.decision.expected_losses()
    assert losses is not None
    assert max(losses.values()) == pytest.approx(0.036 / 2, abs=0.0005)
    assert abs(max(losses.values()) - 0.149 / 2) > 0.05


def test_a_replay_of_both_models(log: dbcare.replay.BlockLog) -> None:
    """At a value of 50 USD per unit of score, the published difference is worth 2.93 USD."""
    replay = dbcare.replay_blocks(log, price=0.001, value=50, orders=100)
    assert replay.best == "openai/gpt-5-nano-2025-08-07"
    assert replay.logged_cost == pytest.approx(0.396)
    wrong = [order.loss for order in replay.orders if order.arm != replay.best]
    assert wrong == pytest.approx([50 * 0.0585859] * len(wrong), rel=1e-5)
    assert replay.over_orders.chosen[replay.best] > 50
    assert math.isclose(replay.over_orders.saved, 0.396 - replay.over_orders.spent - replay.over_orders.loss)
