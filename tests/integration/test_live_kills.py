"""Workers and the PostgreSQL server killed with SIGKILL at random moments, and replies that get lost on their way."""

import itertools
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.commit_proxy import middleman
from helpers.postgres import Server, server
from helpers.worker_main import reward_of
from helpers.worker_processes import ARMS, Worker, answered_since, replayed, told_by

import dbcare
from dbcare.errors import AlreadyToldError, StorageError
from dbcare.live.stores.open import open_store

TOGETHER = 3  # workers at any time


@pytest.fixture
def mortal() -> Iterator[Server]:
    """A server of the test's own."""
    with server() as running:
        yield running


def survive(address: str, folder: Path, victims: list[str], running: Server | None = None) -> None:
    """Kill these one after the other at random moments; nothing acknowledged is lost or doubled, the study goes on."""
    study = dbcare.create_study("killed", ARMS, cost=1e-9, sigma=1.0, storage=address)
    chance = random.Random(len(victims))
    numbers = itertools.count()

    def start() -> Worker:
        return Worker(address, "killed", next(numbers), 10**9, folder, lease="1s")

    crew, dead = [start() for _ in range(TOGETHER)], []
    position, stored = 0, set[int]()
    try:
        for turn, victim in enumerate(victims):
            place = turn % TOGETHER
            while not crew[place].told():
                assert crew[place].process.poll() is None, crew[place].said.read_text()
                time.sleep(0.01)  # who has not begun is no victim
            time.sleep(0.1 * chance.random())
            if victim == "worker":
                crew[place].kill()
                dead.append(crew[place])
                crew[place] = start()
            elif running is not None:
                running.kill()
                time.sleep(0.05 * chance.random())
                running.start()
                acknowledged = set(told_by([*crew, *dead]))
                position, more = answered_since(position, study, address)
                stored |= more
                assert acknowledged <= stored
    finally:
        for worker in crew:
            worker.kill()
    time.sleep(1.1)  # the leases of the dead run out
    before = study.status().counted
    trial = study.ask(lease="1m", worker="late")
    assert trial is not None
    study.tell(trial, reward_of(trial.id))
    ledger, answered = replayed(study, address)
    told = told_by([*crew, *dead])
    assert set(told) <= set(answered)
    assert len(set(told)) == len(told) >= victims.count("worker")
    assert len(set(answered)) == len(answered)
    assert ledger.counted == ledger.asked == trial.id >= before
    assert bool(running) is any(worker.outages() for worker in [*crew, *dead])
    study.check()
    open_store(address).close()


def shuffled(workers: int, servers: int) -> list[str]:
    victims = ["worker"] * workers + ["server"] * servers
    random.Random(7).shuffle(victims)
    return victims


def test_sqlite_survives_killed_workers(tmp_path: Path) -> None:
    survive(f"sqlite:///{tmp_path / 'live.db'}", tmp_path, shuffled(workers=16, servers=0))


def test_postgresql_survives_killed_workers_and_servers(tmp_path: Path, mortal: Server) -> None:
    survive(mortal.address(), tmp_path, shuffled(workers=16, servers=20), mortal)


@pytest.mark.soak
def test_five_hundred_kills(tmp_path: Path, mortal: Server) -> None:
    survive(mortal.address(), tmp_path, shuffled(workers=250, servers=250), mortal)


def test_a_commit_whose_reply_is_lost(postgres: Server) -> None:
    """The same is told again and accepted; a trial that nobody heard of runs out and is replaced."""
    with tempfile.TemporaryDirectory(prefix="pg") as folder, middleman(Path(folder), postgres.socket) as between:
        address = postgres.address(socket=folder)
        study = dbcare.create_study("unheard", ARMS, cost=1e-9, sigma=1.0, storage=address)
        first = study.ask(lease="1m")
        assert first is not None
        between.lose_next.set()
        with pytest.raises(StorageError, match="must stay connected but the connection was lost: do it again"):
            study.tell(first, reward_of(first.id))
        assert study.status().counted == 1
        study.tell(first, reward_of(first.id))
        with pytest.raises(AlreadyToldError):
            study.tell(first, 5.0)

        between.lose_next.set()
        with pytest.raises(StorageError, match="the connection was lost"):
            study.ask(lease="0.001s")
        time.sleep(0.002)
        third = study.ask(lease="1m")
        assert third is not None
        study.tell(third, reward_of(third.id))
        assert [row.status for row in study.trials()] == ["told", "expired", "told"]
        assert replayed(study, address)[1] == [1, 3]
        study.check()
        open_store(address).close()
