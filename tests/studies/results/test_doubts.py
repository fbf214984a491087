"""Diagnostics: silent where all is well, and not otherwise; each has a chance of a false alarm below 1e-6 per look."""

import math
import re
from functools import partial
from typing import Any

import numpy as np
import pytest

from dbcare.studies.record.ledger import Ledger
from dbcare.studies.record.statistics import MAX_BLOCKS, ArmStatistics, History
from dbcare.studies.results.doubts import list_contradictions
from dbcare.studies.settings import Settings
from tests.helpers.memory_studies import create_memory_study


def make_ledger(rewards: np.ndarray, missing: tuple[int, ...] = (0, 0), **settings: Any) -> Ledger:
    """Return a ledger of two arms with a row of rewards each, and this many rewards missing."""
    defaults: dict[str, Any] = {"arms": ("A", "B"), "cost": 1e-9, "sigma": 1.0}
    ledger = Ledger(Settings(**defaults | settings))
    for statistics, row, interruptions in zip(ledger.statistics, rewards, missing, strict=True):
        for reward in row:
            statistics.add(float(reward))
        statistics.answered, statistics.interruptions = len(row), interruptions
    for counts, interruptions in zip(ledger.counts, missing, strict=True):
        counts.missing = interruptions
    return ledger


def test_no_note_where_all_is_well() -> None:
    """200 studies of four kinds, checked once each: the chance of any false alarm is below 200 x 1e-6 x 4."""
    generator = np.random.default_rng(1)
    for _ in range(50):
        size = (2, int(generator.integers(2, 2000)))
        bounded: dict[str, Any] = {"sigma": None, "bounds": (0.0, 1.0)}
        for rewards, settings in (
            (generator.normal(3.0, 1.0, size), {}),
            (generator.choice([-1.0, 1.0], size), {}),
            (generator.random(size) < 0.01, bounded),
            (generator.random(size), bounded),
        ):
            missing = tuple(int(count) for count in generator.binomial(size[1] // 3, 0.2, 2))
            assert list_contradictions(make_ledger(rewards, missing, **settings)) == ()


@pytest.mark.parametrize(
    ("factor", "settings", "consequence"),
    [
        (2.0, {}, "the policy adapts, and takes longer than a plan with that sigma says"),
        (1.3, {}, None),  # corrected, and not worth a note
        (
            12.0,
            {},
            "the policy believes at most 10, so the study may stop too early; create a new one with a larger sigma",
        ),
        (12.0, {"risk": "misidentification"}, "the policy adapts, and takes longer than a plan with that sigma says"),
        (2.0, {"sigma_pulls": math.inf}, "the study may stop too early, since it takes sigma for certain"),
        (1.3, {"policy": "dbcare"}, "the study may stop too early; Breakeven would learn the spread"),
    ],
)
def test_a_sigma_that_is_too_small_is_noted(factor: float, settings: dict[str, Any], consequence: str | None) -> None:
    rewards = np.random.default_rng(2).normal(0.0, factor, (2, 200))
    deviation = math.sqrt(rewards.var(axis=1, ddof=1).mean())
    expected = f"rewards have a standard deviation of {deviation:.3g}, more than sigma = 1: {consequence}"
    assert list_contradictions(make_ledger(rewards, **settings)) == (() if consequence is None else (expected,))


def test_a_sigma_that_is_too_large_is_noted_only_where_no_tail_can_be_missing() -> None:
    """With bounds, the standard deviation is known to be small; without, or where the policy adapts, nothing is said.

    Maurer and Pontil: 0.1 + sqrt(2 ln(2e6)/n) is below 0.9 times 0.5 from 237 rewards of width 1 on.
    """
    rewards = np.random.default_rng(3).normal(0.5, 0.1, (2, 300)).clip(0.0, 1.0)
    bounded: dict[str, Any] = {"sigma": 0.5, "bounds": (0.0, 1.0)}
    (note,) = list_contradictions(make_ledger(rewards, policy="dbcare", **bounded))
    (stated,) = re.findall(r"no arm has a standard deviation above (0\.\d+), and sigma = 0.5 was stated", note)
    assert float(stated) == pytest.approx(
        rewards.std(axis=1, ddof=1).max() + math.sqrt(2.0 * math.log(2e6) / 299), abs=5e-4
    )
    assert note.endswith(": the study takes more trials than it needs")
    assert list_contradictions(make_ledger(rewards[:, :200], policy="dbcare", **bounded)) == ()
    assert list_contradictions(make_ledger(rewards, **bounded)) == ()
    assert list_contradictions(make_ledger(rewards, policy="dbcare")) == ()


@pytest.mark.parametrize(
    ("rate", "settings", "noted"),
    [
        (0.04, {}, None),
        (0.055, {}, None),  # arms may well be better
        (0.3, {}, "the policy adapts, but a plan made for that rate does not describe this study"),
        (0.3, {"sigma_pulls": math.inf}, "the study may stop too early"),
        (0.3, {"policy": "dbcare"}, None),  # relies on 0.5, whatever the rate
    ],
)
def test_a_rate_far_from_the_usual_one_is_noted(rate: float, settings: dict[str, Any], noted: str | None) -> None:
    rewards = np.random.default_rng(8).random((2, 500)) < rate
    notes = list_contradictions(make_ledger(rewards, sigma=None, baseline=0.04, **settings))
    if noted is None:
        assert notes == ()
    else:
        assert notes[0].startswith(
            f"rewards are 1 in {100 * rewards.mean():.3g}% of trials, and a usual rate of 4% was"
        )
        assert notes[0].endswith(noted)


@pytest.mark.parametrize(
    ("policy", "advice"),
    [
        ("breakeven", "one with rounds=True, which compares arms only with rewards of the same time"),
        ("breakeven-racing", "which does no harm to a policy that tries them equally often"),
        ("dbcare", "which does no harm to a policy that tries them equally often"),
    ],
)
def test_drift_is_noted(policy: str, advice: str) -> None:
    rewards = np.random.default_rng(4).normal(0.0, 1.0, (2, 400))
    rewards[1, 200:] += 1.0
    (note,) = list_contradictions(make_ledger(rewards, sigma=None, bounds=(-10.0, 10.0), policy=policy, cost=1e-3))
    assert note.startswith("B: its first 192 rewards have a mean of -0.0")
    assert "the 208 after them" in note
    assert advice in note
    assert "create a new study once things are stable" in note


def test_rewards_missing_from_one_arm_are_noted() -> None:
    rewards = np.random.default_rng(5).normal(0.0, 1.0, (2, 100))
    (note,) = list_contradictions(make_ledger(rewards, missing=(0, 50)))
    assert note == (
        "B: 100 of 150 trials were answered, of the others 100 of 100 (50 against 0 interruptions), which differs by "
        "more than chance: if whether an answer comes depends on the reward, the means are biased"
    )
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
        history.add(partial(list[float | None], (float(step),)), float(step))
    steps = [point[0] for point in history.points]
    assert 100 <= len(steps) <= 200
    assert history.times == steps
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


@pytest.mark.parametrize(
    ("settings", "assumed"),
    [
        ({"sigma": 1.0}, "that means differ by at most 1 and that price / value, here 0.002, is well below 1"),
        (
            {"sigma": 2.0**20, "value": 200.0 / 2**20},
            "that means differ by at most 1 and that price / value, here 2.1e+03, is well below 1",
        ),
        ({"bounds": (0.0, 8.0)}, "that price / value, here 0.002, is well below 1"),
        ({"sigma": 1.0, "arms": ("A", "B")}, "that means differ by at most 1"),
        (
            {"sigma": 1.0, "value": None, "cost": 0.01},
            "that means differ by at most 1 and that the cost, here 0.01, is",
        ),
        ({"bounds": (0.0, 8.0), "arms": ("A", "B")}, None),
        ({"bounds": (0.0, 1.0), "binary": True}, None),
        ({"sigma": 1.0, "risk": "misidentification"}, None),
        ({"sigma": 1.0, "policy": "breakeven"}, None),
    ],
)
def test_the_papers_rule_says_what_it_assumes_about_units(settings: dict[str, Any], assumed: str | None) -> None:
    """Before any data, too."""
    options: dict[str, Any] = {"policy": "dbcare", "cost": 0.4 / 200.0, "value": 200.0, "sigma": None} | settings
    if settings.get("value") is not None:
        options["cost"] = 0.4 / settings["value"]
    notes = create_memory_study(**options).status().notes
    assert [note for note in notes if "unit of the rewards" in note] == [
        note for note in notes if assumed is not None and f"it assumes {assumed}" in note
    ]
    assert bool(notes) == (assumed is not None)


@pytest.mark.parametrize("policy", ["dbcare", "breakeven", "breakeven-racing"])
def test_only_the_papers_rule_depends_on_the_unit(policy: str) -> None:
    """The same rewards and costs in a unit 2^20 times smaller: exact in binary, so nothing is rounded otherwise."""
    stops = []
    for unit in (1.0, 2.0**20):
        generator = np.random.default_rng(5)
        study = create_memory_study(policy=policy, cost=0.4 / 200.0 * unit, value=200.0 / unit, sigma=unit)
        while (trial := study.ask()) is not None:
            study.tell(trial, unit * float(generator.normal(0.3 * (trial.arm == "A"))))
        stops.append((study.status().counted, study.recommendation().arm))
    assert (stops[0] == stops[1]) == (policy != "dbcare")
