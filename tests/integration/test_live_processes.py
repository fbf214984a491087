"""Studies that several processes work on at once, on SQLite and on a real PostgreSQL server."""

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers.postgres import Server
from helpers.worker_main import reward_of
from helpers.worker_processes import ARMS, Worker, replayed, told_by

import dbcare
from dbcare.live.stores.open import open_store


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        where = f"sqlite:///{tmp_path / 'live.db'}"
    else:
        server: Server = request.getfixturevalue("postgres")
        where = server.new_database()
    yield where
    open_store(where).close()


def test_eight_processes_share_a_study(address: str, tmp_path: Path) -> None:
    """Every trial asked once and told once; the decisions are those of a replay; all workers had a part."""
    study = dbcare.create_study("eight", ARMS, cost=1e-9, sigma=1.0, storage=address)
    each = 250
    workers = [Worker(address, "eight", number, each, tmp_path, lease="5m") for number in range(8)]
    assert [worker.process.wait(timeout=240) for worker in workers] == [0] * 8, [w.said.read_text() for w in workers]
    assert [worker.outages() for worker in workers] == [[]] * 8
    ledger, told = replayed(study, address)
    assert sorted(told_by(workers)) == sorted(told) == list(range(1, 8 * each + 1))
    assert study.status().counted == ledger.counted == 8 * each
    assert study.recommendation().arm == ARMS[ledger.decision.recommended]
    study.check()


def test_a_new_database_opened_by_several_processes_at_once(address: str) -> None:
    """Each finds the tables made, by itself or another, and makes a study of its own."""
    code = f"""
import sys, dbcare
sys.stdin.readline()
dbcare.create_study(sys.argv[1], ["A", "B"], cost=0.1, sigma=1.0, storage={address!r})
"""
    command = [sys.executable, "-c", code]
    openers = [subprocess.Popen([*command, f"s{number}"], stdin=subprocess.PIPE, text=True) for number in range(4)]
    time.sleep(1.0)  # until most have loaded what they need
    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.close()
    assert [opener.wait(timeout=60) for opener in openers] == [0] * 4
    assert sorted(dbcare.list_studies(address)) == [f"s{number}" for number in range(4)]


def test_a_study_that_was_opened_before_a_fork(address: str) -> None:
    """Parent and children go on with it, each with connections of its own."""
    study = dbcare.create_study("forked", ARMS, cost=1e-9, sigma=1.0, storage=address)
    assert study.status().counted == 0  # a connection is open now

    def work() -> None:
        told = 0
        while told < 20:
            if trial := study.ask(lease="5m", worker=str(os.getpid())):
                study.tell(trial, reward_of(trial.id))
                told += 1

    children = [multiprocessing.get_context("fork").Process(target=work) for _ in range(3)]
    for child in children:
        child.start()
    work()
    for child in children:
        child.join(timeout=60)
    assert [child.exitcode for child in children] == [0] * 3
    ledger, told = replayed(study, address)
    assert sorted(told) == list(range(1, 81))
    assert len(ledger.workers) == 4
    study.check()


def test_backups_of_sqlite_while_workers_write(tmp_path: Path) -> None:
    """Each opens as a store, passes its check, and has all that was acknowledged before the backup began."""
    address = f"sqlite:///{tmp_path / 'live.db'}"
    dbcare.create_study("busy", ARMS, cost=1e-9, sigma=1.0, storage=address)
    workers = [Worker(address, "busy", number, 10**9, tmp_path, lease="5m") for number in range(3)]
    try:
        while not all(worker.told() for worker in workers):
            time.sleep(0.01)
        sizes = []
        for number in range(8):
            time.sleep(0.1)
            acknowledged = told_by(workers)
            with (
                closing(sqlite3.connect(tmp_path / "live.db")) as source,
                closing(sqlite3.connect(tmp_path / f"backup{number}.db")) as target,
            ):
                source.backup(target, pages=-1 if number % 2 else 3)  # in one go, or in steps among the writers
            copy = f"sqlite:///{tmp_path / f'backup{number}.db'}"
            study = dbcare.load_study("busy", copy)
            study.check()
            ledger, told = replayed(study, copy)
            assert set(acknowledged) <= set(told)
            sizes.append(ledger.asked)
            open_store(copy).close()
    finally:
        for worker in workers:
            worker.kill()
    assert sizes == sorted(set(sizes))
    open_store(address).close()
