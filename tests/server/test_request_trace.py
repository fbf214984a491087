"""A failed request can be found: its id is in the log, in the response and in the client's error, and so is the reason.

Keys are told apart by their ids, with their last use; one that expired is named, and one that will is warned about.
"""

import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

import dbcare
from dbcare.errors import AccessError, StorageError, TrialNotFoundError
from dbcare.server.access.keys import DAY, Keys
from dbcare.server.access.records import open_records
from dbcare.server.request_log import BURST_SECONDS, BurstHandler
from dbcare.studies.stores.open import open_store
from tests.helpers.api_client import STUDY
from tests.helpers.serve_command import run_serve

pytestmark = pytest.mark.service

MAX_SECONDS = 60.0  # on a busy machine
OWN_ID = re.compile(r"[0-9a-f]{16}")


@pytest.fixture
def storage(tmp_path: Path) -> str:
    """The address of an empty database."""
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    open_store(address, create=True).close()
    return address


def find_lines(log: Path, identity: str) -> list[str]:
    """Return the lines of a request, without the time."""
    lines = [line.partition(" ")[2] for line in log.read_text().splitlines()]
    return [line for line in lines if line.split()[1] == identity]


def test_a_refused_tell_is_found_by_its_id(storage: str, tmp_path: Path) -> None:
    """By the id that the client sent, in the response's header and body; the line says why, and which trial."""
    keys = Keys(open_records(open_store(storage)))
    key, text = keys.create("shop", "admin")
    headers = {"Authorization": f"Bearer {text}", "X-Request-ID": "Root=1-67891233:a/b+c@d.e_f"}
    log = tmp_path / "log"
    with run_serve(storage, log) as url, httpx.Client(base_url=url, headers=headers, timeout=MAX_SECONDS) as client:
        assert client.post("/v1/studies", json=STUDY).status_code == 201
        tell, fail = "/v1/studies/ads/tell", "/v1/studies/ads/fail"
        for path, body in ((tell, {"trial": 408, "reward": 1.0}), (fail, {"trial": 409})):
            refused = client.post(path, json=body, headers={"X-Request-ID": f"{path}/{body['trial']}"})
            assert refused.status_code == 404
            assert refused.headers.get_list("x-request-id") == [f"{path}/{body['trial']}"]
            assert refused.json()["request_id"] == f"{path}/{body['trial']}"
        assert client.post("/v1/studies/ads/ask", json={}).status_code == 200
    for path, trial in ((tell, 408), (fail, 409)):
        (line,) = find_lines(log, f"{path}/{trial}")
        route = path.replace("ads", "{name}")
        assert line.startswith(f'INFO {path}/{trial} "shop" {key.id} POST {route} "ads" 404 ')
        assert line.endswith(f'127.0.0.1 {trial} "There is no trial {trial}; trials asked so far: 0."')
    assert len(find_lines(log, headers["X-Request-ID"])) == 2


@pytest.mark.parametrize("sent", ["x" * 129, 'a"b', "a b", "a\tb", "é", ""])
def test_an_id_that_could_spoil_the_log_is_replaced(server: httpx.Client, sent: str) -> None:
    refused = server.get("/v1/studies/none", headers=[(b"X-Request-ID", sent.encode())])
    assert OWN_ID.fullmatch(refused.headers["x-request-id"])
    assert refused.json()["request_id"] == refused.headers["x-request-id"]


def test_every_kind_of_problem_has_an_id(server: httpx.Client) -> None:
    """Of the library, the framework, the limits, and the checks of a request; no two requests share one."""
    large = b"[" * (5 << 20)
    responses = [
        server.get("/v1/studies/none"),
        server.get("/nowhere"),
        server.put("/v1/studies"),
        server.post("/v1/studies", json={"name": 7}),
        httpx.post(server.base_url.join("/v1/studies"), content=large),  # the server closes its connection
        server.get("/v1/studies", headers={"Authorization": "Bearer wrong"}),
        server.get("/v1/studies", headers={"Via": "1.1 proxy"}),
    ]
    assert [response.status_code for response in responses] == [404, 404, 405, 422, 413, 401, 403]
    ids = [response.json()["request_id"] for response in responses]
    assert ids == [response.headers["x-request-id"] for response in responses]
    assert all(OWN_ID.fullmatch(identity) for identity in ids)
    assert len(set(ids)) == len(ids)
    page = server.get("/studies/none")
    assert page.status_code == 404
    assert re.search(r"Request [0-9a-f]{16}<", page.text)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("traced")
    storage = f"sqlite:///{folder / 's.db'}"
    with run_serve(storage, folder / "log") as url, httpx.Client(base_url=url, timeout=MAX_SECONDS) as client:
        yield client


def test_errors_of_the_python_client_name_the_request(storage: str, tmp_path: Path) -> None:
    """All attempts of a call share an id, which the error names even if no server responded."""
    log = tmp_path / "log"
    with run_serve(storage, log) as url:
        with dbcare.connect(url, patience=0.0) as client:
            study = client.create_study("ads", ["A", "B"], cost=1e-6, sigma=1.0)
            with pytest.raises(TrialNotFoundError) as missing:
                study.tell(5, 1.0)
        with pytest.raises(AccessError) as refused, dbcare.connect(url, key="wrong") as client:
            client.load_study("ads")
    (line,) = find_lines(log, name_request(missing.value))
    assert "There is no trial 5" in line
    (line,) = find_lines(log, name_request(refused.value))
    assert " 401 " in line
    with pytest.raises(StorageError, match="does not respond") as silent:
        study.status()
    assert OWN_ID.fullmatch(name_request(silent.value))


def name_request(error: Exception) -> str:
    """Return the id that an error names."""
    found = re.search(r" \(Request (\S+)\)$", str(error))
    assert found is not None, error
    return found[1]


def test_an_error_of_the_database_has_the_id_of_its_request(storage: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with run_serve(storage, log) as url:
        for path in tmp_path.glob("studies.db*"):
            path.unlink()
        failed = httpx.get(f"{url}/v1/studies", timeout=MAX_SECONDS, headers={"X-Request-ID": "lost"})
        assert failed.status_code == 503
    error, request = find_lines(log, "lost")
    assert error.startswith("ERROR lost ")
    assert "studies.db" in error
    assert request.startswith("INFO lost - - GET /v1/studies - 503 ")
    assert '- "The database is unavailable; see the server' in request


def test_a_burst_of_failures_is_one_line_per_second(storage: str, tmp_path: Path) -> None:
    """Also in the real service, whose lines count every failed request."""
    log, failures = tmp_path / "log", 40

    def count_logged() -> int:
        errors = [line for line in log.read_text().splitlines() if " ERROR " in line]
        return sum(map(count_errors, errors))

    with run_serve(storage, log) as url, httpx.Client(base_url=url, timeout=MAX_SECONDS) as client:
        for path in tmp_path.glob("studies.db*"):
            path.unlink()
        began = time.monotonic()
        assert [client.get("/v1/studies").status_code for _ in range(failures)] == [503] * failures
        seconds = time.monotonic() - began
        until = time.monotonic() + MAX_SECONDS
        while count_logged() < failures:
            assert time.monotonic() < until
            time.sleep(BURST_SECONDS / 20)
    assert count_logged() == failures
    assert log.read_text().count(" ERROR ") <= 3 + 2 * seconds
    assert len(re.findall(' 503 .* - "The database is unavailable', log.read_text())) == failures


def test_keys_are_told_apart_and_an_expired_one_is_named(storage: str, tmp_path: Path) -> None:
    """Two keys of one name during a rotation, of which one has expired and one was revoked."""
    keys = Keys(open_records(open_store(storage)))
    keys.create("me", "admin")
    brief, expired = keys.create("shop", "worker", 0.001)
    gone, revoked = keys.create("shop", "worker")
    valid, text = keys.create("shop", "viewer")
    keys.revoke(gone.id)
    log = tmp_path / "log"
    with run_serve(storage, log) as url, httpx.Client(base_url=url, timeout=MAX_SECONDS) as client:
        texts = expired, revoked, text, expired[:-1] + ("0" if expired[-1] != "0" else "1")
        responses = [
            client.get("/v1/studies", headers={"Authorization": f"Bearer {sent}", "X-Request-ID": f"request-{number}"})
            for number, sent in enumerate(texts)
        ]
    assert [response.status_code for response in responses] == [401, 401, 200, 401]
    lines = [find_lines(log, f"request-{number}")[0] for number in range(len(responses))]
    assert [line.split()[2:4] for line in lines] == [
        ['"shop"', brief.id],
        ['"shop"', gone.id],
        ['"shop"', valid.id],
        ["-", "-"],  # the id is right, the secret is not
    ]
    assert f'"This API key is not valid: it expired at {brief.expires}."' in lines[0]
    assert '"This API key is not valid: it was revoked at ' in lines[1]
    assert expired.split("_")[2] not in log.read_text()


def test_the_last_use_of_a_key_is_stored_without_keeping_anyone_waiting(storage: str) -> None:
    """Many uses are stored together, by a thread."""
    records = open_records(open_store(storage))
    keys = Keys(records, use_seconds=0.05)
    used, _ = keys.create("used", "worker")
    unused, _ = keys.create("unused", "worker")
    assert [key.used for key in keys.list_all()] == [None, None]
    before = time.time()
    for _ in range(1000):
        keys.note_use(used)
    after = time.time()
    until = time.monotonic() + MAX_SECONDS
    while (record := records.find_key(used.id)) is None or record.used is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert before <= record.used <= after
    missed = records.find_key(unused.id)
    assert missed is not None
    assert missed.used is None
    records.note_uses({used.id: before - 60.0})  # another server, a minute late
    assert records.find_key(used.id) == record


def test_a_key_that_expires_soon_is_warned_about_once_a_day(
    storage: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the last tenth of its time, and the last week; the warning says how to replace it."""
    now = 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    keys = Keys(open_records(open_store(storage)))
    yearly, _ = keys.create("a year", "worker", "365d")
    brief, _ = keys.create("10 days", "viewer", "10d")
    lasting, _ = keys.create("forever", "worker")
    warned: list[tuple[int, str]] = []
    for day in range(365):
        now = 1_800_000_000.0 + (day + 0.5) * DAY
        for key in (yearly, brief, lasting):
            for _ in range(3):
                keys.note_use(key)
        warned += [(day, str(record.args and record.args[1])) for record in caplog.records]  # type: ignore[index]
        caplog.clear()
    assert warned == [(9, "10 days"), *((day, "a year") for day in range(358, 365))]


def test_equal_errors_are_logged_once_per_second_with_a_count(tmp_path: Path) -> None:
    """Different ones, warnings and requests all are."""
    path = tmp_path / "log"
    with path.open("w") as stream:
        handler = BurstHandler(stream)
        log = logging.Logger("burst")
        log.addHandler(handler)
        for number in range(2269):
            log.error("The database at %s is gone.", "db")
            if number % 1000 == 0:
                log.error("Another error, %d.", number)
                log.warning("A warning.")
        lines = path.read_text().splitlines()
        first = [line for line in lines if "is gone" in line]
        until = time.monotonic() + MAX_SECONDS
        while sum(map(count_errors, path.read_text().splitlines())) < 2269 + 3:
            assert time.monotonic() < until
            time.sleep(BURST_SECONDS / 20)
        stream.flush()
        lines = path.read_text().splitlines()
    assert first[0] == "The database at db is gone."
    assert lines.count("A warning.") == 3
    assert [line for line in lines if line.startswith("Another")] == [f"Another error, {n}." for n in (0, 1000, 2000)]
    assert len(lines) < 3 + 3 + 100


def count_errors(line: str) -> int:
    """Return how many errors a line stands for."""
    more = re.search(r"\(([\d,]+) more within 1 s\)$", line)
    return 0 if line == "A warning." else 1 if more is None else int(more[1].replace(",", ""))
