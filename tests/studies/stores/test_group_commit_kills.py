"""Processes killed with SIGKILL in the middle of a group commit: 16 threads of the library, 32 connections of a server.

A journal outside of what is killed has what was acknowledged: none of it is lost, doubled or changed. What was not
acknowledged is sent again, with the same key.
"""

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare import Study
from dbcare.errors import StorageError
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.server.access.roles import Role
from dbcare.studies.stores.group_commit import GroupCommit, Operation
from dbcare.studies.stores.open import open_store
from tests.helpers.announce import announce
from tests.helpers.http_clients import HttpClients
from tests.helpers.journal import Journal
from tests.helpers.postgres import Server, run_server
from tests.helpers.prepared_process import PreparedProcess
from tests.helpers.service_process import SCRIPT, find_free_port
from tests.helpers.worker_processes import ARMS

pytestmark = pytest.mark.service

THREADS, CLIENTS = 16, 32
WORKER = Path(__file__).parents[2] / "helpers" / "worker_group_main.py"
MAX_WAIT_SECONDS = 60.0  # on a busy machine


@pytest.fixture
def own_server() -> Iterator[Server]:
    """Run a PostgreSQL server for one test, which may kill it."""
    with run_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    sqlite = f"sqlite:///{tmp_path / 'live.db'}"
    storage = sqlite if request.param == "sqlite" else request.getfixturevalue("own_server").address()
    yield storage
    open_store(storage).close()


def create(address: str) -> Study:
    return dbcare.create_study("killed", ARMS, cost=1e-9, sigma=1.0, max_ahead=1000, storage=address)


def wait_for_more(journal: Journal, chance: random.Random) -> None:
    """Wait until more was acknowledged, and then a random while."""
    until = time.monotonic() + MAX_WAIT_SECONDS
    journal.read()
    before = len(journal.told)
    while len(journal.told) <= before + THREADS:
        assert time.monotonic() < until
        time.sleep(0.01)
        journal.read()
    time.sleep(0.05 * chance.random())


def kill(process: PreparedProcess) -> None:
    process.kill()
    process.wait()


def start_group(address: str, number: int, folder: Path, journal: Journal, *early: str) -> PreparedProcess:
    """Start a process with threads that write to the journal."""
    output = folder / f"group-{number}.txt"
    process = PreparedProcess(WORKER, [address, "killed", str(number), str(THREADS), *early], output)
    journal.follow(output)
    return process


def kill_groups(study: Study, address: str, folder: Path, kills: int, *early: str) -> tuple[Journal, set[int]]:
    """Kill groups at random moments until something is lost, but at most so often; return what is lost."""
    journal, chance, lost = Journal(), random.Random(kills), set[int]()
    for number in range(kills):
        group = start_group(address, number, folder, journal, *early)
        try:
            wait_for_more(journal, chance)
        finally:
            kill(group)
        lost = journal.find_lost(study, address)
        if lost:
            break
        journal.settle(study)
    return journal, lost


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.soak)])
def test_groups_of_threads_are_killed(
    address: str, tmp_path: Path, kills: int, capfd: pytest.CaptureFixture[str]
) -> None:
    study = create(address)
    journal, lost = kill_groups(study, address, tmp_path, kills)
    assert lost == set()
    journal.check(study, address)
    announce(capfd, f"{kills} groups of {THREADS} threads killed, {len(journal.told)} rewards acknowledged, none lost")


def test_the_journal_finds_what_was_acknowledged_too_early(tmp_path: Path) -> None:
    """Negative control: threads that acknowledge before the commit are found out within a few kills."""
    address = f"sqlite:///{tmp_path / 'live.db'}"
    _, lost = kill_groups(create(address), address, tmp_path, 20, "early")
    assert lost
    open_store(address).close()


@pytest.mark.soak
@pytest.mark.parametrize(("kills", "outages"), [(50, 20)])
def test_a_server_with_many_connections_is_killed(
    address: str, request: pytest.FixtureRequest, kills: int, outages: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """On PostgreSQL, the database is killed too."""
    study, journal, chance = create(address), Journal(), random.Random(kills)
    database: Server | None = None if "sqlite" in address else request.getfixturevalue("own_server")
    victims = ["server"] * kills + ["database"] * (0 if database is None else outages)
    chance.shuffle(victims)
    _, key = Keys(open_records(open_store(address))).create("clients", Role.WORKER)
    port = find_free_port()

    def start() -> PreparedProcess:
        return PreparedProcess(SCRIPT, [address, str(port)], os.devnull)

    server = start()
    try:
        with HttpClients(port, key, "killed", CLIENTS, journal) as clients:
            for victim in victims:
                wait_for_more(journal, chance)
                if victim == "server":
                    kill(server)
                    server = start()
                elif database is not None:
                    database.kill()
                    database.start()
                assert journal.find_lost(study, address) == set()
            wait_for_more(journal, chance)
    finally:
        kill(server)
    assert clients.failures >= len(victims)
    assert journal.find_lost(study, address) == set()
    journal.settle(study)
    journal.check(study, address)
    count = f"{kills} servers and {victims.count('database')} databases killed"
    announce(capfd, f"{count}, {len(journal.told)} rewards acknowledged, none lost")


class Interrupted(Operation[str]):
    """The first group waits until it may go on; the next one is interrupted before anything is stored."""

    may_go_on = threading.Event()

    @staticmethod
    def carry_out(group: list[Any]) -> None:
        if not Interrupted.may_go_on.is_set():
            Interrupted.may_go_on.wait(MAX_WAIT_SECONDS)
            return
        raise KeyboardInterrupt  # as Ctrl-C does while the main thread waits for a lock


def test_ctrl_c_in_the_thread_that_leads_a_group() -> None:
    """Others in its group hear that nothing was stored: silence would be an acknowledgement."""
    commits, outcomes = GroupCommit(), list[str]()

    def run() -> None:
        try:
            commits.run(Interrupted("lane"))
            outcomes.append("acknowledged")
        except (KeyboardInterrupt, StorageError) as failure:
            outcomes.append(type(failure).__name__)

    threads = [threading.Thread(target=run) for _ in range(5)]
    for thread in threads:
        thread.start()
        time.sleep(0.05)  # the first leads, the others wait
    Interrupted.may_go_on.set()
    for thread in threads:
        thread.join(MAX_WAIT_SECONDS)
    assert outcomes.count("acknowledged") == 1  # the first
    assert outcomes.count("KeyboardInterrupt") == 1
    assert outcomes.count("StorageError") == 3
