"""A live study: what it asks, what it counts and when, and what it refuses."""

import csv
import json
import math
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies import NAMES, rewards, study_of

from dbcare import Study
from dbcare.errors import AlreadyToldError, DbcareError, InvalidValueError, StudyNotFoundError
from dbcare.live.book import SUMMARY_EVERY
from dbcare.live.create import create_study
from dbcare.live.events import Event, Kind
from dbcare.live.ledger import Ledger
from dbcare.live.memory import MemoryStore
from dbcare.live.rows import Row
from dbcare.live.settings import POLICIES, Settings


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("risk", ["simple_regret", "misidentification"])
def test_one_at_a_time_it_is_a_run_stepped_by_hand(policy: str, risk: str) -> None:
    for seed in range(5):
        study = study_of(policy=policy, risk=risk, seed=seed)
        run, draw = study.settings.made.start(seed=seed), rewards(seed)
        while (trial := study.ask()) is not None:
            arm = run.ask()
            assert arm is not None
            assert trial.arm == NAMES[arm]
            reward = draw(trial.arm)
            study.tell(trial, reward)
            run.tell(reward)
        assert run.ask() is None
        assert study.should_stop()
        assert study.recommendation().arm == NAMES[run.recommendation()]
        assert study.status().counted == run.pulls


def test_less_is_better_where_it_is_said_so() -> None:
    study, mirror = study_of(direction="minimize"), study_of()
    draw, same = rewards(3), rewards(3)
    while (trial := study.ask()) is not None:
        other = mirror.ask()
        assert other is not None
        assert other.arm == trial.arm
        study.tell(trial, -draw(trial.arm))
        mirror.tell(other, same(trial.arm))
    assert study.recommendation().arm == mirror.recommendation().arm
    assert study.recommendation().mean == pytest.approx(-(mirror.recommendation().mean or 0.0))


def test_an_answer_counts_once_all_earlier_ones_are_in() -> None:
    """Three trials out, the first one slow: the others are held, and counted in order when it comes."""
    study = study_of()
    first, second, third = study.ask(3)
    assert [trial.arm for trial in (first, second, third)] == list(NAMES)
    study.tell(third, 5.0)
    study.tell(second, 1.0)
    status = study.status()
    assert (status.counted, status.waiting, status.held) == (0, 1, 2)
    assert [arm.trials for arm in status.arms] == [0, 0, 0]
    study.tell(first, 0.0)
    status = study.status()
    assert (status.counted, status.waiting, status.held) == (3, 0, 0)
    assert study.recommendation().arm == "C"


@given(st.permutations(range(6)), st.integers(0, 20))
def test_any_order_of_answers_gives_the_same_decisions(order: list[int], seed: int) -> None:
    """Two rounds of three trials, told in any order, and then one at a time: the same asks, counts and end."""
    plain, mixed = study_of(seed=seed, max_ahead=6), study_of(seed=seed, max_ahead=6)
    draw = rewards(seed)
    for study in (plain, mixed):
        assert len(study.ask(6)) == 6
    values = [draw(NAMES[trial % 3]) for trial in range(6)]
    for number in range(6):
        plain.tell(number + 1, values[number])
    for number in order:
        mixed.tell(number + 1, values[number])
    assert plain.status().arms == mixed.status().arms
    while (trial := plain.ask()) is not None:
        again = mixed.ask()
        assert again is not None
        assert again.arm == trial.arm
        reward = draw(trial.arm)
        plain.tell(trial, reward)
        mixed.tell(again, reward)
    assert mixed.ask() is None
    assert plain.recommendation() == mixed.recommendation()


@pytest.mark.parametrize("policy", ["breakeven-racing", "dbcare"])
def test_a_policy_in_rounds_hands_out_one_round(policy: str) -> None:
    study = study_of(policy=policy, max_ahead=100)
    assert [trial.arm for trial in study.ask(10)] == list(NAMES)
    assert study.ask() is None
    assert not study.should_stop()
    study.tell(2, 0.1)
    study.tell(1, failed=True)
    again = study.ask(10)  # the failed trial is replaced; the next round waits for it
    assert [trial.arm for trial in again] == ["A"]
    study.tell(3, 0.2)
    study.tell(again[0], 0.0)
    assert [trial.arm for trial in study.ask(10)] == list(NAMES)


def test_breakeven_spreads_its_workers() -> None:
    study = study_of(max_ahead=9)
    assert sorted(trial.arm for trial in study.ask(3)) == list(NAMES)
    for number in (1, 2, 3):
        study.tell(number, 0.01 * number)
    assert sorted({trial.arm for trial in study.ask(9)}) == list(NAMES)


def test_how_many_may_be_out() -> None:
    assert len(study_of(max_ahead=2).ask(10)) == 2
    study = study_of()
    assert len(study.ask(10)) == 3  # one round
    busy = study_of()
    for worker in "abcdefgh":
        busy.ask(1, worker=worker)
    busy.ask(100, worker="a")
    assert busy.status().waiting == 16


def test_a_lease_that_runs_out_is_replaced() -> None:
    study = study_of()
    slow = study.ask(lease=0.01)
    assert slow is not None
    quick = study.ask(2)
    for trial in quick:
        study.tell(trial, 0.0)
    assert study.status().counted == 0
    time.sleep(0.02)
    replacement = study.ask()
    assert replacement is not None
    assert replacement.arm == slow.arm
    assert study.status().counted == 3
    study.tell(slow, 9.0)  # too late: on record and paid for, but it counts for nothing
    assert study.status().arms[0].trials == 0
    assert study.status().spent == pytest.approx(3e-3)
    study.tell(slow, 9.0)
    study.tell(replacement, 0.5)
    assert study.status().arms[0].mean == 0.5


def test_a_late_answer_counts_as_long_as_it_was_not_replaced() -> None:
    for replaced in (False, True):
        study = study_of()
        first, second = study.ask(lease=None), study.ask(lease=0.01)
        assert first is not None
        assert second is not None
        time.sleep(0.02)
        if not replaced:
            study.pause()
        assert (study.ask() is not None) == replaced  # notices that the second has expired
        study.tell(second, 4.0)
        study.tell(first, 0.0)
        assert [arm.trials for arm in study.status().arms] == [1, 0 if replaced else 1, 0]


def test_a_timeout_may_be_a_reward() -> None:
    """A visitor who never buys is a 0."""
    study = study_of(timeout_reward=0.0, sigma=None, bounds=(0.0, 1.0))
    trials = study.ask(3, lease=0.01)
    study.tell(trials[1], 1.0)
    time.sleep(0.02)
    study.ask()
    assert [arm.trials for arm in study.status().arms] == [1, 1, 1]
    assert study.recommendation().arm == "B"
    assert study.status().spent == pytest.approx(3e-3)


def test_told_twice() -> None:
    study = study_of()
    trial = study.ask()
    assert trial is not None
    study.tell(trial, 0.25)
    study.tell(trial, 0.25)
    study.tell(trial.id, 0.25)
    with pytest.raises(AlreadyToldError, match=r"Trial 1 must keep its first outcome, 0.25, but got 0.5"):
        study.tell(trial, 0.5)
    with pytest.raises(AlreadyToldError, match=r"but got failed"):
        study.tell(trial, failed=True)
    assert study.status().spent == pytest.approx(1e-3)


def test_a_failed_trial_may_be_free() -> None:
    study = study_of()
    one, other = study.ask(2)
    study.tell(one, failed=True, charged=False)
    study.tell(other, failed=True)
    assert study.status().spent == pytest.approx(1e-3)
    assert study.status().counted == 2
    with pytest.raises(AlreadyToldError):
        study.tell(one, 1.0)


def test_max_spend_ends_a_study() -> None:
    study = study_of(max_spend=5e-3, cost=1e-3)
    asked = 0
    while (trial := study.ask()) is not None:
        study.tell(trial, 0.0)
        asked += 1
    assert asked == 5
    assert study.should_stop()
    assert study.recommendation().reason == "another trial would exceed max_spend: 0.005 of 0.005 has been spent"


def test_pause_resume_stop() -> None:
    study = study_of()
    trial = study.ask()
    assert trial is not None
    study.pause()
    assert study.ask() is None
    assert not study.should_stop()
    assert study.status().state == "paused"
    study.tell(trial, 1.0)
    study.resume()
    assert study.ask() is not None
    study.stop("the campaign is over")
    assert study.ask() is None
    assert study.should_stop()
    assert study.explain() == ["the campaign is over"]
    assert study.recommendation().final


def test_many_at_once_or_none() -> None:
    study = study_of()
    trials = study.ask(3)
    with pytest.raises(InvalidValueError, match="`reward` must be finite"):
        study.tell_many([(trials[0], 1.0), (trials[1], math.nan)])
    assert study.status().waiting == 3
    study.tell_many((trial, 0.5) for trial in trials)
    assert study.status().counted == 3


def test_words_have_names() -> None:
    study = study_of(policy="breakeven-racing", cost=1e-2, risk="misidentification")
    while (trial := study.ask()) is not None:
        study.tell(trial, 100.0 * NAMES.index(trial.arm))
    assert study.explain()[0].startswith("A dropped at epoch 1: its mean is 200 below the best")
    assert study.recommendation().verdict in ("clear winner", "too close to be worth more")
    breakeven = create_study("words", ["left", "right"], price=0.4, value=20_000, sigma=0.5)
    for trial in breakeven.ask(2):
        breakeven.tell(trial, 3.0 if trial.arm == "left" else 0.0)
    assert "left leads; the strongest rival, right, has an expected loss of" in breakeven.status().reason


def test_a_clear_winner_and_a_tie() -> None:
    for means, verdict in (((0.0, 5.0), "clear winner"), ((0.0, 0.0), "too close to be worth more")):
        study = study_of(arms=("A", "B"), cost=0.01)
        generator = np.random.default_rng(1)
        while (trial := study.ask()) is not None:
            study.tell(trial, float(generator.normal(means["AB".index(trial.arm)], 1.0)))
        assert study.recommendation().verdict == verdict


def test_a_summary_is_the_replay() -> None:
    """Through JSON, at any moment; and `check` finds a summary that is not."""
    settings = Settings(arms=NAMES, cost=1e-6, sigma=1.0)
    ledger, draw = Ledger(settings), rewards(1, apart=0.0)
    generator = np.random.default_rng(1)
    for step in range(60):
        arm = ledger.next_arm()
        if arm is not None:
            ledger.apply(Event(Kind.ASKED, float(step), ledger.asked + 1, arm, worker="w"))
        waiting = [number for number, each in ledger.open.items() if each.status is Kind.ASKED]
        number = waiting[generator.integers(len(waiting))]
        ledger.apply(Event(Kind.TOLD, float(step), number, reward=draw(NAMES[ledger.open[number].arm])))
        copy = Ledger.from_dict(settings, json.loads(json.dumps(ledger.to_dict(), allow_nan=False)))
        assert copy.to_dict() == ledger.to_dict()
        assert copy.next_arm() == ledger.next_arm()


def test_opening_again_goes_on_from_a_summary() -> None:
    store = MemoryStore()
    store.create("s", Settings(arms=NAMES, cost=1e-7, sigma=1.0).to_dict(), 0.0)
    study, draw = Study(store, "s"), rewards(2, apart=0.0)
    for _ in range(SUMMARY_EVERY):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, draw(trial.arm))
    with store.session("s", write=False) as session:
        assert session.summary() is not None
    again = Study(store, "s")
    assert again.status().arms == study.status().arms
    assert again.recommendation() == study.recommendation()
    again.check()
    with store.session("s", write=True) as session:
        position, plain = session.summary() or (0, {})
        session.save_summary(position, {**plain, "spent": 0.0})
    with pytest.raises(DbcareError, match="must follow from its events"):
        again.check()


def test_trials_as_rows_and_files(tmp_path: Path) -> None:
    study = study_of()
    first, second, third = study.ask(3, worker="w,1")
    study.tell(first, 0.1 + 0.2)
    study.tell(third, failed=True)
    assert second.id == 2
    rows = study.trials()
    assert [(row.trial, row.arm, row.status, row.reward, row.counted) for row in rows] == [
        (1, "A", "told", 0.1 + 0.2, True),
        (2, "B", "asked", None, False),
        (3, "C", "failed", None, False),
    ]
    with study.export(tmp_path / "t.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(row["reward"]) if row["reward"] else None for row in read] == [0.1 + 0.2, None, None]
    assert {row["worker"] for row in read} == {"w,1"}
    lines = study.export(tmp_path / "t.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [asdict(row) for row in rows]
    with pytest.raises(InvalidValueError, match=r"`path` must be one of .csv, .jsonl, .parquet but got '.xls'"):
        study.export(tmp_path / "t.xls")
    with pytest.raises(FileNotFoundError):
        study.export(tmp_path / "none" / "t.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.jsonl"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_and_parquet(tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By pandas, or by polars where pandas is missing."""
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    study = study_of()
    trials = study.ask(3)
    study.tell(trials[0], 0.1 + 0.2)
    frame = study.to_dataframe()
    assert type(frame).__module__.startswith(library)
    assert list(frame["arm"]) == list(NAMES)
    assert frame["reward"][0] == 0.1 + 0.2
    read = import_module(library).read_parquet(study.export(tmp_path / "t.parquet"))
    assert list(read["status"]) == ["told", "asked", "asked"]
    assert list(read.columns) == list(Row.__dataclass_fields__)


def test_a_data_frame_needs_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InvalidValueError, match="A data frame must come from pandas or polars but got neither"):
        study_of().to_dataframe()


def test_a_time_out_of_one_ask_may_be_a_reward() -> None:
    study = study_of(sigma=None, bounds=(0.0, 1.0))
    study.ask(2, lease=0.01, timeout_reward=0.0)
    third = study.ask(lease=0.01)
    time.sleep(0.02)
    assert third is not None
    assert [trial.arm for trial in study.ask(1)] == [third.arm]  # replaced, the others count as 0
    assert [arm.trials for arm in study.status().arms] == [1, 1, 0]


def test_a_dear_arm_that_is_beyond_max_spend_ends_a_study() -> None:
    """Though a cheap one would still be within it: the policy asks for what it needs."""
    study = study_of(arms=("A", "B"), cost=(1e-3, 1e-1), max_spend=0.25)
    while (trial := study.ask()) is not None:
        study.tell(trial, 0.0)
    assert study.should_stop()
    assert study.status().spent <= 0.25


def test_told_twice_in_one_batch() -> None:
    study = study_of()
    first, second, _ = study.ask(3)
    study.tell_many([(first, 0.5), (second, 0.0), (first, 0.5)])
    assert study.status().counted == 2
    third = study.ask(3)
    with pytest.raises(AlreadyToldError):
        study.tell_many([(third[0], 0.5), (third[0], 0.25)])
    assert [arm.trials for arm in study.status().arms] == [1, 1, 0]


def test_what_is_pending_and_how_it_went() -> None:
    study = study_of(arms=("A", "B"))
    first, second = study.ask(2, lease="1m", worker="w")
    study.tell(second, 1.0)
    pending = study.pending()
    assert [(each.trial, each.arm, each.worker, each.told) for each in pending] == [
        (first.id, "A", "w", False),
        (second.id, "B", "w", True),
    ]
    assert 0.0 <= pending[0].age < 30.0
    assert 30.0 < (pending[0].left or 0.0) <= 60.0
    study.tell(first, 0.0)
    draw = rewards(1, apart=0.1)
    while (trial := study.ask()) is not None:
        study.tell(trial, draw(trial.arm))
    history = study.history()
    assert [point.rewards for point in history] == sorted({point.rewards for point in history})
    assert all((point.expected_loss or math.inf) > point.spent for point in history[:-1])
    assert history[-1].expected_loss == study.recommendation().expected_loss
    assert (history[-1].expected_loss or 0.0) <= history[-1].spent == pytest.approx(study.status().spent)


def test_asking_again_with_the_same_key() -> None:
    study = study_of()
    trials = study.ask(2, key="request 7")
    assert study.ask(2, key="request 7") == trials
    study.tell(trials[0], 0.5)
    assert study.ask(1, key="request 7") == trials
    assert [trial.id for trial in study.ask(1, key="request 8")] == [3]
    assert study.status().asked == 3


def test_a_study_that_was_deleted_and_made_anew_must_be_loaded_again() -> None:
    store = MemoryStore()
    settings = Settings(arms=NAMES, cost=1e-3, sigma=1.0).to_dict()
    store.create("s", settings, 0.0)
    study = Study(store, "s")
    study.ask()
    store.delete("s")
    with pytest.raises(StudyNotFoundError, match="must be stored"):
        study.ask()
    store.create("s", settings, 0.0)
    with pytest.raises(StudyNotFoundError, match="that was deleted and another one made: load it again"):
        study.ask()
    assert Study(store, "s").status().asked == 0


def test_answers_after_a_stop_by_hand_change_nothing() -> None:
    """They are on record and charged, but what was recommended stays."""
    study = study_of(arms=("A", "B"))
    study.add([("A", 1.0), ("B", 0.0)])
    late = study.ask(2)
    study.stop("enough")
    before = study.recommendation()
    for trial in late:
        study.tell(trial, 9.0 if trial.arm == "B" else -9.0)
    after = study.recommendation()
    assert (after.arm, after.mean) == (before.arm, before.mean) == ("A", 1.0)
    assert study.status().spent == pytest.approx(4e-3)
    assert [row.status for row in study.trials()] == ["told"] * 4
