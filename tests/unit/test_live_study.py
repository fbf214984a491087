"""A live study and what is behind it: summaries, stores, data frames. What it promises is in `StudySuite`."""

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from studies import study_of

from dbcare import Study
from dbcare.errors import DbcareError, InvalidValueError, StudyNotFoundError
from dbcare.live.book import SUMMARY_EVERY
from dbcare.live.create import create_study
from dbcare.live.events import Event, Kind
from dbcare.live.ledger import Ledger
from dbcare.live.memory import MemoryStore
from dbcare.live.rows import Row
from dbcare.live.settings import Settings
from dbcare.testing.studies.checks import NAMES, rewards


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
