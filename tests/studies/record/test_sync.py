"""Retired arms: compared with a run that never had them, and in summaries."""

import math

import pytest

from dbcare.policies.registry import POLICIES
from dbcare.studies.record.sync import EVENTS_PER_SUMMARY
from dbcare.studies.settings import Settings
from dbcare.studies.stored import StoredStudy
from tests.helpers.memory_studies import create_memory_study
from tests.suites.studies.checks import draw_rewards

COST = 1e-5  # so small that nothing is decided within 30 trials


# KL-LUCB takes rewards from 0 to 1, and KG* may stop after a few trials however little they cost.
@pytest.mark.parametrize("policy", [name for name in POLICIES.live if name not in ("kl-lucb", "kg-star")])
@pytest.mark.parametrize("seed", range(2))
def test_a_retired_arm_is_treated_as_never_in_the_study(policy: str, seed: int) -> None:
    """The study decides as a run of the two other arms does with their rewards alone, in the same order."""
    study = create_memory_study(policy=policy, seed=seed, cost=COST)
    aims_at_error = hasattr(study.settings.built_policy, "delta")  # such policies go on for very long at small gaps
    draw = draw_rewards(seed, 1.0 if aims_at_error else 0.4)
    before: list[tuple[str, float]] = []
    for _ in range(30):
        trial = study.ask()
        assert trial is not None
        before.append((trial.arm, draw(trial.arm)))
        study.tell(trial, before[-1][1])
    spent = study.status().spent
    study.retire("C", "out of stock")
    assert study.status().spent == spent
    others = Settings(arms=("A", "B"), cost=COST, sigma=1.0, policy=policy, seed=seed)
    run = others.built_policy.start(seed=seed)
    queues: dict[str, list[float]] = {"A": [], "B": []}

    def count(arm: str, reward: float) -> None:
        if others.built_policy.rule.send is not None:
            run.count("AB".index(arm), reward)
            return
        queues[arm].append(reward)
        while (wanted := run.ask()) is not None and queues["AB"[wanted]]:
            run.tell(queues["AB"[wanted]].pop(0))

    for arm, reward in before:
        if arm != "C" and run.ask() is not None:
            count(arm, reward)
    while (trial := study.ask()) is not None:
        assert trial.arm == "AB"[run.ask() or 0]
        reward = draw(trial.arm)
        study.tell(trial, reward)
        count(trial.arm, reward)
    assert run.ask() is None
    assert study.recommendation().arm == "AB"[run.recommendation()]
    assert study.status().arms[2].left == "retired: out of stock"
    assert "C was retired: out of stock" in study.explain()


def test_other_processes_learn_that_an_arm_was_retired() -> None:
    """They do even if an earlier summary is stored, and the next summary agrees with a replay."""
    study = create_memory_study(cost=1e-7)
    other = StoredStudy(study._ledger.store, "s")
    draw = draw_rewards(0, gap=0.0)
    for turn in range(2 * EVENTS_PER_SUMMARY):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, draw(trial.arm))
        if turn == EVENTS_PER_SUMMARY:
            assert other.status().counted == EVENTS_PER_SUMMARY + 1
            other.retire("B")
    assert "B" not in {trial.arm for trial in other.ask(100)}
    assert study.status().arms == other.status().arms == StoredStudy(study._ledger.store, "s").status().arms
    assert other.check() > 4 * EVENTS_PER_SUMMARY


def test_a_study_does_not_wait_for_trials_of_a_retired_arm() -> None:
    """Their rewards are charged when they arrive; the other arms continue."""
    study = create_memory_study()
    first, second, third = study.ask(3, lease=None)
    study.retire("A", "the machine burned down")
    study.tell(second, 0.0)
    study.tell(third, 1.0)
    status = study.status()
    assert (status.counted, status.held) == (3, 0)
    assert [arm.trials for arm in status.arms] == [0, 1, 1]
    more = study.ask()
    assert more is not None
    study.tell(first, 5.0)
    assert study.status().spent == pytest.approx(3e-3)
    study.tell(more, 0.0)
    study.check()


def test_the_last_arm_keeps_its_statistics() -> None:
    study = create_memory_study(arms=("A", "B"), cost=1e-9, sigma_pulls=math.inf)
    study.add((("A", 0.0), ("B", 1.0)) * 20)
    before = study.status().arms[1]
    study.retire("A")
    after = study.status().arms[1]
    assert (
        (after.trials, after.mean, after.interval)
        == (before.trials, before.mean, before.interval)
        == (20, 1.0, before.interval)
    )
    assert study.recommendation().verdict == "only one left"


def test_all_rewards_of_the_other_arms_are_used() -> None:
    """They include rewards that a study of those arms alone would not have asked for."""
    study = create_memory_study(cost=1e-1)
    study.add((("A", 0.0), ("B", 3.0)) * 2)
    study.add([("C", 2.9)])
    study.retire("C")
    assert [arm.trials for arm in study.status().arms[:2]] == [2, 2]
    assert study.should_stop()
    assert study.recommendation().arm == "B"


def test_retiring_an_arm_saves_a_summary_at_once() -> None:
    """Without it, opening the study would replay all events."""
    study = create_memory_study(cost=1e-9)
    study.add((("A", 0.0), ("B", 1.0), ("C", 2.0)) * 10)
    study.retire("B")
    with study._ledger.store.session("s", write=False) as session:
        summary = session.summary()
    assert summary is not None
    assert summary[0] == 61
    assert summary[1]["retired"] == [1]
