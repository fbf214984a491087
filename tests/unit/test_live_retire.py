"""Arms that are withdrawn, beside a run that never had them, and in a summary."""

import pytest
from helpers.memory_studies import study_of

from dbcare import Study
from dbcare.live.settings import POLICIES, Settings
from dbcare.live.synced_ledger import SUMMARY_EVERY
from dbcare.testing.studies.checks import rewards

COST = 1e-5  # so small that nothing is decided within 30 trials


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(4))
def test_a_retired_arm_is_as_if_it_had_never_been(policy: str, seed: int) -> None:
    """The others are decided among as by a run of two arms that gets their rewards alone, in the same order."""
    study, draw = study_of(policy=policy, seed=seed, cost=COST), rewards(seed)
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
    run = others.made.start(seed=seed)
    queues: dict[str, list[float]] = {"A": [], "B": []}

    def count(arm: str, reward: float) -> None:
        if others.made.rule.send is not None:
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


def test_another_process_learns_that_an_arm_is_gone() -> None:
    """Also where a summary from before is stored; and the summary made after it agrees with a replay."""
    study = study_of(cost=1e-7)
    other = Study(study._book._store, "s")
    draw = rewards(0, apart=0.0)
    for turn in range(2 * SUMMARY_EVERY):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, draw(trial.arm))
        if turn == SUMMARY_EVERY:
            assert other.status().counted == SUMMARY_EVERY + 1
            other.retire("B")
    assert "B" not in {trial.arm for trial in other.ask(100)}
    assert study.status().arms == other.status().arms == Study(study._book._store, "s").status().arms
    assert other.check() > 4 * SUMMARY_EVERY


def test_nobody_waits_for_a_trial_of_a_retired_arm() -> None:
    """It is charged when it comes; the others go on."""
    study = study_of()
    first, second, third = study.ask(3, lease=None)
    study.retire("A", "the machine burnt")
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


def test_what_is_known_of_the_last_arm_stays() -> None:
    study = study_of(arms=("A", "B"), cost=1e-9)
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


def test_all_rewards_of_those_left_are_used() -> None:
    """Also those that they would not have asked for alone: the stop is decided once the arm is gone."""
    study = study_of(cost=1e-1)
    study.add((("A", 0.0), ("B", 3.0)) * 2)
    study.add([("C", 2.9)])
    study.retire("C")
    assert [arm.trials for arm in study.status().arms[:2]] == [2, 2]
    assert study.should_stop()
    assert study.recommendation().arm == "B"


def test_a_retired_arm_is_in_the_summary_at_once() -> None:
    """So that opening the study is quick again."""
    study = study_of(cost=1e-9)
    study.add((("A", 0.0), ("B", 1.0), ("C", 2.0)) * 10)
    study.retire("B")
    with study._book._store.session("s", write=False) as session:
        summary = session.summary()
    assert summary is not None
    assert summary[0] == 61
    assert summary[1]["retired"] == [1]
