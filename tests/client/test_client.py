"""The client: keys, responses that get lost or make no sense, and servers that are killed or absent."""

import inspect
import json
import math
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest

import dbcare
from dbcare import Study
from dbcare.client.client import Client
from dbcare.client.study import RemoteStudy
from dbcare.errors import (
    AccessError,
    AnswerLostError,
    InvalidValueError,
    StorageError,
    StudyExistsError,
    StudyMismatchError,
    StudyNotFoundError,
)
from dbcare.studies.stored import StoredStudy
from tests.helpers.api_client import ApiServer
from tests.helpers.fault_proxy import HTML, JSON, LOSE_RESPONSE, FakeResponse, FaultProxy, run_fault_proxy
from tests.helpers.prepared_process import PreparedProcess
from tests.helpers.service_process import SCRIPT, find_free_port

pytestmark = pytest.mark.service

ARMS = ["A", "B", "C"]
KILLS = 2


@pytest.fixture
def proxy(server: ApiServer) -> Iterator[FaultProxy]:
    with run_fault_proxy(server.url) as running:
        yield running


@pytest.fixture
def client(proxy: FaultProxy, server: ApiServer) -> Iterator[Client]:
    with dbcare.connect(proxy.address, server.keys["admin"], patience=5.0) as connected:
        yield connected


@pytest.fixture
def study(client: Client, request: pytest.FixtureRequest) -> Study:
    return client.create_study(request.node.name, ARMS, cost=1e-3, sigma=1.0)


@pytest.mark.parametrize("kind", [RemoteStudy, StoredStudy])
def test_both_kinds_of_study_implement_every_abstract_method(kind: type[Study]) -> None:
    assert len(Study.__abstractmethods__) > 15
    assert vars(kind).keys() >= Study.__abstractmethods__
    assert not inspect.isabstract(kind)


def test_a_study_without_a_method_cannot_be_created() -> None:
    class Forgetful(RemoteStudy):
        check = Study.check

    with pytest.raises(TypeError, match="abstract method"):
        Forgetful(cast(Any, None), "ads", cast(Any, None))


def test_studies_by_name(client: Client) -> None:
    study = client.create_study("by name", ARMS, price=0.4, value=2000, sigma=0.5)
    assert "by name" in client.list_studies()
    assert client.load_study("by name").settings == study.settings
    with pytest.raises(StudyExistsError):
        client.create_study("by name", ARMS, price=0.4, value=2000, sigma=0.5)
    loaded = client.create_study("by name", ARMS, price=0.4, value=2000, sigma=0.5, load_if_exists=True)
    assert loaded.settings == study.settings
    with pytest.raises(StudyMismatchError, match=r"exists with different settings: sigma: 0\.7 given, 0\.5 stored"):
        client.create_study("by name", ARMS, price=0.4, value=2000, sigma=0.7, load_if_exists=True)
    prices = MappingProxyType(dict(zip(ARMS, (0.1, 0.2, 0.3), strict=True)))
    certain = client.create_study("certain", ARMS, price=prices, value=2, baseline=0.04, sigma_pulls=math.inf)
    assert certain.settings.costs == pytest.approx((0.05, 0.1, 0.15))
    assert (certain.settings.baseline, certain.settings.sigma_pulls) == (0.04, math.inf)
    assert client.load_study("certain").settings == certain.settings
    client.delete_study("certain")
    client.delete_study("by name")
    assert "by name" not in client.list_studies()
    for attempt in (client.load_study, client.delete_study):
        with pytest.raises(StudyNotFoundError):
            attempt("by name")
    with pytest.raises(StudyNotFoundError):
        study.ask()


def test_a_plan(client: Client) -> None:
    plan = client.plan(2, price=0.4, value=2000, sigma=0.5, gaps=(0.1, 0.2))
    assert plan == dbcare.plan(2, price=0.4, value=2000, sigma=0.5, gaps=(0.1, 0.2)).to_dict()
    with pytest.raises(InvalidValueError, match="A request must consist of finite numbers and strings"):
        client.plan(2, price=0.4, value=2000, sigma=float("nan"))


def test_lost_responses_to_requests_that_are_safe_to_retry(study: Study, proxy: FaultProxy) -> None:
    """The trial whose response was lost is handed out again; a reward counts once."""
    proxy.plan += [LOSE_RESPONSE, LOSE_RESPONSE]
    trial = study.ask(worker="w")
    assert trial is not None
    proxy.plan += [LOSE_RESPONSE]
    study.tell(trial, 0.5)
    proxy.plan += [LOSE_RESPONSE]
    study.pause()
    proxy.plan += [LOSE_RESPONSE]
    status = study.status()
    assert (status.asked, status.counted, status.state) == (1, 1, "paused")
    assert study.check() == 4  # asked, told, and paused twice, which is harmless


def test_lost_responses_to_requests_that_are_not_safe_to_retry(client: Client, study: Study, proxy: FaultProxy) -> None:
    attempts: list[tuple[Callable[[], object], str]] = [
        (lambda: study.add([("A", 1.0)]), "POST /v1/studies/"),
        (lambda: study.retire("C"), "POST /v1/studies/"),
        (lambda: client.delete_study(study.name), "DELETE /v1/studies/"),
    ]
    for attempt, request in attempts:
        sent = len(proxy.seen)
        proxy.plan += [LOSE_RESPONSE]
        with pytest.raises(AnswerLostError, match=f"No response to {request}.*; check whether it took effect"):
            attempt()
        assert len(proxy.seen) == sent + 1
        if study.name in client.list_studies():  # a proxy that gives up, with a status of its own
            proxy.plan += [FakeResponse(524, b"<html>", HTML)]
            with pytest.raises(AnswerLostError, match=r"took effect before retrying\. .* with status 524"):
                attempt()
        if study.name in client.list_studies():
            assert [arm.trials for arm in study.status().arms] == [1, 0, 0]
    assert study.name not in client.list_studies()


def test_a_lost_response_to_a_creation(client: Client, proxy: FaultProxy) -> None:
    """The study exists, once; a study with other settings is not mistaken for it."""
    proxy.plan += [LOSE_RESPONSE]
    study = client.create_study("unheard", ARMS, cost=1e-3, sigma=1.0)
    assert study.status().asked == 0
    with pytest.raises(StudyExistsError):
        client.create_study("unheard", ARMS, cost=1e-3, sigma=1.0)
    proxy.plan += [FakeResponse(503)]
    with pytest.raises(StudyMismatchError):
        client.create_study("unheard", ARMS, cost=1e-3, sigma=2.0)


def test_a_busy_server_is_asked_again_after_the_time_it_names(study: Study, proxy: FaultProxy) -> None:
    proxy.plan += [FakeResponse(429, b"{}", JSON | {"Retry-After": "1"}), FakeResponse(502, b"<html>", HTML)]
    start = time.monotonic()
    assert study.ask() is not None
    assert time.monotonic() - start >= 1.0
    proxy.plan += [FakeResponse(200, b"garbled", JSON | {"Content-Encoding": "gzip"})]
    assert study.status().asked == 1
    proxy.plan += [FakeResponse(429, b"{}", JSON)]
    study.add([("A", 1.0)])  # a request that was turned down had no effect
    assert study.status().asked == 2


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (
            FakeResponse(200, b"<html>Welcome</html>", HTML),
            "not respond like a dbcare server: it sent 'text/html'",
        ),
        (FakeResponse(404, b"<html>No</html>", HTML), "like a dbcare server: it sent 'text/html' with status 404"),
        (
            FakeResponse(200, b'{"hello": "world"}', JSON),
            "must send a Status but sent \"{'hello': 'world'}\"",
        ),
        (FakeResponse(200, b"[]", JSON), "The server must send a Status but sent '\\[\\]'"),
        (FakeResponse(500, b'{"detail": "It failed."}', JSON), r"^It failed\. \(Request \w+\)$"),
        (FakeResponse(599, b'{"detail": "Hm."}', JSON), "like a dbcare server: it sent 'Hm.' with status 599"),
        (
            FakeResponse(307, b"", {"Location": "http://elsewhere.test/"}),
            "redirects to 'http://elsewhere.test/'",
        ),
        (FakeResponse(400, b'{"detail": "x", "error": "sys"}', JSON), "sent 'x' with status 400"),
    ],
    ids=lambda value: value.status if isinstance(value, FakeResponse) else "",
)
def test_responses_that_make_no_sense(study: Study, proxy: FaultProxy, response: FakeResponse, message: str) -> None:
    """They are errors immediately: the request is neither retried nor sent elsewhere."""
    sent = len(proxy.seen)
    proxy.plan += [response]
    with pytest.raises(StorageError, match=message):
        study.status()
    assert len(proxy.seen) == sent + 1


def test_a_policy_that_only_the_server_has(study: Study, client: Client, proxy: FaultProxy) -> None:
    settings = study.settings.to_dict() | {"policy": "server-only"}
    proxy.plan += [FakeResponse(200, json.dumps({"name": study.name, "settings": settings}).encode(), JSON)]
    with pytest.raises(StorageError, match=r"cannot be used here: `policy` must be one of .* but got 'server-only'"):
        client.load_study(study.name)


def test_no_server() -> None:
    """Patience is bounded, and the message names the address."""
    address = f"http://127.0.0.1:{find_free_port()}"
    start = time.monotonic()
    with dbcare.connect(address, patience=0.5) as client:
        with pytest.raises(StorageError, match=f"The server at {address} does not respond"):
            client.list_studies()
        with pytest.raises(StorageError) as caught:
            client.delete_study("ads")
    assert type(caught.value) is StorageError  # it was never sent
    assert time.monotonic() - start < 20.0


def test_a_server_that_never_responds() -> None:
    """Every request times out."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with dbcare.connect(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2, patience=0.3) as client:
            start = time.monotonic()
            with pytest.raises(StorageError, match="does not respond \\(timed out\\)"):
                client.list_studies()
            assert time.monotonic() - start < 20.0


def test_keys(server: ApiServer, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each role can do what it is for, and no message or repr shows a key."""
    monkeypatch.setenv("DBCARE_KEY", server.keys["worker"])
    with dbcare.connect(server.url) as worker:
        loaded = worker.load_study(study.name)
        assert loaded.ask() is not None
        with pytest.raises(AccessError, match="This requires a key with the role admin; yours has worker"):
            loaded.stop()
    with dbcare.connect(server.url, key=server.keys["viewer"]) as viewer:
        loaded = viewer.load_study(study.name)
        assert loaded.status().asked == 1
        with pytest.raises(AccessError, match="This requires a key with the role worker; yours has viewer"):
            loaded.ask()
    wrong = server.keys["wrong secret"]
    with dbcare.connect(server.url, key=wrong) as stranger:
        with pytest.raises(AccessError, match=r"does not accept this API key, which.*DBCARE_KEY") as caught:
            stranger.list_studies()
        shown = "".join(traceback.format_exception(caught.value)) + repr(stranger) + repr(loaded)
        assert wrong not in shown
        assert server.keys["viewer"] not in shown
    monkeypatch.delenv("DBCARE_KEY")
    refused = pytest.raises(AccessError, match=r"requires an API key: pass `key=` of `dbcare\.connect`.*DBCARE_KEY")
    with dbcare.connect(server.url) as anonymous, refused:
        anonymous.list_studies()


def test_similar_names_are_suggested(client: dbcare.client.Client, study: Study) -> None:
    with pytest.raises(StudyNotFoundError) as caught:
        client.load_study(study.name[:-1] + "X")
    assert f"Did you mean {study.name!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("address", "key", "message"),
    [
        (
            "127.0.0.1:8080",
            None,
            "`address` must be a URL such as http://127.0.0.1:8080 but got '127.0.0.1:8080'",
        ),
        ("ftp://host", None, "`address` must be a URL such as"),
        ("http://", None, "`address` must be a URL such as"),
        ("http://host:x", None, "`address` must be a URL such as"),
        ("http://host/?a=b", None, "`address` must be a URL such as"),
        (8080, None, "`address` must be a URL such as http://127.0.0.1:8080 but got 8080"),
        (
            "http://me:secret@host",
            None,
            "`address` must not contain credentials; pass the key as `key`, or set DBCARE_KEY",
        ),
        ("http://host", "se cret", "`key` must be an API key as `dbcare keys create` prints it"),
        ("http://host", "secret\n", "`key` must be an API key"),
        ("http://host", "", "`key` must be an API key"),
    ],
)
def test_invalid_addresses_and_keys(address: str, key: str | None, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message) as caught:
        dbcare.connect(address, key)
    assert "cret" not in str(caught.value)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    monkeypatch.delitem(sys.modules, "dbcare.client.transport", raising=False)
    with pytest.raises(StorageError, match=r"pip install (-e )?'.*\[server\]'"):
        dbcare.connect("http://127.0.0.1:8080")


FORKING = """
import os, sys
import dbcare
study = dbcare.connect(sys.argv[1]).load_study("forked")
study.status()  # opens a connection, which must not be shared
child = os.fork()
for _ in range(30):
    while (trial := study.ask(worker=str(child == 0))) is None:
        pass  # waits for the other process
    study.tell(trial, float(child == 0))
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""


def test_a_forked_process_has_its_own_connections(client: Client, server: ApiServer) -> None:
    study = client.create_study("forked", ARMS, cost=1e-9, sigma=1.0)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DBCARE_KEY": server.keys["worker"]}
    subprocess.run([sys.executable, "-c", FORKING, server.url], env=environment, check=True, timeout=60)
    rows = list(study.trials())
    assert [row.status for row in rows] == ["told"] * 60
    assert all(row.reward == (row.worker == "True") for row in rows)


class KillableService:
    """The service in a process that can be killed and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self.storage = f"sqlite:///{folder / 'studies.db'}"
        self.port = find_free_port()
        self.start()

    def start(self) -> None:
        self.process = PreparedProcess(SCRIPT, [self.storage, str(self.port)], os.devnull)

    def kill(self) -> None:
        self.process.kill()  # SIGKILL
        self.process.wait()


def test_a_server_killed_while_workers_use_it(tmp_path: Path) -> None:
    """Workers do not notice: every trial asked is told once, and nothing acknowledged is lost."""
    server = KillableService(tmp_path)
    client = dbcare.connect(f"http://127.0.0.1:{server.port}", patience=60.0)
    told: list[int] = []
    enough = threading.Event()

    def work(worker: str) -> None:
        study = client.load_study("killed")
        while not enough.is_set():
            trial = study.ask(worker=worker)
            if trial is not None:
                study.tell(trial, 1.0 / trial.id)
                told.append(trial.id)

    try:
        study = client.create_study("killed", ARMS, cost=1e-9, sigma=1.0)
        workers = [threading.Thread(target=work, args=(f"worker {number}",)) for number in range(3)]
        for thread in workers:
            thread.start()
        for kills in range(KILLS + 1):
            before = len(told)
            while len(told) < before + 10:
                assert all(thread.is_alive() for thread in workers)
                time.sleep(0.005)
            if kills < KILLS:
                server.kill()
                server.start()
        enough.set()
        for thread in workers:
            thread.join()
        rows = list(study.trials())
        assert sorted(told) == [row.trial for row in rows] == list(range(1, len(rows) + 1))
        assert [row.reward for row in rows] == [1.0 / row.trial for row in rows]
        assert study.check() >= 2 * len(rows)  # an ask that was refused, with too many trials pending, is an event, too
        assert len(rows) >= 10 * (KILLS + 1)
    finally:
        enough.set()
        client.close()
        server.kill()
