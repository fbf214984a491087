"""Studies that several processes share, on SQLite and on a real PostgreSQL server."""

import multiprocessing
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import dbcare
from dbcare.studies.stores.open import open_store
from tests.helpers.postgres import Server
from tests.helpers.prepared_process import PreparedProcess
from tests.helpers.worker_main import draw_reward
from tests.helpers.worker_processes import ARMS, Worker, list_told, replay_study


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        storage = f"sqlite:///{tmp_path / 'live.db'}"
    else:
        server: Server = request.getfixturevalue("postgres")
        storage = server.create_database()
    yield storage
    open_store(storage).close()


@pytest.mark.parametrize("trials", [15, pytest.param(1_000, marks=pytest.mark.soak)])
def test_eight_processes_share_a_study(address: str, tmp_path: Path, trials: int) -> None:
    """Every trial is asked once and told once, and the decisions are those of a replay."""
    study = dbcare.create_study("eight", ARMS, cost=1e-9, sigma=1.0, storage=address)
    workers = [Worker(address, "eight", number, trials, tmp_path, lease="5m") for number in range(8)]
    assert [worker.process.wait(timeout=240) for worker in workers] == [0] * 8, [
        worker.output.read_text() for worker in workers
    ]
    assert [worker.list_outages() for worker in workers] == [[]] * 8
    ledger, told = replay_study(study, address)
    assert sorted(list_told(workers)) == sorted(told) == list(range(1, 8 * trials + 1))
    assert study.status().counted == ledger.counted == 8 * trials
    assert study.recommendation().arm == ARMS[ledger.decision.recommended]
    study.check()


OPENER = """
import sys, time, dbcare
name, address, begin = sys.argv[1:]
time.sleep(float(begin) - time.time())
dbcare.create_study(name, ["A", "B"], cost=0.1, sigma=1.0, storage=address)
"""


def test_a_new_database_opened_by_several_processes_at_once(address: str, tmp_path: Path) -> None:
    """One of them creates the tables, and each creates a study of its own."""
    script, output = tmp_path / "opener.py", tmp_path / "output.txt"
    script.write_text(OPENER)
    begin = str(time.time() + 1.0)  # when all of them have started
    openers = [PreparedProcess(script, [f"s{number}", address, begin], output) for number in range(4)]
    assert [opener.wait(timeout=60) for opener in openers] == [0] * 4, output.read_text()
    assert sorted(dbcare.list_studies(address)) == [f"s{number}" for number in range(4)]


def test_a_study_opened_before_a_fork(address: str) -> None:
    """Parent and children keep using it, each with connections of its own."""
    study = dbcare.create_study("forked", ARMS, cost=1e-9, sigma=1.0, storage=address)
    assert study.status().counted == 0  # a connection is open now

    def work() -> None:
        told = 0
        while told < 20:
            if trial := study.ask(lease="5m", worker=str(os.getpid())):
                study.tell(trial, draw_reward(trial.id))
                told += 1

    children = [multiprocessing.get_context("fork").Process(target=work) for _ in range(3)]
    for child in children:
        child.start()
    work()
    for child in children:
        child.join(timeout=60)
    assert [child.exitcode for child in children] == [0] * 3
    ledger, told = replay_study(study, address)
    assert sorted(told) == list(range(1, 81))
    assert len(ledger.workers) == 4
    study.check()


def test_backups_of_sqlite_while_workers_write(tmp_path: Path) -> None:
    """Each backup opens, passes its check, and has everything acknowledged before the backup began."""
    address = f"sqlite:///{tmp_path / 'live.db'}"
    dbcare.create_study("busy", ARMS, cost=1e-9, sigma=1.0, storage=address)
    workers = [Worker(address, "busy", number, 10**9, tmp_path, lease="5m") for number in range(3)]
    try:
        while not all(worker.list_told() for worker in workers):
            time.sleep(0.01)
        sizes = []
        for number in range(4):
            time.sleep(0.1)
            acknowledged = list_told(workers)
            with (
                closing(sqlite3.connect(tmp_path / "live.db")) as source,
                closing(sqlite3.connect(tmp_path / f"backup{number}.db")) as target,
            ):
                source.backup(target, pages=-1 if number % 2 else 3)  # at once, or in steps between the writes
            copy = f"sqlite:///{tmp_path / f'backup{number}.db'}"
            study = dbcare.load_study("busy", copy)
            study.check()
            ledger, told = replay_study(study, copy)
            assert set(acknowledged) <= set(told)
            sizes.append(ledger.asked)
            open_store(copy).close()
    finally:
        for worker in workers:
            worker.kill()
    assert sizes == sorted(set(sizes))
    open_store(address).close()
