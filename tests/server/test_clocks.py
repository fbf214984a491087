"""Clocks that jump by an hour in either direction: nothing is lost, nothing hangs, and leases go by them as documented.

"Leases go by the clock of the machine that asks": its clock says when a lease that it hands out ends, and which leases
of others have ended. An expired trial is replaced, and its reward is recorded as late when it comes. A process whose
clock jumps ahead while it runs gives the trials asked before the jump their remaining time again.
"""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

import dbcare
from dbcare import Study
from dbcare.server.access.gate import COOKIE
from dbcare.server.access.keys import Keys, Sessions
from dbcare.server.access.records import open_records
from dbcare.studies.stores.open import open_store
from tests.helpers.api_client import assert_refused
from tests.helpers.moving_clock import MovingClock
from tests.helpers.service_process import SCRIPT, find_free_port
from tests.helpers.worker_main import draw_reward
from tests.helpers.worker_processes import ARMS, WORKER, Worker, list_told, replay_study

pytestmark = pytest.mark.service

HOUR, HALF = 3600, 1800.0
MAX_SECONDS = 60.0  # on a busy machine


@pytest.fixture
def clock(tmp_path: Path) -> MovingClock:
    return MovingClock(tmp_path)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    storage = f"sqlite:///{tmp_path / 'live.db'}"
    yield storage
    open_store(storage).close()


@pytest.fixture
def study(address: str) -> Study:
    return dbcare.create_study("moving", ARMS, cost=1e-9, sigma=1.0, max_ahead=10, storage=address)


class ClockWorker:
    """A worker whose clock moves, and who does what it is told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, command: str) -> str:
        """Carry out a command; return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def ask(self) -> tuple[int, float]:
        """Return a trial with a lease of 30 minutes, and in how many seconds by the right time that ends."""
        trial, expires = self.do("ask 30m").split()
        return int(trial), float(expires) - time.time()


@contextmanager
def run_clock_worker(address: str, clock: MovingClock) -> Iterator[ClockWorker]:
    script = WORKER.with_name("clock_worker_main.py")
    with subprocess.Popen(
        [sys.executable, str(script), address, "moving"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=clock.environment,
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield ClockWorker(process)
        finally:
            process.kill()


def test_leases_go_by_the_clock_of_the_machine_that_asks(study: Study, address: str, clock: MovingClock) -> None:
    with run_clock_worker(address, clock) as worker:
        first, seconds = worker.ask()
        assert seconds == pytest.approx(HALF, abs=30.0)

        clock.move(HOUR)  # while it runs, so the first trial keeps its remaining time
        assert float(worker.do("time")) - time.time() == pytest.approx(HOUR, abs=30.0)
        second, seconds = worker.ask()
        assert seconds == pytest.approx(HALF + HOUR, abs=30.0)
        assert [worker.do(f"tell {trial}") for trial in (first, second)] == ["told"] * 2

        ahead, _ = worker.ask()
        clock.move(0)  # a lease that was handed out ahead of time lasts longer
        mine = study.ask()
        assert mine is not None
        assert [pending.trial for pending in study.pending()] == [ahead, mine.id]
        assert worker.do(f"tell {ahead}") == "told"
        study.tell(mine, draw_reward(mine.id))

        clock.move(-HOUR)  # a lease that was handed out behind the time has ended for everyone else
        behind, seconds = worker.ask()
        assert seconds == pytest.approx(HALF - HOUR, abs=30.0)
        replacement = study.ask()
        assert replacement is not None
        assert worker.do(f"tell {behind}") == "told"
        assert worker.do(f"tell {replacement.id}") == "told"
    rows = list(study.trials())
    assert [row.trial for row in rows if row.status == "expired"] == [behind]
    assert [row.late for row in rows if row.status == "expired"] == [draw_reward(behind)]
    assert [row.trial for row in rows if row.status == "told"] == [first, second, ahead, mine.id, replacement.id]
    assert replay_study(study, address)[0].counted == study.status().counted == replacement.id == 6
    study.check()


def test_clocks_that_jump_while_workers_work(study: Study, address: str, clock: MovingClock, tmp_path: Path) -> None:
    """Two workers with a clock that jumps, and one with the right time: nothing acknowledged is lost or doubled."""
    moving = [Worker(address, "moving", number, 10**9, tmp_path, "30m", clock.environment) for number in range(2)]
    steady = Worker(address, "moving", 2, 10**9, tmp_path, "30m")
    workers = [*moving, steady]
    try:
        for offset in (0, HOUR, 0, -HOUR, HOUR, -HOUR, 0):
            clock.move(offset)
            before = [len(worker.list_told()) for worker in workers]
            until = time.monotonic() + MAX_SECONDS
            while any(len(worker.list_told()) < old + 5 for worker, old in zip(workers, before, strict=True)):
                assert time.monotonic() < until, [worker.read_lines()[-1:] for worker in workers]
                time.sleep(0.02)
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.list_outages() for worker in workers] == [[]] * 3
    told = list_told(workers)
    assert len(set(told)) == len(told)
    ledger, rewarded = replay_study(study, address)
    assert len(set(rewarded)) == len(rewarded)
    assert set(told) <= set(rewarded)
    assert any(row.status == "expired" for row in study.trials())  # for those whose clock was an hour ahead
    assert study.status().counted == ledger.counted
    study.check()
    for pending in study.pending():  # of those that were killed
        study.tell(pending.trial, draw_reward(pending.trial))
    assert study.status().counted == replay_study(study, address)[0].asked


def test_waiting_for_a_lock_goes_by_another_clock(
    study: Study, address: str, clock: MovingClock, tmp_path: Path
) -> None:
    """A worker waits for a lock as long as it should, neither an hour longer nor an hour less."""
    with (
        run_clock_worker(f"{address}?timeout=1", clock) as worker,
        closing(sqlite3.connect(tmp_path / "live.db", isolation_level=None)) as other,
    ):
        for offset in (HOUR, -HOUR):
            trial, _ = worker.ask()
            other.execute("BEGIN IMMEDIATE")
            start = time.monotonic()
            clock.move(offset)
            assert worker.do(f"tell {trial}").startswith("StorageError")
            assert 0.75 < time.monotonic() - start < MAX_SECONDS
            other.execute("ROLLBACK")
            assert worker.do(f"tell {trial}") == "told"
    assert study.status().counted == 2


@pytest.mark.soak
def test_a_server_whose_clock_jumps(study: Study, address: str, clock: MovingClock) -> None:
    """Keys and sessions are valid by the server's clock, and asks and tells go on."""
    records = open_records(open_store(address))
    _, lasting = Keys(records).create("lasting", "worker")
    brief, expiring = Keys(records).create("brief", "worker", HALF)
    _, patient = Keys(records).create("patient", "worker", 2.0 * HOUR)
    viewer, _ = Keys(records).create("viewer", "viewer")
    assert brief.expires is not None
    port = find_free_port()
    server = subprocess.Popen(
        [sys.executable, str(SCRIPT), address, str(port)], env=clock.environment, stderr=subprocess.DEVNULL
    )
    told = []
    try:
        with (
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=MAX_SECONDS) as client,
            httpx.Client(base_url=client.base_url, cookies={COOKIE: Sessions(records).open(viewer)}) as browser,
        ):
            wait_until_ready(client, server)

            def work(key: str) -> httpx.Response:
                headers = {"Authorization": f"Bearer {key}"}
                asked = client.post("/v1/studies/moving/ask", json={"lease": 1800}, headers=headers)
                if asked.is_success:
                    trial = asked.json()["trials"][0]["id"]
                    outcome = {"trial": trial, "reward": draw_reward(trial)}
                    client.post("/v1/studies/moving/tell", json=outcome, headers=headers).raise_for_status()
                    told.append(trial)
                return asked

            for offset in (0, HOUR, 0, -HOUR, 0, HOUR):
                clock.move(offset)
                time.sleep(0.3)  # longer than a valid key is remembered
                assert work(lasting).status_code == work(patient).status_code == 200
                if offset > HALF:
                    assert_refused(work(expiring), 401, "This API key is not valid")
                else:
                    assert work(expiring).status_code == 200
                assert browser.get("/").status_code == 200
            clock.move(13 * HOUR)  # a session lasts 12 hours
            assert browser.get("/").status_code == 303
            assert work(lasting).status_code == 200
    finally:
        server.kill()
        server.wait()
    ledger, rewarded = replay_study(study, address)
    assert told == sorted(told) == rewarded
    assert len(told) == 6 * 3 - 2 + 1
    assert ledger.counted == study.status().counted == len(told)
    study.check()


def wait_until_ready(client: httpx.Client, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server responds."""
    until = time.monotonic() + MAX_SECONDS
    while True:
        try:
            client.get("/healthz").raise_for_status()
            return
        except httpx.TransportError:
            assert server.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
