"""The client: keys, answers that get lost or make no sense, and servers that are killed, or are not there."""

import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.api_client import Running
from helpers.fault_proxy import HTML, JSON, LOSE, Says, Unruly, unruly
from helpers.service_process import SCRIPT

import dbcare
from dbcare import Study
from dbcare.client.connect import Client
from dbcare.client.remote_study import RemoteStudy
from dbcare.errors import (
    AccessError,
    AnswerLostError,
    InvalidValueError,
    StorageError,
    StudyExistsError,
    StudyMismatchError,
    StudyNotFoundError,
)

ARMS = ["A", "B", "C"]
KILLS = 3


@pytest.fixture
def between(server: Running) -> Iterator[Unruly]:
    with unruly(server.url) as made:
        yield made


@pytest.fixture
def client(between: Unruly, server: Running) -> Iterator[Client]:
    with dbcare.connect(between.address, server.keys["admin"], patience=5.0) as connected:
        yield connected


@pytest.fixture
def study(client: Client, request: pytest.FixtureRequest) -> Study:
    return client.create_study(request.node.name, ARMS, cost=1e-3, sigma=1.0)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_it_has_all_methods_of_a_study() -> None:
    """Those that need a store are its own."""
    own, shared = vars(RemoteStudy), {"to_dataframe", "export"}
    public = {name for name, value in vars(Study).items() if callable(value) and not name.startswith("_")}
    assert len(public) > 15
    assert public - own.keys() == shared


def test_studies_by_name(client: Client) -> None:
    made = client.create_study("by name", ARMS, price=0.4, value=2000, sigma=0.5)
    assert "by name" in client.list_studies()
    assert client.load_study("by name").settings == made.settings
    with pytest.raises(StudyExistsError):
        client.create_study("by name", ARMS, price=0.4, value=2000, sigma=0.5)
    same = client.create_study("by name", ARMS, price=0.4, value=2000, sigma=0.5, load_if_exists=True)
    assert same.settings == made.settings
    with pytest.raises(StudyMismatchError, match=r"'by name' must have the settings .* sigma: 0.7 given, 0.5 stored"):
        client.create_study("by name", ARMS, price=0.4, value=2000, sigma=0.7, load_if_exists=True)
    client.delete_study("by name")
    assert "by name" not in client.list_studies()
    for attempt in (client.load_study, client.delete_study):
        with pytest.raises(StudyNotFoundError):
            attempt("by name")
    with pytest.raises(StudyNotFoundError):
        made.ask()


def test_a_plan(client: Client) -> None:
    found = client.plan(2, 0.4, 2000, sigma=0.5, gaps=(0.1, 0.2), runs=100)
    assert found == dbcare.plan(2, 0.4, 2000, sigma=0.5, gaps=(0.1, 0.2), runs=100).to_dict()
    with pytest.raises(InvalidValueError, match="A request must consist of finite numbers and texts"):
        client.plan(2, 0.4, 2000, sigma=float("nan"))


def test_lost_answers_to_what_may_be_repeated(study: Study, between: Unruly) -> None:
    """The trial that nobody heard of is given again; what was told is told once."""
    between.plan += [LOSE, LOSE]
    trial = study.ask(worker="w")
    assert trial is not None
    between.plan += [LOSE]
    study.tell(trial, 0.5)
    between.plan += [LOSE]
    study.pause()
    between.plan += [LOSE]
    status = study.status()
    assert (status.asked, status.counted, status.state) == (1, 1, "paused")
    assert study.check() == 4  # asked, told, and paused twice, which is no harm


def test_lost_answers_to_what_must_not_be_repeated(client: Client, study: Study, between: Unruly) -> None:
    attempts: list[tuple[Callable[[], object], str]] = [
        (lambda: study.add([("A", 1.0)]), "POST /v1/studies/"),
        (lambda: study.retire("C"), "POST /v1/studies/"),
        (lambda: client.delete_study(study.name), "DELETE /v1/studies/"),
    ]
    for attempt, words in attempts:
        sent = len(between.seen)
        between.plan += [LOSE]
        with pytest.raises(AnswerLostError, match=f"{words}.* may have been done or not: look before doing it again"):
            attempt()
        assert len(between.seen) == sent + 1
        if study.name in client.list_studies():
            assert [arm.trials for arm in study.status().arms] == [1, 0, 0]
    assert study.name not in client.list_studies()


def test_a_lost_answer_to_a_creation(client: Client, between: Unruly) -> None:
    """The study is there, once; another one in its place is not taken for it."""
    between.plan += [LOSE]
    made = client.create_study("unheard", ARMS, cost=1e-3, sigma=1.0)
    assert made.status().asked == 0
    with pytest.raises(StudyExistsError):
        client.create_study("unheard", ARMS, cost=1e-3, sigma=1.0)
    between.plan += [Says(503)]
    with pytest.raises(StudyMismatchError):
        client.create_study("unheard", ARMS, cost=1e-3, sigma=2.0)


def test_a_busy_server_is_asked_again_when_it_wishes(study: Study, between: Unruly) -> None:
    between.plan += [Says(429, b"{}", JSON | {"Retry-After": "1"}), Says(502, b"<html>", HTML)]
    began = time.monotonic()
    assert study.ask() is not None
    assert time.monotonic() - began >= 1.0
    between.plan += [Says(200, b"garbled", JSON | {"Content-Encoding": "gzip"})]
    assert study.status().asked == 1
    between.plan += [Says(429, b"{}", JSON)]
    study.add([("A", 1.0)])  # what was turned down was not done
    assert study.status().asked == 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Says(200, b"<html>Welcome</html>", HTML), "must answer as dbcare's server does but sent 'text/html'"),
        (Says(404, b"<html>No</html>", HTML), "as dbcare's server does but sent 'text/html' with status 404"),
        (Says(200, b'{"hello": "world"}', JSON), "The server must send a Status but sent \"{'hello': 'world'}\""),
        (Says(200, b"[]", JSON), "The server must send a Status but sent '\\[\\]'"),
        (Says(500, b'{"detail": "It failed."}', JSON), "^It failed.$"),
        (Says(599, b'{"detail": "Hm."}', JSON), "as dbcare's server does but sent 'Hm.' with status 599"),
        (Says(307, b"", {"Location": "http://elsewhere.test/"}), "must answer itself but sends to 'http://elsewhere"),
        (Says(400, b'{"detail": "x", "error": "sys"}', JSON), "sent 'x' with status 400"),
    ],
    ids=lambda value: value.status if isinstance(value, Says) else "",
)
def test_answers_that_make_no_sense(study: Study, between: Unruly, answer: Says, words: str) -> None:
    """Are errors at once: the request is neither repeated nor sent elsewhere."""
    sent = len(between.seen)
    between.plan += [answer]
    with pytest.raises(StorageError, match=words):
        study.status()
    assert len(between.seen) == sent + 1


def test_no_server() -> None:
    """Patience is bounded, and the message says where nobody was."""
    address = f"http://127.0.0.1:{free_port()}"
    began = time.monotonic()
    with dbcare.connect(address, patience=0.5) as client:
        with pytest.raises(StorageError, match=f"The server at {address} must answer but did not"):
            client.list_studies()
        with pytest.raises(StorageError) as caught:
            client.delete_study("ads")
    assert type(caught.value) is StorageError  # it was never sent
    assert time.monotonic() - began < 5.0


def test_a_server_that_says_nothing() -> None:
    """Every request has its time."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        with dbcare.connect(f"http://127.0.0.1:{deaf.getsockname()[1]}", timeout=0.2, patience=0.3) as client:
            began = time.monotonic()
            with pytest.raises(StorageError, match="must answer but did not \\(timed out\\)"):
                client.list_studies()
            assert time.monotonic() - began < 5.0


def test_keys(server: Running, study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each role may do its part; a key is nowhere to be seen."""
    monkeypatch.setenv("DBCARE_KEY", server.keys["worker"])
    with dbcare.connect(server.url) as worker:
        found = worker.load_study(study.name)
        assert found.ask() is not None
        with pytest.raises(AccessError, match="The key must have the role admin for this but has worker"):
            found.stop()
    with dbcare.connect(server.url, key=server.keys["viewer"]) as viewer:
        found = viewer.load_study(study.name)
        assert found.status().asked == 1
        with pytest.raises(AccessError, match="The key must have the role worker for this but has viewer"):
            found.ask()
    wrong = server.keys["wrong secret"]
    with dbcare.connect(server.url, key=wrong) as stranger:
        with pytest.raises(AccessError, match="A valid API key must be given") as caught:
            stranger.list_studies()
        shown = "".join(traceback.format_exception(caught.value)) + repr(stranger) + repr(found)
        assert wrong not in shown
        assert server.keys["viewer"] not in shown
    monkeypatch.delenv("DBCARE_KEY")
    with dbcare.connect(server.url) as nobody, pytest.raises(AccessError):
        nobody.list_studies()


@pytest.mark.parametrize(
    ("address", "key", "words"),
    [
        ("127.0.0.1:8080", None, "`address` must be such as http://127.0.0.1:8080, without a user but got '127.0.0.1"),
        ("ftp://host", None, "`address` must be such as"),
        ("http://", None, "`address` must be such as"),
        ("http://host:x", None, "`address` must be such as"),
        ("http://host/?a=b", None, "`address` must be such as"),
        (8080, None, "`address` must be such as http://127.0.0.1:8080, without a user but got 8080"),
        ("http://me:secret@host", None, "without a user but got one: give the key as `key`, or as DBCARE_KEY"),
        ("http://host", "se cret", "`key` must be an API key as `dbcare keys create` prints it"),
        ("http://host", "secret\n", "`key` must be an API key"),
        ("http://host", "", "`key` must be an API key"),
    ],
)
def test_what_connect_refuses(address: str, key: str | None, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words) as caught:
        dbcare.connect(address, key)
    assert "cret" not in str(caught.value)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    monkeypatch.delitem(sys.modules, "dbcare.client.transport", raising=False)
    with pytest.raises(StorageError, match=r"pip install 'dbcare\[server\]'"):
        dbcare.connect("http://127.0.0.1:8080")


FORKING = """
import os, sys
import dbcare
study = dbcare.connect(sys.argv[1]).load_study("forked")
study.status()  # a connection that both sides would use
child = os.fork()
for _ in range(30):
    while (trial := study.ask(worker=str(child == 0))) is None:
        pass  # the other one is slow
    study.tell(trial, float(child == 0))
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""


def test_a_forked_process_has_its_own_connections(client: Client, server: Running) -> None:
    study = client.create_study("forked", ARMS, cost=1e-9, sigma=1.0)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DBCARE_KEY": server.keys["worker"]}
    subprocess.run([sys.executable, "-c", FORKING, server.url], env=environment, check=True, timeout=60)
    rows = study.trials()
    assert [row.status for row in rows] == ["told"] * 60
    assert all(row.reward == (row.worker == "True") for row in rows)


class Mortal:
    """The service at a port of its own, killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.storage = f"sqlite:///{folder / 'studies.db'}"
        self.port = free_port()
        self.start()

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, self.storage, str(self.port)], env=environment, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        self.process.kill()  # SIGKILL
        self.process.wait()


def test_a_server_killed_in_the_midst_of_work(tmp_path: Path) -> None:
    """Workers notice nothing: every trial asked is told once, nothing acknowledged is lost."""
    server = Mortal(tmp_path)
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
        for each in workers:
            each.start()
        for kills in range(KILLS + 1):
            before = len(told)
            while len(told) < before + 10:
                assert all(each.is_alive() for each in workers)
                time.sleep(0.005)
            if kills < KILLS:
                server.kill()
                server.start()
        enough.set()
        for each in workers:
            each.join()
        rows = study.trials()
        assert sorted(told) == [row.trial for row in rows] == list(range(1, len(rows) + 1))
        assert [row.reward for row in rows] == [1.0 / row.trial for row in rows]
        assert study.check() == 2 * len(rows)
        assert len(rows) >= 10 * (KILLS + 1)
    finally:
        enough.set()
        client.close()
        server.kill()
