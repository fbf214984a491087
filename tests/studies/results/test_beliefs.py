"""What a live study makes of its rewards: the gate, the curve of losses, the control, and what is stored."""

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbcare import create_study, load_study
from dbcare.errors import InvalidValueError
from dbcare.posterior import Posterior
from dbcare.studies.record import sync
from dbcare.studies.record.ledger import restore, summarize
from dbcare.studies.record.statistics import GROWTH, MIN_REWARDS, LossCurve, Variety
from dbcare.studies.results.beliefs import ArmRewards, Beliefs
from dbcare.studies.settings import Settings
from tests.helpers.memory_studies import create_memory_study


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5, -1.0, 7.0]), max_size=40))
def test_variety_is_that_of_the_list(rewards: list[float]) -> None:
    """Enough once five rewards differ from the most common one; until then every count is exact."""
    variety = Variety()
    for number, reward in enumerate(rewards, start=1):
        variety.add(reward)
        counts = Counter(rewards[:number])
        differing = number - max(counts.values())
        assert variety.is_enough == (differing >= MIN_REWARDS)
        if not variety.is_enough:
            assert sorted(map(tuple, variety.counts)) == sorted(counts.items())


def test_beliefs_are_those_of_the_posterior() -> None:
    """Signed for the goal, cut at the bounds; a lead is positive wherever an arm is better."""
    rewards = [ArmRewards(50, 0.30, 8.0), ArmRewards(50, 0.05, 2.0)]
    for direction, sign in (("maximize", 1.0), ("minimize", -1.0)):
        known = Settings(("A", "B"), 1e-3, bounds=(0.0, 1.0), direction=direction)
        beliefs = Beliefs(known, (0, 1), rewards)
        errors = [np.sqrt(beliefs.variance_of(arm) / 50.0) for arm in (0, 1)]
        posterior = Posterior.from_means([sign * 0.30, sign * 0.05], errors)
        assert beliefs.estimate(1) == sign * posterior.estimates[1]
        low, high = sorted(sign * posterior.intervals[1])
        assert beliefs.interval(1) == (max(low, 0.0), high)
        assert beliefs.lead(0, 1) == pytest.approx(sign * abs(beliefs.lead(1, 0) or 0.0))
        assert beliefs.expected_losses() == [beliefs.expected_loss(arm) for arm in (0, 1)]
        assert (beliefs.chance_ahead(0, 1) or 0.0) + (beliefs.chance_ahead(1, 0) or 0.0) == pytest.approx(1.0)
    assert low < 0.0  # so that the cut was tested


def test_a_lead_over_the_control_holds_at_any_time() -> None:
    """Wider than the interval for one look, and around the naive lead."""
    known = Settings(("A", "B", "C"), 1e-3, sigma=1.0)
    beliefs = Beliefs(known, (0, 1, 2), [ArmRewards(40, mean, 40.0) for mean in (0.5, 0.1, 0.0)])
    for arm in (0, 1):
        once, always = beliefs.lead_interval(arm, 2), beliefs.anytime_lead_interval(arm, 2)
        assert once is not None
        assert always is not None
        assert sum(always) / 2.0 == pytest.approx(beliefs.rewards[arm].mean)
        assert 1.3 < (always[1] - always[0]) / (once[1] - once[0]) < 4.0


def test_the_curve_of_losses_is_computed_when_wanted() -> None:
    computed = []
    curve = LossCurve()
    for rewards in range(1, 201):

        def compute(rewards: int = rewards) -> float:
            computed.append(rewards)
            return 100.0 / rewards

        curve.add(rewards, lambda compute=compute: compute)  # type: ignore[misc]  # binds the value
    assert computed == []
    taken = [int(count) for count, _ in curve.compute()]
    assert computed == taken
    assert all(later >= GROWTH * earlier for earlier, later in itertools.pairwise(taken))
    assert taken[:8] == [1, 2, 3, 4, 5, 6, 7, 9]
    assert taken[-1] > 200 / GROWTH
    assert curve.latest() == 100.0 / taken[-1]
    assert computed == taken  # once each
    losses = curve.at([taken[0] - 1, taken[3], 200], 0.25)
    assert losses[0] is None
    assert losses[1:] == pytest.approx([100.0 / taken[3], 0.25])
    between = curve.at([(taken[4] + taken[5]) // 2, 200], 0.5)[0]
    assert between is not None
    assert 100.0 / taken[5] < between < 100.0 / taken[4]
    assert LossCurve().at([1, 2], None) == [None, None]


@pytest.mark.parametrize("options", [{}, {"rounds": True}], ids=["trials", "rounds"])
def test_the_history_does_not_depend_on_who_looked_when(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another study object looks after every tell, a third now and then; later ones start from nothing or a summary."""
    monkeypatch.setattr(sync, "EVENTS_PER_SUMMARY", 100)
    storage = f"sqlite:///{tmp_path}/studies.db"
    writer = create_study("ads", arms=["A", "B", "C"], cost=1e-9, sigma=1.0, storage=storage, **options)
    watcher, visitor = (load_study("ads", storage) for _ in range(2))
    generator = np.random.default_rng(4)
    for number in range(1, 115):
        trial = writer.ask()
        assert trial is not None
        writer.tell(trial, float(generator.normal({"A": 0.3, "B": 0.1, "C": 0.0}[trial.arm])))
        watcher.history()
        if generator.random() < 0.1:
            visitor.history()
        if number in (30, 114):
            found = [study.history() for study in (writer, watcher, visitor, load_study("ads", storage))]
            assert found == [found[0]] * 4
            assert sum(point.expected_loss is not None for point in found[0]) >= number - 10


def test_a_million_rewards_take_a_hundred_moments() -> None:
    """So few can wait until somebody wants to know: log(1e6) / log(1.15) = 99 at most, fewer as they are rounded up."""
    curve = LossCurve()
    for rewards in range(1, 1_000_001):
        curve.add(rewards, lambda: lambda: None)
    assert 80 < len(curve.pending) <= 99


def test_a_summary_keeps_the_curve_and_a_replay_may_differ_in_its_last_digits() -> None:
    study = create_memory_study(cost=1e-9)
    generator = np.random.default_rng(2)
    study.add((arm, float(generator.normal())) for arm in "ABC" * 200)
    with study._ledger.read() as transaction:
        plain = json.loads(json.dumps(summarize(transaction.ledger)))
    again = restore(study.settings, plain)
    assert again.losses.points == plain["losses"]["points"]
    assert len(plain["losses"]["points"]) >= 5
    assert study.check() == 1_200


def test_the_control_must_be_an_arm() -> None:
    with pytest.raises(InvalidValueError, match="`control` must be one of A, B, C but got 'D'"):
        create_memory_study(control="D")


def test_a_retired_control_is_no_control_any_more() -> None:
    study = create_memory_study(cost=1e-12, control="A", sigma=0.5)
    study.add([(arm, {"A": 0.0, "B": 0.3, "C": 0.1}[arm] + shift) for shift in (-0.5, 0.5) * 30 for arm in "ABC"])
    choice = study.recommendation()
    assert choice.lift is not None
    assert choice.rival == "A"
    study.retire("A")
    choice = study.recommendation()
    assert (choice.lift, choice.rival) == (None, "C")
