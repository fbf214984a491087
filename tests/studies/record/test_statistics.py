"""Revenue: a cap on what rewards count as, and heavy tails."""

import json
import math
import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dbcare.errors import AlreadyToldError
from dbcare.replay.replay import replay_log
from dbcare.server.pages.study import make_chart, make_view
from dbcare.studies.record.ledger import Ledger, restore, summarize
from dbcare.studies.record.statistics import LARGEST_KEPT, ArmStatistics, Tail, find_heavy_tail
from dbcare.studies.results.beliefs import ArmRewards, Beliefs
from dbcare.studies.results.doubts import list_contradictions
from dbcare.studies.results.words import describe_settings
from dbcare.studies.settings import Settings
from dbcare.studies.stored import StoredStudy
from tests.helpers.memory_studies import create_memory_study

CAP = 60.0


def draw_revenue(generator: np.random.Generator, size: tuple[int, int], spread: float = 1.5) -> np.ndarray:
    """Draw revenue: 0 in 96%, else log-normal with a median of 40."""
    return (generator.random(size) < 0.04) * 40.0 * np.exp(spread * generator.normal(size=size))


def make_ledger(rewards: np.ndarray, **settings: Any) -> Ledger:
    """Return a ledger with a row of rewards per arm."""
    defaults: dict[str, Any] = {"arms": ("A", "B", "C")[: len(rewards)], "cost": 1e-9}
    ledger = Ledger(Settings(**defaults | settings))
    for statistics, row in zip(ledger.statistics, rewards, strict=True):
        for reward in row:
            statistics.add(float(reward))
    return ledger


def follow(study: StoredStudy, cap: float) -> list[tuple[int, str, float]]:
    """Tell a study what its trials bring, up to `cap`, until it stops; return every trial with its whole reward."""
    draws = random.Random(3)
    trials: list[tuple[int, str, float]] = []
    while len(trials) < 300 and (trial := study.ask()) is not None:
        reward = (draws.random() < 0.3) * 40.0 * math.exp(draws.gauss({"A": 0.0, "B": 0.4, "C": 0.0}[trial.arm], 1.0))
        study.tell(trial, min(reward, cap))
        trials.append((trial.id, trial.arm, reward))
    return trials


@pytest.mark.parametrize("policy", ["breakeven", "dbcare"])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_cap_counts_as_if_rewards_had_been_told_capped(policy: str, direction: str) -> None:
    """Means, intervals, losses, history and choice; the events keep what was told, and a summary what it led to."""
    settings = {"sigma": 20.0, "cost": 1e-5, "policy": policy, "direction": direction}
    capped, plain = create_memory_study(**settings, cap=CAP), create_memory_study(**settings)
    trials = follow(capped, math.inf)
    assert follow(plain, CAP) == trials
    above = {name: sum(arm == name and reward > CAP for _, arm, reward in trials) for name in "ABC"}
    status, other = capped.status(), plain.status()
    assert (status.cap, [arm.capped for arm in status.arms]) == (CAP, list(above.values()))
    assert min(above.values()) > 0
    assert (other.cap, [arm.capped for arm in other.arms]) == (None, [0, 0, 0])
    for arm, same in zip(status.arms, other.arms, strict=True):
        assert (arm.name, arm.trials, arm.mean, arm.expected_loss) == (
            same.name,
            same.trials,
            same.mean,
            same.expected_loss,
        )
        assert (arm.estimate, arm.probability_best) == (same.estimate, same.probability_best)
        assert arm.interval is not None
        assert same.interval is not None
        assert arm.interval == (same.interval[0], min(same.interval[1], CAP))
    assert (status.spent, status.reason) == (other.spent, other.reason)
    assert [replace(point, at=None) for point in capped.history()] == [
        replace(point, at=None) for point in plain.history()
    ]
    assert [row.reward for row in capped.trials()] == [reward for _, _, reward in trials]
    number, _, reward = next(trial for trial in trials if trial[2] > CAP)
    capped.tell(number, reward)
    with pytest.raises(AlreadyToldError, match=rf"Trial {number} is already recorded as {reward!r} but got {CAP!r}"):
        capped.tell(number, CAP)
    assert capped.check() == 2 * len(trials)


def test_a_summary_holds_everything() -> None:
    ledger = make_ledger(draw_revenue(np.random.default_rng(1), (2, 50)), cap=CAP)
    plain = json.loads(json.dumps(summarize(ledger)))
    assert summarize(restore(ledger.settings, plain)) == summarize(ledger)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_cap_below_every_reward_is_noted(direction: str) -> None:
    study = create_memory_study(cap=1.0, sigma=None, cost=1e-9, direction=direction)
    study.add([("A", 2.0), ("B", 3.0)])
    assert study.status().notes == ()  # C may have smaller ones
    study.add([("C", 4.0)])
    assert study.status().notes == (
        "the cap of 1 is below every reward so far, so all arms look the same: create a new study with a higher cap",
    )
    assert study.status().expected_loss is None  # nothing is known of the spread
    study.add([("C", 0.5)])
    assert study.status().notes == ()


def test_the_page_shows_how_many_rewards_were_above_the_cap() -> None:
    capped, plain = create_memory_study(cap=1.0, sigma=None), create_memory_study(sigma=None)
    for study in (capped, plain):
        study.add([("A", 2.0), ("A", 3.0), ("B", 0.5)])
    assert re.findall(r'"Above cap" class="figure">(\d+)<', make_view(capped).parts["arms"]) == [
        "2",
        "0",
        "0",
    ]
    assert ("Rewards", "spread learned from them, capped at 1") in describe_settings(capped.settings, None)
    assert "Above cap" not in make_view(plain).parts["arms"]


def test_an_infinite_loss_is_an_unknown_one() -> None:
    """Before rewards differ, nothing is known of a spread that is learned; JSON has no infinity."""
    study = create_memory_study(sigma=None)
    study.add([(arm, 0.0) for arm in "ABCABC"])
    assert study.status().expected_loss is None
    assert json.loads(json.dumps(make_chart(study), allow_nan=False))["loss"] == [None] * 6


@pytest.mark.parametrize(
    "rewards", [np.random.default_rng(2).exponential(size=300), 1e6 + np.random.default_rng(3).normal(size=200)]
)
def test_moments_and_largest_are_those_of_the_list(rewards: np.ndarray) -> None:
    statistics = ArmStatistics()
    for reward in rewards:
        statistics.add(float(reward))
    deviations = rewards - rewards.mean()
    assert statistics.tail.cubes == pytest.approx((deviations**3).sum(), rel=1e-6)
    assert statistics.tail.fourths == pytest.approx((deviations**4).sum(), rel=1e-6)
    assert statistics.tail.largest == sorted(rewards)[-LARGEST_KEPT:]


def measure(rewards: np.ndarray) -> tuple[Tail, int, float, float]:
    """Return what `find_heavy_tail` takes, by definition."""
    deviations = rewards - rewards.mean()
    largest = np.sort(rewards)[-LARGEST_KEPT:].tolist()
    tail = Tail(0, float((deviations**3).sum()), float((deviations**4).sum()), largest)
    return tail, len(rewards), float(rewards.mean()), float((deviations**2).sum())


def test_a_cap_does_what_the_note_says() -> None:
    rewards = draw_revenue(np.random.default_rng(4), (1, 600))[0]
    effect = find_heavy_tail(*measure(rewards))
    assert effect is not None
    capped = np.minimum(rewards, np.sort(rewards)[-5])
    assert effect.cap == np.sort(rewards)[-5]
    assert effect.mean == pytest.approx(capped.mean())
    assert effect.variance == pytest.approx(capped.var(ddof=1))
    assert effect.share_removed == pytest.approx(1.0 - capped.var() / rewards.var())
    assert effect.mean_without_largest == pytest.approx(np.sort(rewards)[:-5].mean())
    (note,) = list_contradictions(make_ledger(np.array([rewards, np.zeros(600)])))
    assert note == (
        f"A: its mean of {rewards.mean():.4g} rests on few rewards (without the 5 largest of 600 it is "
        f"{np.sort(rewards)[:-5].mean():.4g}); in a new study, a cap of {effect.cap:.3g} would make its mean "
        f"{capped.mean():.4g} and its standard deviation {capped.std(ddof=1):.3g} instead of {rewards.std(ddof=1):.3g}"
    )
    (note,) = list_contradictions(make_ledger(np.array([rewards, rewards[::-1]]), cap=1e9))
    assert "rests on few rewards, as does another arm's (" in note
    assert "a lower cap of" in note
    capping = make_ledger(np.array([rewards, rewards]), cap=effect.cap)
    assert capping.statistics[0].tail is not None
    capping.statistics[0].tail.capped = 1
    assert list_contradictions(capping) == ()  # someone has chosen


@pytest.mark.parametrize("size", [20, 120, 300, 1_000, 100_000])
def test_light_tails_are_not_called_heavy(size: int) -> None:
    """Two values have shape 0. Of exponential arms at most 3 in 1,000 are flagged: more than 16 in 1,000 below 1e-7."""
    generator, arms = np.random.default_rng(5), min(1_000, 300_000 // size)
    for rewards in (generator.normal(size=(arms, size)), generator.random((arms, size))):
        assert not any(find_heavy_tail(*measure(row)) for row in rewards)
    for row in generator.random((10, size)) < 0.04:
        tail, trials, _, squares = measure(row.astype(float))
        assert abs(tail.measure_shape(trials, squares)) < 1e-6 or not row.any()
    flagged = sum(find_heavy_tail(*measure(row)) is not None for row in generator.exponential(size=(arms, size)))
    assert flagged <= (16 if size in (120, 300, 1_000) else 0)


@pytest.mark.parametrize(("size", "least"), [(300, 0.4), (500, 0.7)])
def test_heavy_tails_are_noticed(size: int, least: float) -> None:
    """Of studies with three arms; 0.6 and 0.9 are flagged, so that so few of 400 have a chance below 1e-6."""
    generator = np.random.default_rng(6)
    laws = [draw_revenue(generator, (1_200, size), spread) for spread in (1.0, 1.5, 2.0)]
    for rewards in (*laws, generator.pareto(2.2, (1_200, size))):
        heavy = np.array([find_heavy_tail(*measure(row)) is not None for row in rewards]).reshape(400, 3)
        assert heavy.any(axis=1).mean() > least


@pytest.mark.parametrize("policy", ["breakeven", "breakeven-racing", "dbcare"])
def test_nothing_calls_a_study_of_revenue_too_long(policy: str) -> None:
    """Although the rewards so far spread by far less than sigma says: they may have missed the tail."""
    generator = np.random.default_rng(7)
    for size in (10, 50, 200, 1_000):
        ledger = make_ledger(draw_revenue(generator, (3, size)), sigma=1e4, policy=policy, cost=1.0)
        assert all(arm.variance < 1e6 for arm in ledger.statistics)
        assert not any("more trials" in note or "sigma" in note for note in list_contradictions(ledger))


@pytest.mark.parametrize(
    ("settings", "variances"),
    [
        ({"sigma": 2.0}, ((6.0 * 4.0 + 2.0) / 7.0, 4.0)),
        ({"sigma": 2.0, "sigma_pulls": 3.0}, ((3.0 * 4.0 + 2.0) / 4.0, 4.0)),
        ({"sigma": 2.0, "sigma_pulls": math.inf}, (4.0, 4.0)),
        ({"sigma": None}, (2.0, 2.0)),
        ({"sigma": None, "bounds": (-5.0, 5.0), "sigma_pulls": 0.01}, (2.25 / 1.01, 25.0)),
        ({"sigma": 1.0, "policy": "dbcare"}, (8.0 / 7.0, 8.0 / 7.0)),
    ],
)
def test_spreads_weigh_the_stated_one(settings: dict[str, Any], variances: tuple[float, float]) -> None:
    """Rewards of 1 and 3 have a sum of squares of 2; an arm with a single reward shares it, or has the stated spread.

    The larger counts: (nu0 sigma^2 + 2)/(nu0 + 1) for both arms together, and sigma^2 for the second alone.
    """
    known = Settings(arms=("A", "B"), cost=1e-3, **settings)
    beliefs = Beliefs(known, (0, 1), [ArmRewards(2, 2.0, 2.0), ArmRewards(1, 0.0, 0.0)])
    assert [beliefs.variance_of(arm) for arm in (0, 1)] == pytest.approx(list(variances))


def test_no_cap_is_suggested_that_would_make_all_rewards_equal() -> None:
    """Four orders among 300 visitors: the fifth largest reward is 0. Five larger ones have a cap to suggest."""
    rare = np.zeros((2, 300))
    rare[0, :4] = 120.0, 60.0, 45.0, 38.0
    (note,) = list_contradictions(make_ledger(rare))
    assert note == "A: its mean of 0.8767 rests on few rewards (without the 5 largest of 300 it is 0)"
    rare[0, 4:7] = 2.0
    assert "in a new study, a cap of 2 would make its mean" in list_contradictions(make_ledger(rare))[0]


def test_a_replay_says_what_a_cap_did() -> None:
    log = [("A", 0.0), ("B", 9.0), ("A", 1.0), ("B", 400.0)] * 20
    replay = replay_log(log, cost=1e-3, sigma=5.0, cap=100.0)
    assert replay.capped == 20
    assert "20 of the logged rewards are above the cap of 100. They counted as that" in str(replay)
    assert "cap" not in str(replay_log(log, cost=1e-3, sigma=5.0))
