"""A live study and what is behind it: summaries, stores, data frames. What it promises is in `StudySuite`."""

import json
import sqlite3
import sys
from contextlib import closing
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.memory_studies import study_of

from dbcare import Study
from dbcare.errors import AlreadyToldError, DbcareError, InvalidValueError, StudyNotFoundError
from dbcare.live.events import Event, EventKind
from dbcare.live.export import TrialRow
from dbcare.live.ledger import LATELY, Ledger
from dbcare.live.settings import Settings
from dbcare.live.stores.memory import MemoryStore
from dbcare.live.stores.sql.store import SqlStore
from dbcare.live.studies import create_study, store_of
from dbcare.live.synced_ledger import SUMMARY_EVERY
from dbcare.testing.studies.checks import NAMES, rewards


def test_a_summary_is_the_replay() -> None:
    """Through JSON, at any moment; and `check` finds a summary that is not."""
    settings = Settings(arms=NAMES, cost=1e-6, sigma=1.0)
    ledger, draw = Ledger(settings), rewards(1, apart=0.0)
    generator = np.random.default_rng(1)
    for step in range(60):
        arm = ledger.next_arm()
        if arm is not None:
            ledger.apply(Event(EventKind.ASKED, float(step), ledger.asked + 1, arm, worker="w"))
        waiting = [number for number, each in ledger.open.items() if each.status is EventKind.ASKED]
        number = waiting[generator.integers(len(waiting))]
        ledger.apply(Event(EventKind.TOLD, float(step), number, reward=draw(NAMES[ledger.open[number].arm])))
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
    assert list(read.columns) == list(TrialRow.__dataclass_fields__)


def test_a_data_frame_needs_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InvalidValueError, match="A data frame must come from pandas or polars but got neither"):
        study_of().to_dataframe()


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


def test_a_storage_is_an_address() -> None:
    with pytest.raises(InvalidValueError, match=r"`storage` must be an address such as sqlite:///ads.db but got 3"):
        create_study("new", ["A", "B"], cost=1e-3, sigma=1.0, storage=3)  # type: ignore[arg-type]


def test_an_older_backup_put_in_its_place_is_noticed(tmp_path: Path) -> None:
    """A study that is held goes on from what is there, and so does one in a file made anew."""
    file, backup = tmp_path / "s.db", tmp_path / "backup.db"
    study = create_study("s", NAMES, cost=1e-9, sigma=1.0, storage=f"sqlite:///{file}")
    study.add((name, 0.5) for name in NAMES * 2)
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    study.add((name, 0.5) for name in NAMES * 3)
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink(missing_ok=True)
    backup.replace(file)
    assert study.status().counted == 6
    study.add((name, 0.5) for name in NAMES)
    assert study.status().counted == 9
    assert study.check() == 18
    for path in tmp_path.iterdir():
        path.unlink()
    other = SqlStore(f"sqlite:///{file}")
    other.create("s", Settings(arms=("X", "Y"), cost=1e-9, sigma=1.0).to_dict(), 0.0)
    with pytest.raises(StudyNotFoundError, match="that was deleted and another one made: load it again"):
        study.ask()
    other.close()
    open_store(f"sqlite:///{file}").close()


def test_a_summary_of_another_version_is_only_lost_time() -> None:
    store = MemoryStore()
    store.create("s", Settings(arms=NAMES, cost=1e-9, sigma=1.0).to_dict(), 0.0)
    study = Study(store, "s")
    study.add((name, 0.5) for name in NAMES * SUMMARY_EVERY)
    for change in ({"run": None}, None):
        with store.session("s", write=True) as session:
            position, plain = session.summary() or (0, {})
            assert position >= 6 * SUMMARY_EVERY
            session.save_summary(position, plain | {"decision": change} if change else {})
        again = Study(store, "s")
        assert again.status().arms == study.status().arms
        assert again.ask() is not None


@pytest.mark.parametrize(
    ("rewards_of", "settings"),
    [
        ([], {}),
        ([("A", -9.0)], {}),
        ([("A", 1.0), ("A", 1.0), ("B", 0.0), ("B", 0.0)], {"sigma": None, "binary": True}),
        ([("A", 0.30), ("A", 0.31), ("B", 0.10), ("B", 0.11)], {"sigma": 0.5}),
    ],
)
def test_no_clear_winner_where_little_is_known(rewards_of: list[tuple[str, float]], settings: dict[str, Any]) -> None:
    study = study_of(arms=("A", "B"), cost=1e-9, **settings)
    study.add(rewards_of)
    study.stop("the budget was cut")
    assert study.recommendation().verdict == "undecided"


def test_equal_arms_seldom_have_a_clear_winner() -> None:
    """In at most 5% of all cases: then more than 27 of 200 have a chance below 1e-6."""
    clear = 0
    for seed in range(200):
        study, draw = study_of(arms=("A", "B"), cost=1e-3, seed=seed), rewards(seed, apart=0.0)
        while (trial := study.ask()) is not None:
            study.tell(trial, draw(trial.arm))
        clear += study.recommendation().verdict == "clear winner"
    assert clear <= 27


def test_workers_are_forgotten_after_a_while() -> None:
    """So that a new name for every ask does not let everything out at once."""
    study = study_of(cost=1e-12)
    for number in range(600):
        trial = study.ask(worker=f"process {number}")
        assert trial is not None
        study.tell(trial, 0.1 * (number % 7))
    assert len(study.ask(5_000, worker="last")) <= 2 * LATELY


def test_a_trial_of_another_study_is_refused() -> None:
    one, other = study_of(arms=("red", "blue")), study_of(arms=("left", "right"))
    trial = one.ask()
    assert trial is not None
    other.ask()
    with pytest.raises(InvalidValueError, match="`trial` must be of this study, 1 of left, but got one of red"):
        other.tell(trial, 1.0)


def test_binary_rewards_are_0_or_1() -> None:
    study = study_of(sigma=None, binary=True)
    study.ask()
    with pytest.raises(InvalidValueError, match=r"`reward` must be 0 or 1 but got 0\.37"):
        study.tell(1, 0.37)


def test_a_failure_keeps_its_price() -> None:
    study = study_of()
    study.ask()
    with pytest.raises(InvalidValueError, match="`charged` must be True or False but got None"):
        study.tell(1, failed=True, charged=None)  # type: ignore[arg-type]
    study.tell(1, failed=True)
    with pytest.raises(AlreadyToldError, match="must keep its first outcome, failed, but got failed and free"):
        study.tell(1, failed=True, charged=False)


@pytest.mark.parametrize("lease", [1e12, "99999d", timedelta(days=4000), "3٣m", "m", "-1s"])
def test_leases_that_cannot_be_meant(lease: Any) -> None:
    with pytest.raises(InvalidValueError, match="`lease` must be"):
        study_of().ask(lease=lease)
