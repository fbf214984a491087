"""A database written before trials had blocks and prices of their own: it opens, means the same, and goes on."""

import json
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from helpers.postgres import Server

import dbcare
from dbcare.live.stores.sql.store import SqlStore

FOLDER = Path(__file__).parents[1] / "golden" / "study_database_version_2"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())
MEANS = {"A": 0.30, "B": 0.35, "C": 0.10}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A copy, since opening it writes."""
    return Path(shutil.copy(FOLDER / "studies.db", tmp_path / "studies.db"))


def test_its_tables_are_brought_up_to_date(file: Path) -> None:
    """Everything that was stored stays, event by event."""
    query = "SELECT study, position, kind, at, trial, arm, reward, charged, expires, worker, note FROM events"
    with sqlite3.connect(file) as before:
        assert before.execute("SELECT version FROM dbcare").fetchall() == [(2,)]
        rows = before.execute(query).fetchall()
    assert dbcare.list_studies(f"sqlite:///{file}") == list(EXPECTED) == ["long", "rounds", "retired"]
    with sqlite3.connect(file) as after:
        assert after.execute("SELECT version FROM dbcare").fetchall() == [(3,)]
        assert after.execute(query).fetchall() == rows
        assert after.execute("SELECT DISTINCT block, price FROM events").fetchall() == [(None, None)]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_study_means_what_it_meant(file: Path, name: str) -> None:
    study, expected = dbcare.load_study(name, f"sqlite:///{file}"), EXPECTED[name]
    assert study.check() == expected["events"]
    status = json.loads(json.dumps(asdict(study.status())))
    assert {key: status[key] for key in expected["status"]} == expected["status"]
    assert [[arm.name, arm.trials, arm.mean] for arm in study.status().arms] == expected["arms"]
    assert [[pending.trial, pending.arm, pending.told] for pending in study.pending()] == expected["pending"]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_study_goes_on_as_it_would_have(file: Path, name: str) -> None:
    """The same trials, told the same rewards, cost the same; then one reports its price."""
    study, expected = dbcare.load_study(name, f"sqlite:///{file}"), EXPECTED[name]
    for pending in study.pending():
        if not pending.told:
            study.tell(pending.trial, 1.0)
    draws = random.Random(11)
    trials: list[Any] = []
    while len(trials) < 40 and (trial := study.ask(lease=None)) is not None:
        reward = round(draws.gauss(MEANS[trial.arm], 0.5), 6)
        study.tell(trial, reward)
        trials.append([trial.id, trial.arm, reward])
    assert trials == expected["next"]
    assert study.status().spent == expected["spent"]
    if (trial := study.ask()) is not None:
        study.tell(trial, 0.0, price=0.25)
        assert study.status().spent == pytest.approx(expected["spent"] + 0.25, rel=1e-12)
    study.check()


def test_tables_in_postgresql_are_brought_up_to_date(postgres: Server) -> None:
    """A study from before goes on, and its trials may then have prices."""
    address = postgres.address()
    with closing(SqlStore(address)) as store:
        study = dbcare.create_study("version 2", ["A", "B"], cost=1e-9, sigma=1.0, storage=store)
        study.add([("A", 0.5), ("B", 0.25)])
        with store.transaction(write=True) as connection:
            for statement in (
                "ALTER TABLE events DROP COLUMN block",
                "ALTER TABLE events DROP COLUMN price",
                "UPDATE dbcare SET version = 2",
            ):
                connection.exec_driver_sql(statement)
    with closing(SqlStore(address, create=False)) as store:
        again = dbcare.load_study("version 2", store)
        trial = again.ask()
        assert trial is not None
        again.tell(trial, 0.5, price=0.125)
        assert [(row.reward, row.price) for row in again.trials()] == [(0.5, None), (0.25, None), (0.5, 0.125)]
        again.check()
        dbcare.delete_study("version 2", store)
