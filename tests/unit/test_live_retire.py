"""Arms that are withdrawn, and observations made elsewhere."""

import pytest
from studies import NAMES, rewards, study_of

from dbcare import Study
from dbcare.errors import InvalidValueError
from dbcare.live.book import SUMMARY_EVERY
from dbcare.live.settings import POLICIES, Settings

COST = 1e-5  # so small that nothing is decided within 30 trials


def finished(study: Study, seed: int, sequence: list[tuple[str, float]]) -> Study:
    """Answer what it asks, noting arms and rewards."""
    draw = rewards(seed)
    while (trial := study.ask()) is not None:
        reward = draw(trial.arm)
        study.tell(trial, reward)
        sequence.append((trial.arm, reward))
    return study


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


def test_retiring_the_winner_opens_the_race_again() -> None:
    study = study_of(arms=("A", "B", "C"), cost=1e-2)
    while (trial := study.ask()) is not None:
        study.tell(trial, {"A": 0.0, "B": 0.1, "C": 9.0}[trial.arm])
    assert study.recommendation().arm == "C"
    assert study.recommendation().verdict == "clear winner"
    study.retire("C")
    assert not study.should_stop()
    while (trial := study.ask()) is not None:
        assert trial.arm != "C"
        study.tell(trial, {"A": 0.0, "B": 0.1}[trial.arm])
    assert study.recommendation().arm == "B"
    study.retire("B")
    assert study.should_stop()
    assert study.recommendation().arm == "A"
    assert study.recommendation().verdict == "only one left"
    assert study.explain()[-1] == "only A is left"
    for arm in ("A", "B"):
        with pytest.raises(InvalidValueError, match="`arm` must be one of those left, A, and not the last"):
            study.retire(arm)


def test_answers_of_a_retired_arm_are_recorded_and_charged() -> None:
    study = study_of()
    first, second, third = study.ask(3)
    study.retire("A")
    study.tell(first, 5.0)
    study.tell(second, 0.0)
    study.tell(third, 1.0)
    assert study.status().spent == pytest.approx(3e-3)
    assert study.recommendation().arm == "C"
    assert {trial.arm for trial in study.ask(10)} == {"B", "C"}


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


@pytest.mark.parametrize("policy", POLICIES)
def test_observations_made_elsewhere_count_like_trials(policy: str) -> None:
    sequence: list[tuple[str, float]] = []
    asked = finished(study_of(policy=policy), 3, sequence)
    added = study_of(policy=policy)
    added.add(sequence[: len(sequence) // 2])
    added.add(sequence[len(sequence) // 2 :])
    assert added.should_stop()
    assert added.status().arms == asked.status().arms
    assert added.recommendation() == asked.recommendation()
    added.add([(NAMES[0], 0.0)])
    assert added.status().arms == asked.status().arms  # behind the stop: on record and charged
    assert added.status().spent == pytest.approx(asked.status().spent + 1e-3)
