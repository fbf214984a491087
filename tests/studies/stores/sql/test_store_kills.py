"""Workers and the PostgreSQL server killed with SIGKILL at random times, and replies that get lost."""

import itertools
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare.errors import AlreadyToldError, StorageError
from dbcare.studies.stores.open import open_store
from tests.helpers.announce import announce
from tests.helpers.commit_proxy import run_commit_proxy
from tests.helpers.postgres import Server, run_server
from tests.helpers.worker_main import draw_reward
from tests.helpers.worker_processes import ARMS, Worker, list_rewarded_after, list_told, replay_study

pytestmark = pytest.mark.service

WORKERS = 3  # at any time


@pytest.fixture
def own_server() -> Iterator[Server]:
    """Run a server for one test, which may kill it."""
    with run_server() as running:
        yield running


def check_survival(
    address: str, folder: Path, victims: list[str], running: Server | None = None, **options: Any
) -> None:
    """Kill the victims one by one at random times; nothing acknowledged is lost or doubled, and the study continues."""
    study = dbcare.create_study("killed", ARMS, cost=1e-9, sigma=1.0, storage=address, **options)
    chance = random.Random(len(victims))
    numbers = itertools.count()

    def start() -> Worker:
        return Worker(address, "killed", next(numbers), 10**9, folder, lease="1s")

    crew, dead = [start() for _ in range(WORKERS)], []
    position, stored = 0, set[int]()
    try:
        for turn, victim in enumerate(victims):
            place = turn % WORKERS
            while not crew[place].list_told():
                assert crew[place].process.poll() is None, crew[place].output.read_text()
                time.sleep(0.01)  # a victim must have started to work
            time.sleep(0.1 * chance.random())
            if victim == "worker":
                crew[place].kill()
                dead.append(crew[place])
                crew[place] = start()
            elif running is not None:
                running.kill()
                time.sleep(0.05 * chance.random())
                running.start()
                acknowledged = set(list_told([*crew, *dead]))
                position, added = list_rewarded_after(position, study, address)
                stored |= added
                assert acknowledged <= stored
    finally:
        for worker in crew:
            worker.kill()
    time.sleep(1.1)  # until the leases of the killed workers have expired
    before = study.status().counted
    trial = study.ask(lease="1m", worker="late")
    assert trial is not None
    study.tell(trial, draw_reward(trial.id))
    ledger, rewarded = replay_study(study, address)
    told = list_told([*crew, *dead])
    assert set(told) <= set(rewarded)
    assert len(set(told)) == len(told) >= victims.count("worker")
    assert len(set(rewarded)) == len(rewarded)
    assert ledger.counted == ledger.asked == trial.id >= before
    assert bool(running) is any(worker.list_outages() for worker in [*crew, *dead])
    study.check()
    open_store(address).close()


def shuffle_victims(workers: int, servers: int) -> list[str]:
    """Return this many workers and servers in random order."""
    victims = ["worker"] * workers + ["server"] * servers
    random.Random(7).shuffle(victims)
    return victims


@pytest.mark.parametrize("options", [{}, {"rounds": True}, {"blocks": 5_000}])
def test_sqlite_survives_killed_workers(tmp_path: Path, options: dict[str, Any]) -> None:
    check_survival(f"sqlite:///{tmp_path / 'live.db'}", tmp_path, shuffle_victims(workers=3, servers=0), **options)


def test_postgresql_survives_killed_workers_and_servers(tmp_path: Path, own_server: Server) -> None:
    check_survival(own_server.address(), tmp_path, shuffle_victims(workers=3, servers=3), own_server)


@pytest.mark.soak
def test_sqlite_survives_250_killed_workers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    check_survival(f"sqlite:///{tmp_path / 'live.db'}", tmp_path, shuffle_victims(workers=250, servers=0))
    announce(capfd, "250 workers of an SQLite file killed, nothing lost")


@pytest.mark.soak
def test_five_hundred_kills(tmp_path: Path, own_server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    check_survival(own_server.address(), tmp_path, shuffle_victims(workers=250, servers=250), own_server)
    announce(capfd, "250 workers and 250 PostgreSQL servers killed, nothing lost")


def test_a_commit_whose_reply_is_lost(postgres: Server) -> None:
    """Telling the same again is accepted; a trial whose reply was lost expires and is replaced."""
    with tempfile.TemporaryDirectory(prefix="pg") as folder, run_commit_proxy(Path(folder), postgres.socket) as proxy:
        address = postgres.address(socket=folder)
        study = dbcare.create_study("unheard", ARMS, cost=1e-9, sigma=1.0, storage=address)
        first = study.ask(lease="1m")
        assert first is not None
        proxy.lose_next.set()
        with pytest.raises(StorageError, match="dropped the connection; retry"):
            study.tell(first, draw_reward(first.id))
        assert study.status().counted == 1
        study.tell(first, draw_reward(first.id))
        with pytest.raises(AlreadyToldError):
            study.tell(first, 5.0)

        proxy.lose_next.set()
        with pytest.raises(StorageError, match="dropped the connection"):
            study.ask(lease="0.001s")
        time.sleep(0.002)
        third = study.ask(lease="1m")
        assert third is not None
        study.tell(third, draw_reward(third.id))
        assert [row.status for row in study.trials()] == ["told", "expired", "told"]
        assert replay_study(study, address)[1] == [1, 3]
        study.check()
        open_store(address).close()
