"""`Study.assign` in time: with a service that is down, hung, or slow, and a database that is locked."""

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import dbcare
from dbcare import Study
from dbcare.errors import AccessError, StorageError, StudyNotFoundError
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.studies.assignment import ARRIVAL_SECONDS, MAX_REQUESTS
from dbcare.studies.stores.open import open_store
from tests.helpers.service_process import Service, find_free_port, run_limited_service

pytestmark = pytest.mark.service

ARMS = ["old", "new"]
WITHIN = 0.2
SLACK = 10.0  # of a busy machine, which may be slow to run a thread that is due; patience without a limit is 30 s
START_SECONDS = 3.0  # until a thread that was started has run
MAX_SECONDS = 60.0


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'live.db'}"


@pytest.fixture
def local(storage: str) -> Study:
    return dbcare.create_study("shop", ARMS, cost=1e-9, sigma=1.0, control="old", storage=storage)


@contextmanager
def hang(service: Service) -> Iterator[None]:
    os.kill(service.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(service.pid, signal.SIGCONT)


def assign_in_time(study: Study, unit: str) -> dbcare.studies.Assignment:
    began = time.monotonic()
    found = study.assign(unit, "old", WITHIN)
    assert time.monotonic() - began < WITHIN + SLACK
    return found


def assign_at_last(study: Study, unit: str) -> dbcare.studies.Assignment:
    """Assign until the study answers: a busy machine may be slower than a client's timeout."""
    until = time.monotonic() + MAX_SECONDS
    while (found := study.assign(unit, "old", MAX_SECONDS)).problem is not None:
        assert time.monotonic() < until, found
        time.sleep(0.05)
    return found


def wait_until_settled(study: Study, units: set[str]) -> None:
    """Wait until none of the units has a trial that is not given back."""
    until = time.monotonic() + MAX_SECONDS
    while True:
        rows = [row for row in study.trials() if row.unit in units]
        if all((row.status, row.reason) == ("failed", "granted too late to be shown") for row in rows):
            return
        assert time.monotonic() < until, rows
        time.sleep(0.05)


@pytest.mark.parametrize("timeout", [30.0, 0.5])
def test_a_service_that_hangs_and_goes_on(local: Study, storage: str, timeout: float) -> None:
    """Everybody gets an answer in time; whatever it granted meanwhile is given back, and costs nothing.

    Requests wait longer than the service hangs, or give up before that.
    """
    units = {f"visitor-{number}" for number in range(20)}
    with (
        run_limited_service(storage) as service,
        dbcare.connect(service.address, timeout=timeout) as client,
        dbcare.connect(service.address) as patient,
    ):
        study, observer = client.load_study("shop"), patient.load_study("shop")
        seen = assign_at_last(study, "regular")
        assert seen.trial is not None
        with hang(service):
            with ThreadPoolExecutor(len(units) + 1) as pool:
                found = list(pool.map(lambda unit: assign_in_time(study, unit), [*units, "regular"]))
            assert {(one.arm, one.reason, one.trial) for one in found} == {("old", "fallback", None)}
            assert all(one.problem for one in found)
            time.sleep(1.0)
        again = assign_at_last(study, "regular")  # its own is not given back
        assert (again.reason, again.trial) == ("own trial", seen.trial)
        wait_until_settled(observer, units)
        assert observer.status().spent == 0.0
        time.sleep(ARRIVAL_SECONDS)
        for unit in units:
            assert assign_at_last(study, unit).trial is not None
        assert {row.unit for row in observer.trials() if row.status == "asked"} == {"regular", *units}
    local.check()


def test_a_service_that_is_down(local: Study, storage: str) -> None:
    """Nobody waits longer than stated, however many ask; nothing remains to be given back."""
    port = find_free_port()
    with dbcare.connect(f"http://127.0.0.1:{port}", patience=0.0) as client, pytest.raises(StorageError):
        client.load_study("shop")
    with run_limited_service(storage) as service, closing(dbcare.connect(service.address, patience=4.0)) as client:
        study = client.load_study("shop")
    with ThreadPoolExecutor(2 * MAX_REQUESTS) as pool:
        found = list(pool.map(lambda number: assign_in_time(study, f"u{number}"), range(2 * MAX_REQUESTS)))
    assert {(one.arm, one.reason) for one in found} == {("old", "fallback")}
    began = time.monotonic()
    with pytest.raises(StorageError, match="does not respond"):
        study.assign("u", within=WITHIN)  # without a fallback, it waits as long as the client has patience
    assert time.monotonic() - began > 1.0
    client.close()
    assert local.status().asked == 0


def test_a_database_that_is_locked(local: Study, storage: str) -> None:
    """A turn that comes too late hands out nothing."""
    path = storage.removeprefix("sqlite:///")
    assert local.assign("first", "old", MAX_SECONDS).reason == "new trial"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        found = [assign_in_time(local, unit) for unit in ("second", "second", "third")]
        assert [(one.arm, one.reason) for one in found] == [("old", "fallback")] * 3
        time.sleep(START_SECONDS)  # their threads began to count a little later
        other.execute("ROLLBACK")
    assert assign_at_last(local, "second").reason == "new trial"
    assert [row.unit for row in local.trials()] == ["first", "second"]


def test_errors_that_time_cannot_mend_are_raised(local: Study, storage: str) -> None:
    with run_limited_service(storage) as service, dbcare.connect(service.address) as client:
        study = client.load_study("shop")
        dbcare.delete_study("shop", storage)
        with pytest.raises(StudyNotFoundError):
            study.assign("u", "old", MAX_SECONDS)
    with pytest.raises(StudyNotFoundError):
        local.assign("u", "old", MAX_SECONDS)


def test_a_key_that_may_not_ask(local: Study, storage: str) -> None:
    _, key = Keys(open_records(open_store(storage))).create("page", "viewer")
    with run_limited_service(storage) as service, dbcare.connect(service.address, key) as client:
        study = client.load_study("shop")
        with pytest.raises(AccessError):
            study.assign("u", "old", MAX_SECONDS)


def test_units_that_ask_at_once_in_many_threads_get_one_trial(local: Study) -> None:
    ready = threading.Barrier(16)

    def assign(_number: int) -> dbcare.studies.Assignment:
        ready.wait()
        return local.assign("visitor", "old", MAX_SECONDS)

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(assign, range(16)))
    assert sorted(one.reason for one in found) == ["new trial"] + 15 * ["own trial"]
    assert local.status().asked == 1


def test_a_forked_child_assigns(local: Study) -> None:
    """Its parent's threads and requests are not its own."""
    local.assign("parent", "old", MAX_SECONDS)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if local.assign("child", "old", MAX_SECONDS).reason == "new trial" else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert local.assign("child").reason == "own trial"
