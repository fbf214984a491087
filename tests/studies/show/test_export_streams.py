"""Exports of whole studies over HTTP and at the command line: sent while they are read, never cut off unnoticed."""

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from itertools import count, islice
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from typer.testing import CliRunner

import dbcare
from dbcare.cli import app
from dbcare.cli.reports import MAX_TABLE_ROWS
from dbcare.errors import StorageError, StudyNotFoundError
from dbcare.server.api.studies import TrialStream
from dbcare.server.app import open_listener
from dbcare.studies.show.export import TrialRow, format_trials
from dbcare.studies.stored import TRIALS_PER_PAGE, StoredStudy
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.study import Study
from tests.helpers.api_client import ApiServer, assert_refused
from tests.helpers.fault_proxy import FakeResponse, run_fault_proxy
from tests.helpers.service_process import run_limited_service

pytestmark = pytest.mark.service

ARMS = ("A", "=B", "C")
MEDIA_TYPES = {"csv": "text/csv", "json": "application/json", "jsonl": "application/jsonl"}
DAMAGED_TRIAL = 2 * TRIALS_PER_PAGE + 500


def create_long_study(storage: str, name: str, trials: int) -> Study:
    """Create a study with that many trials; it is stopped, so that adding them is fast."""
    study = dbcare.create_study(name, ARMS, cost=1e-3, sigma=1.0, storage=storage)
    study.stop()
    study.add([(ARMS[number % 3], number / 8) for number in range(trials)])
    return study


def damage_trial(storage: str, name: str) -> None:
    """Make a trial in the middle of a study unreadable."""
    with sqlite3.connect(storage.removeprefix("sqlite:///")) as database:
        changed = database.execute(
            "UPDATE events SET kind = 'nonsense' WHERE trial = ? AND study = (SELECT id FROM studies WHERE name = ?)",
            (DAMAGED_TRIAL, name),
        )
    assert changed.rowcount == 2
    database.close()


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_an_export_is_the_text_that_a_file_would_have(server: ApiServer, kind: Any) -> None:
    study = create_long_study(server.storage, f"text {kind}", TRIALS_PER_PAGE + 500)
    with server.client("viewer") as client:
        response = client.get(f"/v1/studies/text {kind}/export", params={"format": kind})
    assert response.headers["content-type"].partition(";")[0] == MEDIA_TYPES[kind]
    assert response.headers["transfer-encoding"] == "chunked"  # of a length that is not known yet
    assert response.text == "".join(format_trials(study.trials(), kind))
    assert ('"=B"' in response.text, ",'=B," in response.text) == (kind != "csv", kind == "csv")


def test_a_remote_study_iterates_over_its_trials(server: ApiServer) -> None:
    """The rest of a long response is not waited for, nor read if nobody wants it; meanwhile rewards can be told."""
    create_long_study(server.storage, "iterated", 10_000)
    local = dbcare.create_study("told", ARMS, cost=1e-3, sigma=1.0, storage=server.storage)
    with dbcare.connect(server.url, server.keys["admin"]) as client:
        study = client.load_study("iterated")
        rows = study.trials()
        assert [row.trial for row in islice(rows, 3)] == [1, 2, 3]
        told = client.load_study("told")
        trial = told.ask()
        assert trial is not None
        told.tell(trial, 0.25)
        assert [asdict(row) for row in told.trials()] == [asdict(row) for row in local.trials()]
        assert next(rows).trial == 4
        del rows
        client.delete_study("iterated")
        with pytest.raises(StudyNotFoundError, match="Study 'iterated' not found"):
            next(study.trials())


def test_a_failure_on_the_way_is_no_complete_response(server: ApiServer) -> None:
    """A page that cannot be read ends the connection, not the response; on the first page, it is a problem."""
    study = create_long_study(server.storage, "damaged", DAMAGED_TRIAL + 10)
    damage_trial(server.storage, "damaged")
    with pytest.raises(StorageError, match="is corrupted"):
        list(study.trials())
    with server.client() as client:
        for kind in MEDIA_TYPES:
            received: list[bytes] = []
            with (
                client.stream("GET", "/v1/studies/damaged/export", params={"format": kind}) as response,
                pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"),
            ):
                received.extend(response.iter_raw())
            assert b"".join(received).count(b"\n") > TRIALS_PER_PAGE
            assert not received[-1].endswith(b"]\n")
        with dbcare.connect(server.url, server.keys["viewer"]) as connected:
            rows = connected.load_study("damaged").trials()
            assert next(rows).trial == 1
            with pytest.raises(
                StorageError, match=r"GET /v1/studies/damaged/export\?format=jsonl ended early .*; retry"
            ):
                list(rows)
    short = create_long_study(server.storage, "short", 10)
    with sqlite3.connect(server.storage.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE events SET kind = 'nonsense' WHERE study = (SELECT max(id) FROM studies)")
    database.close()
    with server.client() as client:
        assert_refused(client.get("/v1/studies/short/export"), 503, "The database is unavailable")
        client.delete(f"/v1/studies/{short.name}").raise_for_status()
        client.delete("/v1/studies/damaged").raise_for_status()


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        ("text/html", b"<html>", "does not respond like a dbcare server: it sent 'text/html'"),
        ("application/jsonl", b'{"trial": 1, "arm": "A"', r"must send a TrialRow but sent '\{\"trial\": 1"),
        ("application/jsonl", b"[1]\n", r"must send a TrialRow but sent '\[1\]'"),
    ],
)
def test_other_responses_are_no_trials(server: ApiServer, content_type: str, body: bytes, message: str) -> None:
    create_long_study(server.storage, f"misread {len(body)} {len(message)}", 3)
    with (
        run_fault_proxy(server.url) as proxy,
        dbcare.connect(proxy.address, server.keys["viewer"], patience=0.0) as client,
    ):
        study = client.load_study(f"misread {len(body)} {len(message)}")
        proxy.plan.append(FakeResponse(200, body, {"Content-Type": content_type}))
        with pytest.raises(StorageError, match=message):
            list(study.trials())
        assert len(list(study.trials())) == 3


def read_peak_memory(pid: int) -> int:
    """Return the most bytes that a process ever had in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


LIST_ALL = """
import sys
import dbcare
def read_peak():
    status = open("/proc/self/status").read()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])
study = dbcare.load_study("long", sys.argv[1])
next(study.trials())
before = read_peak()
rows = list(study.trials())
print(read_peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="requires /proc, to read a process's memory")
def test_the_server_never_has_all_trials_in_memory(tmp_path: Path) -> None:
    """It needs less memory than the response is long, and far less than the rows would take: the control."""
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    create_long_study(storage, "long", 20_000)
    create_long_study(storage, "warm-up", 3_000)
    with run_limited_service(storage) as service, httpx.Client(base_url=service.address, timeout=60.0) as client:
        client.get("/v1/studies/long/status").raise_for_status()
        client.get("/v1/studies/warm-up/export", params={"format": "jsonl"}).raise_for_status()
        before = read_peak_memory(service.pid)
        with client.stream("GET", "/v1/studies/long/export", params={"format": "jsonl"}) as response:
            size = sum(len(part) for part in response.iter_raw())
        grown = read_peak_memory(service.pid) - before
    assert size > 5e6
    assert grown < 4e6
    listing = subprocess.run([sys.executable, "-c", LIST_ALL, storage], check=True, capture_output=True, text=True)
    assert int(listing.stdout) > 9e6


class EndlessStudy(StoredStudy):
    """A study whose trials never end, which counts how many were read."""

    read = 0

    def trials(self) -> Iterator[TrialRow]:
        """Iterate over a trial that comes again and again."""
        row = TrialRow(1, "A", "told", 0.5, None, True, None, "now", None, "now")
        for self.read in count(1):
            yield row


@contextmanager
def serve_responses(respond: Callable[[], TrialStream]) -> Iterator[str]:
    """Run a server that sends the same kind of response to every request."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await respond()(scope, receive, send)

    config = uvicorn.Config(application, log_level="error", lifespan="off")
    running = uvicorn.Server(config)
    with open_listener("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join()


def wait_until_quiet(read: Callable[[], int]) -> int:
    """Return a count once it has not changed for half a second."""
    seen = -1
    while seen != (seen := read()):
        time.sleep(0.5)
    return seen


def test_a_stream_waits_for_a_slow_client_and_ends_when_it_leaves() -> None:
    """While the client reads nothing, no more is read from the study than fits into buffers."""
    store = MemoryStore()
    dbcare.create_study("endless", ARMS, cost=1e-3, sigma=1.0, storage=store)
    study = EndlessStudy(store, "endless")
    with (
        serve_responses(lambda: TrialStream(study, "jsonl", nullcontext)) as url,
        httpx.stream("GET", url, timeout=30.0) as response,
    ):
        parts = response.iter_raw()
        next(parts)
        waiting = wait_until_quiet(lambda: study.read)
        deadline = time.monotonic() + 60.0
        while study.read == waiting and time.monotonic() < deadline:
            next(parts)
        assert study.read > waiting
        response.close()
        left = wait_until_quiet(lambda: study.read)
    assert study.read == left


def run_command(storage: str, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Run a command, check its exit code, and return what it printed, and its messages."""
    result = CliRunner().invoke(app, arguments, env={"DBCARE_STORAGE": storage})
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_printed_exports(tmp_path: Path) -> None:
    """CSV by default, with formulas defused as in a file; a table has the last trials and says so."""
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    study = create_long_study(storage, "ads", MAX_TABLE_ROWS + 2)
    plain = [asdict(row) for row in study.trials()]
    printed = {kind: run_command(storage, "export", "ads", "--format", kind)[0] for kind in MEDIA_TYPES}
    assert printed["csv"] == run_command(storage, "export", "ads")[0] == study.export(tmp_path / "t.csv").read_text()
    assert printed["csv"].splitlines()[2].startswith("2,'=B,told,0.125,")
    assert json.loads(printed["json"]) == plain
    assert [json.loads(line) for line in printed["jsonl"].splitlines()] == plain
    table, note = run_command(storage, "export", "ads", "--format", "table")
    assert [int(line.split()[0]) for line in table.splitlines()[1:]] == list(range(3, MAX_TABLE_ROWS + 3))
    assert note == "Trials 1 to 2 are not shown; write all to a file such as t.csv.\n"


def test_an_exported_log_can_be_imported(tmp_path: Path) -> None:
    """Arms whose names were defused are recognized."""
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    study = create_long_study(storage, "first", 9)
    copy = dbcare.create_study("second", ARMS, cost=1e-3, sigma=1.0, storage=storage)
    run_command(storage, "export", "first", str(tmp_path / "t.csv"))
    run_command(storage, "import", str(tmp_path / "t.csv"), "--into", "second")
    assert [(row.arm, row.reward) for row in copy.trials()] == [(row.arm, row.reward) for row in study.trials()]


def test_a_printed_export_that_fails_on_the_way_says_so(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    create_long_study(storage, "damaged", DAMAGED_TRIAL + 10)
    damage_trial(storage, "damaged")
    for arguments in ((), ("--format", "json"), ("--format", "table"), (str(tmp_path / "t.csv"),)):
        printed, message = run_command(storage, "export", "damaged", *arguments, code=2)
        assert message.startswith("Error: ")
        assert "is corrupted" in message
        assert not printed.endswith("]\n")
    assert not (tmp_path / "t.csv").exists()
