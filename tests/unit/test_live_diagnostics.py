"""Diagnostics: silent where all is well, and not otherwise; each has a chance of a false alarm below 1e-6 per look."""

from functools import partial

import numpy as np
import pytest
from helpers.memory_studies import create_memory_study

from dbcare.live.arm_statistics import MAX_BLOCKS, ArmStatistics, History
from dbcare.live.diagnostics import list_contradictions
from dbcare.live.ledger import Ledger
from dbcare.live.settings import Settings


def make_ledger(rewards: np.ndarray, missing: tuple[int, int] = (0, 0), **settings: object) -> Ledger:
    """Return a ledger of two arms with a row of rewards each, and this many rewards missing."""
    ledger = Ledger(Settings(**{"arms": ("A", "B"), "cost": 1e-9, "sigma": 1.0} | settings))  # type: ignore[arg-type]
    for statistics, row, interruptions in zip(ledger.statistics, rewards, missing, strict=True):
        for reward in row:
            statistics.add(float(reward))
        statistics.answered, statistics.interruptions = len(row), interruptions
    return ledger


def test_no_note_where_all_is_well() -> None:
    """400 studies of four kinds, checked once each: the chance of any false alarm is below 400 x 1e-6 x 3."""
    generator = np.random.default_rng(1)
    for _ in range(100):
        size = (2, int(generator.integers(2, 2000)))
        for rewards, settings in (
            (generator.normal(3.0, 1.0, size), {}),
            (generator.choice([-1.0, 1.0], size), {}),
            (generator.random(size) < 0.01, {"sigma": None, "bounds": (0.0, 1.0)}),
            (generator.random(size), {"sigma": None, "bounds": (0.0, 1.0)}),
        ):
            missing = tuple(int(count) for count in generator.binomial(size[1] // 3, 0.2, 2))
            assert list_contradictions(make_ledger(rewards, missing, **settings)) == ()  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["breakeven", "dbcare"])
def test_a_sigma_that_is_too_small_is_noted(policy: str) -> None:
    rewards = np.random.default_rng(2).normal(0.0, 2.0, (2, 30))
    (note,) = list_contradictions(make_ledger(rewards, policy=policy))
    assert note.startswith("rewards have a standard deviation of 2, more than sigma = 1: ")
    assert ("may stop too early" in note) == (policy == "dbcare")


def test_a_sigma_that_is_too_large_is_noted_if_it_was_stated() -> None:
    rewards = np.random.default_rng(3).normal(0.5, 0.1, (2, 300))
    (note,) = list_contradictions(make_ledger(rewards))
    assert note.endswith("sigma = 1 was stated: the study takes more trials than it needs")
    assert list_contradictions(make_ledger(rewards, sigma=None, bounds=(0.0, 1.0))) == ()


def test_drift_is_noted() -> None:
    rewards = np.random.default_rng(4).normal(0.0, 1.0, (2, 400))
    rewards[1, 200:] += 1.0
    (note,) = list_contradictions(make_ledger(rewards, sigma=None, bounds=(-10.0, 10.0)))
    assert note.startswith("B: its first 192 rewards have a mean of -0.0")
    assert "the 208 after them" in note


def test_rewards_missing_from_one_arm_are_noted() -> None:
    rewards = np.random.default_rng(5).normal(0.0, 1.0, (2, 100))
    (note,) = list_contradictions(make_ledger(rewards, missing=(0, 50)))
    assert note.startswith("A: rewards failed to arrive 0 times in 100, those of the others 50 times in 150")
    assert list_contradictions(make_ledger(rewards, missing=(50, 50))) == ()


@pytest.mark.parametrize("trials", [1, 2, 15, 16, 17, 31, 32, 33, 1000])
def test_halves_and_moments_equal_those_of_the_list(trials: int) -> None:
    rewards = np.random.default_rng(trials).normal(2.0, 3.0, trials)
    statistics = ArmStatistics()
    for reward in rewards:
        statistics.add(float(reward))
    assert statistics.mean == pytest.approx(rewards.mean())
    assert statistics.squares == pytest.approx(((rewards - rewards.mean()) ** 2).sum(), rel=1e-12, abs=1e-12)
    assert len(statistics.blocks) <= MAX_BLOCKS
    if (halves := statistics.halves()) is None:
        assert trials == 1
        return
    (early, before), (later, after) = halves
    assert early + later == trials
    assert abs(early - trials / 2) <= max(1, trials / MAX_BLOCKS)
    assert before == pytest.approx(rewards[:early].mean())
    assert after == pytest.approx(rewards[early:].mean())


def test_a_history_is_thinned_out_evenly() -> None:
    history = History()
    for step in range(12_345):
        history.add(partial(list[float | None], (float(step),)))
    steps = [point[0] for point in history.points]
    assert 100 <= len(steps) <= 200
    assert steps == [float(number * history.stride) for number in range(len(steps))]
    assert 12_345 - (steps[-1] or 0.0) <= history.stride


def test_an_outage_is_not_blamed_on_the_arm_it_hits() -> None:
    """Failed trials are replaced by others of the same arm, so a long outage hits one arm only."""
    study = create_memory_study(arms=("A", "B"), cost=1e-9)
    draw = np.random.default_rng(7)
    for turn in range(600):
        trial = study.ask()
        assert trial is not None
        if turn % 150 < 40:
            study.tell(trial, failed=True)
        else:
            study.tell(trial, float(draw.normal()))
    assert study.status().notes == ()
