"""Studies that several processes work on at once, on SQLite and on a real PostgreSQL server, some of them killed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_worker import reward_of
from postgres import server

import dbcare
from dbcare import Study
from dbcare.live.create import store_of
from dbcare.live.events import Kind
from dbcare.live.ledger import Ledger

pytestmark = pytest.mark.xdist_group("postgres")

WORKER = Path(__file__).with_name("live_worker.py")
ARMS = ["A", "B", "C"]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("postgres")) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    where = f"sqlite:///{tmp_path / 'live.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres")
    yield where
    store_of(where).close()


def start(address: str, name: str, worker: int, trials: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), address, name, f"worker {worker}", str(trials)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def replayed(study: Study, address: str) -> tuple[Ledger, list[int]]:
    """A replay of all events in this process, each ask compared with what the ledger says; and the trials told."""
    ledger, told = Ledger(study.settings), []
    with store_of(address).session(study.name, write=False) as session:
        for _, event in session.since(0):
            if event.kind is Kind.ASKED:
                if event.worker is not None:
                    ledger.workers.add(event.worker)  # counted before the ask is decided
                assert event.trial == ledger.asked + 1
                assert event.arm == ledger.next_arm()
            if event.kind is Kind.TOLD:
                assert event.reward == reward_of(event.trial)
                told.append(event.trial)
            ledger.apply(event)
    return ledger, told


def test_eight_processes_share_a_study(address: str) -> None:
    """Every trial asked once and told once; the decisions are those of a replay; all workers had a part."""
    study = dbcare.create_study("eight", ARMS, cost=1e-9, sigma=1.0, storage=address)
    each = 60
    workers = [start(address, "eight", number, each) for number in range(8)]
    said = [worker.communicate(timeout=120) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8, said
    printed = [int(line.split()[0]) for out, _ in said for line in out.splitlines()]
    ledger, told = replayed(study, address)
    assert sorted(printed) == sorted(told) == list(range(1, 8 * each + 1))
    assert study.status().counted == ledger.counted == 8 * each
    assert study.recommendation().arm == ARMS[ledger.decision.recommended]
    study.check()


def test_killed_workers_lose_nothing_that_was_acknowledged(address: str) -> None:
    """SIGKILL at random moments: what a worker was acknowledged is there, nothing is there twice, the study goes on."""
    study = dbcare.create_study("killed", ARMS, cost=1e-9, sigma=1.0, storage=address)
    chance = random.Random(5)
    acknowledged: list[int] = []
    for turn in range(5):
        workers = [start(address, "killed", 10 * turn + number, 10_000) for number in range(2)]
        for worker in workers:
            assert worker.stdout is not None
            acknowledged += [int(worker.stdout.readline().split()[0]) for _ in range(chance.randint(2, 20))]
        time.sleep(0.02 * chance.random())
        for worker in workers:
            os.kill(worker.pid, signal.SIGKILL)
        for worker in workers:
            out, _ = worker.communicate(timeout=30)
            complete = out[: out.rfind("\n") + 1].splitlines()
            acknowledged += [int(line.split()[0]) for line in complete]
    time.sleep(2.1)  # the leases of the dead run out
    study.ask(1, lease="1s", worker="late")
    ledger, told = replayed(study, address)
    assert len(acknowledged) >= 20
    assert set(acknowledged) <= set(told)
    assert len(told) == len(set(told))
    assert ledger.counted >= max(acknowledged) - 1
    study.check()
