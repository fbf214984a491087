"""One study's load, size or trouble does not hold up what else happens in the database."""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare import Policy
from dbcare.policies import Rule
from dbcare.policies.rule import State
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.sql.store import SqlStore

MAX_WAIT_SECONDS = 5.0  # generous: a busy machine, and a tenth of what an attack once took


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with closing(SqlStore(f"sqlite:///{tmp_path / 's.db'}")) as store:
        yield store


def make_study(store: SqlStore, name: str, **options: Any) -> StoredStudy:
    settings = {"cost": 1e-9, "sigma": 1.0, "max_ahead": 10_000} | options
    dbcare.create_study(name, ["A", "B"], storage=store, **settings)
    return StoredStudy(store, name)


def test_lookups_use_their_index(store: SqlStore) -> None:
    """However long a study is, finding a trial or a key reads a few rows; SQLite would rather read all of them."""
    with store.transaction(write=False) as connection:
        for statement, parameters, index in (
            (store.statements.events_of_trials, (1, 7, 7), "events_of_trials (study=? AND trial>? AND trial<?)"),
            (store.statements.asks_with_note, (1, "key: a"), "asks_with_notes (study=? AND note=?)"),
        ):
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            assert [row[3] for row in plan] == [f"SEARCH events USING INDEX {index}"]


def test_thousands_of_late_answers_do_not_hold_up_another_study(store: SqlStore) -> None:
    study, other = make_study(store, "late"), make_study(store, "other")
    trials = study.ask(3_000, lease=0.05)
    time.sleep(0.1)
    study.ask()  # notices that the leases have expired
    waits, done = [0.0], threading.Event()

    def work() -> None:
        while not done.is_set():
            began = time.monotonic()
            trial = other.ask()
            assert trial is not None
            other.tell(trial, 0.5)
            waits.append(time.monotonic() - began)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        study.tell_many((trial, 0.25) for trial in trials)
    finally:
        done.set()
        worker.join()
    assert len(waits) > 1
    assert max(waits) < MAX_WAIT_SECONDS
    assert sum(row.late == 0.25 for row in study.trials()) == 3_000


def test_summaries_of_a_study_that_waits_are_saved_rarely(store: SqlStore) -> None:
    """A trial that is never told holds up thousands of answers, each of which is in the summary."""
    study = make_study(store, "held")
    study.ask(lease=None)
    positions = set()
    for _ in range(40):
        study.add(("B", 0.5) for _ in range(100))
        with store.session("held", write=False) as session:
            summary = session.summary()
            positions.add(0 if summary is None else summary[0])
    assert study.status().held == 4_000
    assert len(positions) <= 6  # not 16: each covers about half as many events again as the one before
    study.tell(1, 0.25)
    assert study.status().counted == 4_001
    study.check()


def init(state: State, tables: Any, tie: int) -> None:
    state[0] = 0.0


def ask(state: State, tables: Any) -> int:
    return 0


def tell(state: State, tables: Any, arm: int, reward: float) -> None:
    state[0] += reward


def recommend(state: State, tables: Any) -> int:
    return 0


@dataclass(frozen=True)
class Adder(Policy):
    """Adds up rewards, beyond what a number can hold."""

    arms: int
    risk = None
    rule = Rule(init, ask, tell, recommend)
    state_size = 1
    max_pulls = 10_000
    tables = ()

    def upcoming(self, state: State) -> list[int]:
        return [0] * 1_000


def test_a_summary_that_cannot_be_stored_blocks_nothing(
    store: SqlStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON has no infinity. The study goes on, and is replayed from its events when it is opened."""
    dbcare.register_policy("adder", Adder, label="adder")
    try:
        study = make_study(store, "infinite", policy="adder")
        monkeypatch.setattr("dbcare.base.checks.MAX_MAGNITUDE", math.inf)
        study.tell_many((trial, 1e308) for trial in study.ask(400))
        assert "The summary of study 'infinite' cannot be stored" in caplog.text
        study.tell_many((trial, 1.0) for trial in study.ask(400))
        study.pause()
        study.stop("over")
        with store.session("infinite", write=False) as session:
            assert session.summary() is None
        status = StoredStudy(store, "infinite").status()
        assert (status.counted, status.state, status.reason) == (800, "stopped", "over")
    finally:
        dbcare.unregister_policy("adder")
