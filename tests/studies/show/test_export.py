"""Trials as rows, texts, files and data frames."""

import csv
import io
import json
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dbcare
from dbcare.base.files import defuse_formula, restore_formula
from dbcare.errors import InvalidValueError, StorageError
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.show.export import (
    ROWS_PER_GROUP,
    ROWS_PER_PIECE,
    TrialRow,
    format_time,
    format_trials,
    write_trials,
)
from dbcare.studies.stored import TRIALS_PER_PAGE, StoredStudy
from dbcare.studies.study import Study
from tests.helpers.memory_studies import create_memory_study
from tests.suites.studies.checks import NAMES

OUTCOMES = (EventKind.TOLD, EventKind.FAILED, EventKind.EXPIRED)


def list_events(study: StoredStudy) -> list[Event]:
    """Return everything that happened in a study, in order."""
    with study._ledger.store.session(study.name, write=False) as session:
        return [event for _, event in session.events_after(0)]


def replay_rows(study: StoredStudy) -> list[dict[str, Any]]:
    """Follow the events one by one, and write down what is known of each trial in the end."""
    rows: dict[int, dict[str, Any]] = {}
    retired = set()
    for event in list_events(study):
        if event.kind is EventKind.RETIRED:
            retired.add(study.settings.arms[event.arm])
        elif event.kind is EventKind.ASKED:
            expires = None if event.expires is None else datetime.fromtimestamp(event.expires, UTC).isoformat()
            rows[event.trial] = {
                "trial": event.trial,
                "arm": study.settings.arms[event.arm],
                "status": "asked",
                "reward": None,
                "late": None,
                "worker": event.worker,
                "asked": datetime.fromtimestamp(event.at, UTC).isoformat(),
                "expires": expires,
                "answered": None,
                "unit": None if event.note is None else event.note.partition("unit: ")[2],
                "block": None,
                "price": None,
                "reason": None,
                "tag": event.tag,
            }
        elif event.kind in OUTCOMES:
            answered = datetime.fromtimestamp(event.at, UTC).isoformat()
            rows[event.trial] |= {"status": event.kind.value, "reward": event.reward, "answered": answered}
            rows[event.trial] |= {} if event.price is None else {"price": event.price}
            rows[event.trial] |= {} if event.note is None else {"reason": event.note.partition("reason: ")[2]}
        elif event.kind is EventKind.SURPLUS:
            rows[event.trial] |= {"late": event.reward, "answered": datetime.fromtimestamp(event.at, UTC).isoformat()}
    waiting = (row["trial"] for row in rows.values() if row["status"] == "asked" and row["arm"] not in retired)
    first_waiting = next(waiting, len(rows) + 1)
    return [{**row, "counted": row["trial"] < first_waiting} for row in rows.values()]


def make_eventful_study() -> StoredStudy:
    """Create a study with trials that were told, failed, expired, told too late, and of a retired arm."""
    study, chance = create_memory_study(cost=1e-9, max_ahead=4_000), random.Random(5)
    pending = [trial.id for trial in study.ask(3, lease=None) if trial.arm != "B"]  # that one is never told
    for step in range(400):
        lease = chance.choice([None, 60.0, 0.001])
        pending += [trial.id for trial in study.ask(chance.randint(1, 8), lease=lease, worker=chance.choice("xy"))]
        if (trial_of_unit := study.ask(unit=f"unit: {step}")) is not None:
            pending.append(trial_of_unit.id)
        for _ in range(min(len(pending), chance.randint(0, 8))):
            trial, reward = pending.pop(chance.randrange(len(pending))), chance.gauss(0.0, 1.0)
            if chance.random() < 0.2:
                study.tell(trial, failed=True, price=chance.choice([None, 0.5]), reason=chance.choice([None, "=1+1"]))
            else:
                study.tell(trial, reward)
        time.sleep(0.0005)
        if step == 200:
            study.retire("B")
    return study


def add_many(study: Study, trials: int) -> None:
    """Add trials fast: to a stopped study, which has nothing to decide."""
    study.stop()
    study.add([(NAMES[number % 3], number / 8) for number in range(trials)])


def test_rows_are_what_a_replay_of_the_events_gives() -> None:
    study = make_eventful_study()
    expected = replay_rows(study)
    assert [asdict(row) for row in study.trials()] == expected
    assert {row["status"] for row in expected} == {"asked", "told", "failed", "expired"}
    assert any(row["late"] is not None for row in expected)
    assert {row["unit"] for row in expected} > {None, "unit: 1"}
    assert {row["price"] for row in expected} == {None, 0.5}
    assert {row["reason"] for row in expected} == {None, "=1+1"}
    assert any(row["arm"] == "B" and row["status"] == "asked" and row["counted"] for row in expected)  # retired


@pytest.mark.parametrize("trials", [0, 1, TRIALS_PER_PAGE, TRIALS_PER_PAGE + 1, 3 * TRIALS_PER_PAGE + 5])
def test_trials_are_read_in_pages(trials: int) -> None:
    """Whatever their number, none is missing and none comes twice."""
    study = create_memory_study()
    add_many(study, trials)
    assert [(row.trial, row.reward) for row in study.trials()] == [(n + 1, n / 8) for n in range(trials)]


def test_a_study_changes_while_it_is_read(tmp_path: Path) -> None:
    """Writers don't wait for a reader who takes his time; he sees what was asked when he began, as it is by now."""
    address = f"sqlite:///{tmp_path / 's.db'}"
    study = dbcare.create_study("s", NAMES, cost=1e-9, sigma=1.0, storage=address, max_ahead=10_000)
    asked = study.ask(TRIALS_PER_PAGE + 10)
    assert len(asked) == TRIALS_PER_PAGE + 10
    rows = study.trials()
    assert next(rows).status == "asked"
    study.tell(asked[1], 0.25)
    study.tell(asked[-1], 0.5)
    study.ask(5)
    seen = list(rows)
    assert [row.trial for row in seen] == list(range(2, TRIALS_PER_PAGE + 11))
    assert (seen[0].status, seen[0].reward) == ("asked", None)  # this page was read before
    assert (seen[-1].status, seen[-1].reward) == ("told", 0.5)


def measure_peak(use: Callable[[], object]) -> int:
    """Return the most bytes that Python had allocated at a time."""
    tracemalloc.start()
    try:
        use()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_files_are_written_in_bounded_memory(tmp_path: Path) -> None:
    """All rows at once take 60% more, and would take 150 times as much at a million: the control."""
    study = dbcare.create_study("s", NAMES, cost=1e-9, sigma=1.0, storage=f"sqlite:///{tmp_path / 's.db'}")
    add_many(study, 10_000)
    assert measure_peak(lambda: study.export(tmp_path / "t.csv")) < 4.5e6
    assert measure_peak(lambda: list(study.trials())) > 6e6
    assert (tmp_path / "t.csv").read_text().count("\n") == 10_001


@given(st.floats(0.0, 4e9))
def test_times_are_as_the_standard_library_formats_them(at: float) -> None:
    assert format_time(at) == datetime.fromtimestamp(at, UTC).isoformat()


@pytest.mark.parametrize("at", [0.0, 1.9999996, 1.0000005, 1.0000015, 1763300000.9999999, 1763300000.5])
def test_times_are_rounded_to_microseconds(at: float) -> None:
    assert format_time(at) == datetime.fromtimestamp(at, UTC).isoformat()


def make_row(trial: int, **values: Any) -> TrialRow:
    """Return a row of a trial that is pending."""
    pending: dict[str, Any] = {"arm": "A", "status": "asked", "reward": None, "late": None, "counted": False}
    pending |= {"worker": None, "asked": "now", "expires": None, "answered": None}
    return TrialRow(trial, **pending | values)


@pytest.mark.parametrize("count", [0, 1, ROWS_PER_PIECE, 2 * ROWS_PER_PIECE + 1])
def test_every_format_has_every_row(count: int) -> None:
    rows = [make_row(number, reward=number / 3, worker='w,"1"\n') for number in range(count)]
    plain = [asdict(row) for row in rows]
    pieces = {kind: list(format_trials(rows, kind)) for kind in ("csv", "json", "jsonl")}
    assert json.loads("".join(pieces["json"])) == plain
    assert [json.loads(line) for line in "".join(pieces["jsonl"]).splitlines()] == plain
    table = list(csv.DictReader(io.StringIO("".join(pieces["csv"]), newline="")))
    assert [{name: text or "None" for name, text in row.items()} for row in table] == [
        {name: str(value) for name, value in row.items()} for row in plain
    ]
    assert "".join(pieces["csv"]).startswith(
        "trial,arm,status,reward,late,counted,worker,asked,expires,answered,unit,block,price,reason,tag\n"
    )
    assert len(pieces["jsonl"]) == -(-count // ROWS_PER_PIECE)


def test_formulas_are_defused_in_csv_only(tmp_path: Path) -> None:
    """A log that is read again has the names that the study has."""
    arms = ["=1+1", "'=1+1", "+A1", "-A1", "@SUM(A1)", "plain", "'plain", "a=b"]
    study = dbcare.create_study("s", arms, cost=1e-9, sigma=1.0, storage=f"sqlite:///{tmp_path / 's.db'}")
    study.stop()
    observations = [(arm, float(number)) for number, arm in enumerate(arms)]
    study.add(observations)
    with study.export(tmp_path / "t.csv").open(newline="") as file:
        cells = [row["arm"] for row in csv.DictReader(file)]
    assert cells == ["'=1+1", "''=1+1", "'+A1", "'-A1", "'@SUM(A1)", "plain", "'plain", "a=b"]
    assert dbcare.read_log(tmp_path / "t.csv", unit_column="trial") == observations
    lines = study.export(tmp_path / "t.jsonl").read_text().splitlines()
    assert [json.loads(line)["arm"] for line in lines] == arms
    assert list(study.to_dataframe()["arm"]) == arms
    polars = import_module("polars")
    assert list(polars.read_parquet(study.export(tmp_path / "t.parquet"))["arm"]) == arms
    (line,) = list(format_trials([make_row(1, worker="\t=1", unit="+2", block="=3", reason="@4", tag="-5")], "csv"))[1:]
    assert line == "1,A,asked,,,False,'\t=1,now,,,'+2,'=3,,'@4,'-5\n"


@given(st.text(st.sampled_from("'=+-@\t\rA "), max_size=5))
def test_a_defused_text_is_no_formula_and_can_be_restored(text: str) -> None:
    assert not defuse_formula(text).startswith(("=", "+", "-", "@", "\t", "\r"))
    assert restore_formula(defuse_formula(text)) == text


def test_an_error_names_the_file_that_was_wanted(tmp_path: Path) -> None:
    """And not the draft, of which nobody knows."""
    study = create_memory_study()
    file = tmp_path / "none" / "t"
    for write, suffix in ((study.export, ".csv"), (study.export, ".parquet"), (study.report, ".html")):
        with pytest.raises(FileNotFoundError) as missing:
            write(file.with_suffix(suffix))
        assert missing.value.filename == str(file.with_suffix(suffix))


def test_an_error_on_the_way_leaves_no_file(tmp_path: Path) -> None:
    """A file that existed stays as it was."""

    def fail_late() -> Iterator[TrialRow]:
        yield from (make_row(number) for number in range(ROWS_PER_GROUP + 1))
        raise StorageError("The disk is gone.")

    for name in ("t.csv", "t.jsonl", "t.parquet"):
        (tmp_path / name).write_text("before")
        with pytest.raises(StorageError, match="The disk is gone"):
            write_trials(fail_late(), tmp_path / name)
        assert (tmp_path / name).read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (None, "`path` must be the path of a file but got None"),
        ("t.xls", "`path` must be one of .csv, .jsonl, .parquet"),
    ],
)
def test_other_paths_are_refused(path: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        create_memory_study().export(path)


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_parquet_files(tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow writes them group by group; where it is missing, polars writes them."""
    rows = [make_row(number, late=0.5 if number == ROWS_PER_GROUP else None) for number in range(ROWS_PER_GROUP + 1)]
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = write_trials(rows, tmp_path / "t.parquet")
    monkeypatch.undo()
    table = import_module("pyarrow.parquet").read_table(path)
    assert table.to_pylist() == [asdict(row) for row in rows]
    groups = import_module("pyarrow.parquet").ParquetFile(path).num_row_groups
    assert groups == (2 if library == "pyarrow" else 1)


def test_parquet_needs_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InvalidValueError, match="Parquet files require pyarrow or polars; install either one"):
        write_trials([], tmp_path / "t.parquet")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_may_begin_with_many_empty_cells(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late rewards are rare; without trials, there are columns all the same."""
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pandas", None)
    study = create_memory_study(max_ahead=1_000)
    assert list(study.to_dataframe().columns) == list(TrialRow.__dataclass_fields__)
    trials = study.ask(500, lease=None)
    late = study.ask(1, lease=0.001)[0]
    study.tell_many([(trial, 0.25) for trial in trials])
    time.sleep(0.005)
    study.ask()
    study.tell(late, 0.75)
    frame = study.to_dataframe()
    assert type(frame).__module__.startswith(library)
    assert list(frame["late"])[500] == 0.75
