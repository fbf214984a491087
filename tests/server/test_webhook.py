"""The webhook: every stop is told to a real receiver, signed, at least once, and nobody waits for that."""

import hashlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

import dbcare
from dbcare.errors import InvalidValueError
from dbcare.server import webhook
from dbcare.server.webhook import (
    FIRST_USE,
    Deliveries,
    MemoryDeliveries,
    PostError,
    SqlDeliveries,
    StudyStop,
    Webhook,
    make_webhook,
)
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.stores.open import open_store
from dbcare.studies.stores.sql.store import SqlStore
from tests.helpers.api_client import STUDY
from tests.helpers.dbcare_command import run_dbcare
from tests.helpers.postgres import Server
from tests.helpers.prepared_process import run_code
from tests.helpers.serve_command import run_serve
from tests.helpers.service_process import find_free_port
from tests.helpers.webhook_receiver import Received, Receiver, run_receiver

pytestmark = pytest.mark.service

SECRET = "0123456789abcdef" * 4
PAGE = Path(__file__).parents[2] / "docs" / "service.md"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as running:
        yield running


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[str]:
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    yield address
    open_store(address, create=True).close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look and retry more often than a service does."""
    monkeypatch.setattr(webhook, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(webhook, "MAX_SHARE", 1.0)
    monkeypatch.setattr(webhook, "FIRST_DELAY_SECONDS", 0.05)
    monkeypatch.setenv(webhook.SECRET_VARIABLE, SECRET)


@contextmanager
def notify(url: str, storage: str) -> Iterator[Webhook]:
    """Run a webhook as the service does, and wait for its thread in the end."""
    before = set(threading.enumerate())
    with make_webhook(url, open_store(storage, create=True)) as running:
        threads = set(threading.enumerate()) - before
        yield running
    for thread in threads:
        thread.join(timeout=30.0)
        assert not thread.is_alive()


def create(storage: str, name: str) -> dbcare.Study:
    return dbcare.create_study(
        name, arms=["A", "B", "C"], price=0.4, value=20_000, currency="EUR", sigma=0.5, storage=storage
    )


def list_studies(received: list[Received]) -> list[str]:
    return [each.notice["study"] for each in received]


def sign_independently(secret: str, message: bytes) -> str:
    """Compute HMAC-SHA256 by its definition in RFC 2104."""
    key = secret.encode() if len(secret) <= 64 else hashlib.sha256(secret.encode()).digest()
    key = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()


def read_documented_check() -> Callable[[str, bytes, str], bool]:
    """Return the function that the documentation tells receivers to use."""
    block = re.search(r"```python\n([^`]*def is_genuine.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1], names)
    check: Callable[[str, bytes, str], bool] = names["is_genuine"]
    return check


def test_a_stop_is_told_with_a_signature(storage: str, receiver: Receiver) -> None:
    study = create(storage, "Straße")
    began = time.time()
    with notify(receiver.url, storage):
        study.add([("A", 2.0), ("B", 1.0), ("C", 0.0)] * 3)
        assert not study.should_stop()
        study.stop("seen enough")
        (received,) = receiver.wait_for(1)
    ended = time.time()
    choice, status, notice = study.recommendation(), study.status(), received.notice
    at = datetime.fromisoformat(notice.pop("at"))
    assert at.tzinfo == UTC
    assert began - 1.0 <= at.timestamp() <= ended
    assert re.fullmatch(r"[0-9a-f]{32}", notice.pop("id"))
    assert notice == {
        "event": "study.stopped",
        "study": study.name,
        "reason": "seen enough",
        "recommended": "A",
        "verdict": choice.verdict,
        "asked": 9,
        "rewards": 9,
        "spent": 3.6,
        "currency": "EUR",
    }
    assert status.spent == pytest.approx(9 * 0.4)
    assert received.path == "/stopped?token=of-the-receiver"
    assert received.headers["Content-Type"] == "application/json"
    signature = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", received.headers["X-Dbcare-Signature"])
    assert signature is not None
    assert began - 1.0 <= int(signature[1]) <= ended
    assert signature[2] == sign_independently(SECRET, signature[1].encode() + b"." + received.body)


def test_the_documented_check_of_signatures(storage: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts what is sent, and nothing that was changed, signed with another secret, or sent long ago."""
    with notify(receiver.url, storage):
        create(storage, "ads").stop()
        (received,) = receiver.wait_for(1)
    is_genuine, header = read_documented_check(), received.headers["X-Dbcare-Signature"]
    assert is_genuine(header, received.body, SECRET)
    assert not is_genuine(header, received.body + b" ", SECRET)
    assert not is_genuine(header, received.body, SECRET[::-1])
    assert not is_genuine(header.replace("t=1", "t=2"), received.body, SECRET)
    for malformed in ("", "t=1", "v1=0", "t=x,v1=0", "t=1,v1=\N{SNOWMAN}", f"{header},t=1", header.upper()):
        assert not is_genuine(malformed, received.body, SECRET)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600.0)
    assert not is_genuine(header, received.body, SECRET)


def test_failures_are_retried_until_the_receiver_accepts(storage: str, receiver: Receiver) -> None:
    """The same notice again and again; other studies do not wait for one that is refused."""
    receiver.statuses = [500, 503, 400, 302, 304]
    with notify(receiver.url, storage):
        create(storage, "first").stop()
        receiver.wait_for(1)
        create(storage, "second").stop()
        received = receiver.wait_for_studies("first", "second")
        received = receiver.wait_for(7)
        time.sleep(0.3)
    assert len(receiver.received) == 7
    first = [each for each in received if each.notice["study"] == "first"]
    assert len({each.body for each in first}) == 1
    assert len({each.notice["id"] for each in received}) == 2


def test_a_receiver_that_is_down_is_told_once_it_is_up(storage: str) -> None:
    port = find_free_port()
    url = f"http://127.0.0.1:{port}/stopped?token=of-the-receiver"
    with notify(url, storage):
        create(storage, "ads").stop()
        time.sleep(0.5)
        with run_receiver(port) as receiver:
            assert list_studies(receiver.wait_for(1)) == ["ads"]


def test_redirects_are_not_followed(storage: str, receiver: Receiver) -> None:
    with run_receiver() as elsewhere, notify(receiver.url, storage):
        receiver.redirect, receiver.statuses = elsewhere.url, [301, 302, 303, 307, 308]
        create(storage, "ads").stop()
        receiver.wait_for(6)
    assert elsewhere.received == []


def test_delays_grow_and_a_notice_is_given_up_for_the_next_start(
    storage: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each delay is at most twice the one before; what was given up is told after the next start."""
    monkeypatch.setattr(webhook, "GIVE_UP_SECONDS", 2.0)
    receiver.statuses = [500] * 100
    create(storage, "before").stop()
    study = create(storage, "ads")
    with notify(receiver.url, storage):
        study.stop()
        until = time.monotonic() + 30.0
        while "Gave up" not in caplog.text and time.monotonic() < until:
            time.sleep(0.01)
        attempts = len(receiver.received)
        time.sleep(0.3)
        assert len(receiver.received) == attempts
    assert 3 <= attempts <= 12  # delays of at least 25, 50, 100, ... ms
    assert "Could not tell the webhook that study 'ads' has stopped (it responded with status 500)" in caplog.text
    assert "token" not in caplog.text
    receiver.statuses = []
    with notify(receiver.url, storage):
        assert list_studies(receiver.wait_for(attempts + 1))[attempts:] == ["ads"]


def test_nothing_old_is_told_and_nothing_twice(storage: str, receiver: Receiver) -> None:
    """Studies that had stopped before the URL was first used are not told; those that stop between two starts are."""
    create(storage, "old").stop()
    for name in ("one", "two", "three"):
        create(storage, name)
    with notify(receiver.url, storage):
        dbcare.load_study("one", storage).stop()
        receiver.wait_for(1)
    dbcare.load_study("two", storage).stop()
    with notify(receiver.url, storage):
        receiver.wait_for_studies("two")
    with notify(receiver.url, storage), notify(receiver.url, storage):
        time.sleep(0.3)
    assert list_studies(receiver.received) == ["one", "two"]
    with run_receiver() as newer:
        with notify(newer.url, storage):
            dbcare.load_study("three", storage).stop()
            newer.wait_for(1)
        assert list_studies(newer.received) == ["three"]


def test_a_url_that_was_used_before_any_study_stopped_has_been_used(storage: str, receiver: Receiver) -> None:
    study = create(storage, "ads")
    with notify(receiver.url, storage):
        pass
    study.stop()
    with notify(receiver.url, storage):
        assert list_studies(receiver.wait_for(1)) == ["ads"]


def test_a_study_that_stops_again_is_told_again(storage: str, receiver: Receiver) -> None:
    """Once its best arm is retired, another is best, at once or after more trials; its successor's stop is another."""
    study = dbcare.create_study("ads", arms=["A", "B", "C", "D"], cost=0.01, sigma=0.5, storage=storage)
    with notify(receiver.url, storage):
        study.add([("A", 20.0), ("B", 10.0), ("C", 0.0), ("D", 0.0)] * 3)
        receiver.wait_for(1)
        study.retire("A")
        assert study.should_stop()
        receiver.wait_for(2)
        study.retire("B")
        assert not study.should_stop()
        study.add([("C", 0.0), ("D", 8.0)] * 4)
        receiver.wait_for(3)
        dbcare.delete_study("ads", storage)
        dbcare.create_study("ads", arms=["A", "B"], cost=0.1, sigma=0.1, storage=storage).stop()
        received = receiver.wait_for(4)
    assert [each.notice["recommended"] for each in received] == ["A", "B", "D", None]
    assert [each.notice["asked"] for each in received] == [12, 12, 20, 0]
    assert [each.notice["currency"] for each in received] == [None] * 4
    assert len({each.notice["id"] for each in received}) == 4


def test_the_service_tells_stops_of_other_processes_and_its_own(
    storage: str, receiver: Receiver, tmp_path: Path
) -> None:
    """`dbcare serve --webhook`: of a worker on this machine, even while no server ran, and over HTTP."""
    create(storage, "old").stop()
    create(storage, "worker")
    create(storage, "meanwhile")
    log = tmp_path / "log"
    with run_serve(storage, log, "--webhook", receiver.url) as url:
        code = f"import dbcare; dbcare.load_study('worker', {storage!r}).stop('by a worker')"
        assert run_code(code).returncode == 0
        httpx.post(f"{url}/v1/studies", json=STUDY, timeout=60.0).raise_for_status()
        httpx.post(f"{url}/v1/studies/ads/stop", json={"reason": "over HTTP"}).raise_for_status()
        receiver.wait_for_studies("worker", "ads")
    dbcare.load_study("meanwhile", storage).stop("while no server ran")
    with run_serve(storage, log, "--webhook", receiver.url):
        receiver.wait_for_studies("meanwhile")
    reasons = {each.notice["study"]: each.notice["reason"] for each in receiver.received}
    assert reasons == {"worker": "by a worker", "ads": "over HTTP", "meanwhile": "while no server ran"}
    assert "Told the webhook that study 'worker' has stopped." in log.read_text()
    for secret in (SECRET, "of-the-receiver"):
        assert secret not in log.read_text()


def test_a_receiver_that_hangs_delays_nobody(storage: str, receiver: Receiver, tmp_path: Path) -> None:
    """Requests are answered while a notice is on its way, and the service stops when told to."""
    receiver.hangs.set()
    with run_serve(storage, tmp_path / "log", "--webhook", receiver.url) as url:
        with httpx.Client(base_url=url, timeout=60.0) as client:
            client.post("/v1/studies", json=STUDY | {"name": "stopped"}).raise_for_status()
            client.post("/v1/studies/stopped/stop", json={}).raise_for_status()
            receiver.wait_for(1)
            start = time.monotonic()
            client.post("/v1/studies", json=STUDY).raise_for_status()
            for _ in range(20):
                trial = client.post("/v1/studies/ads/ask", json={}).json()["trials"][0]
                client.post("/v1/studies/ads/tell", json={"trial": trial["id"], "reward": 0.5}).raise_for_status()
            assert len(receiver.received) == 1
            assert time.monotonic() - start < webhook.SILENCE_SECONDS
        stopped = time.monotonic()
    assert time.monotonic() - stopped < webhook.SILENCE_SECONDS
    assert len(receiver.received) == 1


def test_a_receiver_that_drips_its_response_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, but all of them would take minutes."""
    monkeypatch.setattr(webhook, "ATTEMPT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    for byte in b"HTTP/1.1 200 " + b"O" * 10_000:
                        connection.sendall(bytes([byte]))
                        time.sleep(0.02)
                except OSError:
                    return  # it hung up

        dripping = threading.Thread(target=drip)
        dripping.start()
        start = time.monotonic()
        with pytest.raises(PostError):
            webhook.post(urlsplit(f"http://127.0.0.1:{listener.getsockname()[1]}"), b"{}", {})
        assert 0.4 < time.monotonic() - start < 30.0
        dripping.join(timeout=30.0)
        assert not dripping.is_alive()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com/hook",
        "ftp://example.com",
        "http://",
        "http://me:token@example.com/",
        "http://host:port/",
        "http://[::1/",
        "http://example.com/ä",
        "http://example.com/a b",
        "http://example.com/\r\nX: y",
    ],
)
def test_a_webhook_needs_a_url(storage: str, url: str) -> None:
    with pytest.raises(InvalidValueError, match="`webhook` must be a URL such as") as error:
        make_webhook(url, open_store(storage, create=True))
    assert "token" not in str(error.value)


def test_a_webhook_needs_a_secret(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long one; the message does not show it."""
    message = "`DBCARE_WEBHOOK_SECRET` must have at least 32 characters to sign webhooks but has"
    monkeypatch.setenv(webhook.SECRET_VARIABLE, "too short")
    with pytest.raises(InvalidValueError, match=f"{message} 9; set this environment variable") as error:
        make_webhook("https://example.com", open_store(storage, create=True))
    assert "too short" not in str(error.value)
    monkeypatch.delenv(webhook.SECRET_VARIABLE)
    process = run_dbcare("serve", "--storage", storage, "--webhook", "https://example.com")
    assert (process.returncode, process.stdout) == (2, "")
    assert f"Error: {message} 0" in process.stderr


def test_a_store_that_is_no_database_has_a_webhook_too(receiver: Receiver) -> None:
    """Identities count from 1 in every process there, but ids differ from those of the last process."""
    ids = set()
    for number in range(2):
        store = MemoryStore()
        study = dbcare.create_study("ads", arms=["A", "B"], cost=0.1, sigma=1.0, storage=store)
        hook = make_webhook(receiver.url, store)
        with hook:
            study.stop()
            ids.add(receiver.wait_for(number + 1)[-1].notice["id"])
    assert len(ids) == 2


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def deliveries(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deliveries]:
    if request.param == "memory":
        yield MemoryDeliveries()
        return
    server: Server | None = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    store = SqlStore(f"sqlite:///{tmp_path / 's.db'}" if server is None else server.create_database())
    yield SqlDeliveries(store)
    store.close()


def test_deliveries_are_remembered_by_url(deliveries: Deliveries) -> None:
    first, second, third = StudyStop(2**62 - 1, 7, "A"), StudyStop(2, 0, "Straße"), StudyStop(2, 5, "A")
    assert deliveries.list_delivered("http://a") == set()
    deliveries.begin("http://a", [first, second])
    deliveries.begin("http://a", [StudyStop(3, 3, "A")])  # not the first use
    deliveries.add("http://a", third)
    deliveries.add("http://a", third)
    assert deliveries.list_delivered("http://a") == {FIRST_USE, first, second, third}
    assert deliveries.has("http://a", first)
    for other in (StudyStop(3, 3, "A"), first._replace(asked=8), first._replace(recommended="B")):
        assert not deliveries.has("http://a", other)
    assert not deliveries.has("http://b", first)
    assert deliveries.list_delivered("http://b") == set()
    deliveries.begin("http://b", [])
    assert deliveries.list_delivered("http://b") == {FIRST_USE}
