"""Floods of requests that only look, and of strangers' requests: those who work are answered, and it ends with them.

`python -m benchmarks floods` measures how fast; these are the same floods, small ones in `make test`.
"""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http import HTTPStatus
from pathlib import Path

import pytest

import dbcare
from tests.helpers.limited_server import LimitedServer, start_server
from tests.helpers.raw_client import cpu_seconds_of, open_connection, read_response, read_to_end, status_of

pytestmark = pytest.mark.service

if not Path("/proc/self/stat").exists():
    pytest.skip("The CPU time of a server is read from /proc, which this system lacks.", allow_module_level=True)

RATE = 10  # of strangers; few, so that a busy machine sends more
STRANGERS = 190  # connections
MAX_SECONDS = 120.0  # for a busy machine
LOGIN = b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LimitedServer]:
    with ExitStack() as stack:
        yield start_server(tmp_path, stack, stranger_requests_per_second=RATE)


def ask_and_tell(server: LimitedServer, study: str = "ads") -> None:
    with server.client("worker") as client:
        (trial,) = client.post(f"/v1/studies/{study}/ask", json={}).raise_for_status().json()["trials"]
        client.post(f"/v1/studies/{study}/tell", json={"trial": trial["id"], "reward": 0.5}).raise_for_status()


def wait_until_idle(pid: int) -> float:
    """Wait until a process does nothing; return the processor time that it took until then."""
    began, until = cpu_seconds_of(pid), time.monotonic() + MAX_SECONDS
    while True:
        before = cpu_seconds_of(pid)
        time.sleep(0.5)
        if (after := cpu_seconds_of(pid)) - before < 0.05:
            return after - began
        assert time.monotonic() < until


@pytest.mark.parametrize(("trials", "viewers"), [(20_000, 12), pytest.param(1_000_000, 60, marks=pytest.mark.soak)])
def test_checks_keep_nobody_waiting_and_end_with_their_clients(
    server: LimitedServer, tmp_path: Path, trials: int, viewers: int
) -> None:
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    long = dbcare.create_study("long", ["A", "B"], cost=1e-9, sigma=1.0, storage=storage)
    for _ in range(trials // 10_000):
        long.add([("AB"[number % 2], number % 7) for number in range(10_000)])
    with server.client("one") as client:
        began = cpu_seconds_of(server.service.pid)
        assert client.get("/v1/studies/long/check", timeout=MAX_SECONDS).json() == {"events": 2 * trials}
        one_check = cpu_seconds_of(server.service.pid) - began
    request = f"GET /v1/studies/long/check HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.keys['one']}\r\n\r\n"
    with ExitStack() as stack:
        checks = [stack.enter_context(open_connection(server.service.port)) for _ in range(viewers)]
        for connection in checks:
            connection.sendall(request.encode())
        ask_and_tell(server)
        ask_and_tell(server, "long")
        with server.client("two") as other:
            assert other.get("/healthz").status_code == HTTPStatus.OK
            assert other.get("/login").status_code == HTTPStatus.OK
            assert other.get("/v1/studies/long/status").json()["asked"] == trials + 1
        # One was under way and three were waiting when the others came, unless some were done before that.
        until = time.monotonic() + MAX_SECONDS
        while not (refused := server.count_refusals("waiting_checks")):
            assert time.monotonic() < until
        assert refused <= viewers - 4
    assert wait_until_idle(server.service.pid) < 0.5 * one_check + 0.5


def measure_tells(server: LimitedServer, pages: int) -> float:
    """Return the processor time of the service for three tells in a study of which so many pages are open."""
    with ExitStack() as stack:
        browser = stack.enter_context(closing(server.sign_in("one")))
        streams = [stack.enter_context(browser.stream("GET", "/studies/wide/events")) for _ in range(pages)]
        lines = [stream.iter_lines() for stream in streams]
        assert all(next(each).startswith("data: ") for each in lines)
        began = cpu_seconds_of(server.service.pid)
        for _ in range(3):
            ask_and_tell(server, "wide")
            ask_and_tell(server)
            for each in lines:
                while not next(each).startswith("data: "):
                    pass
        return cpu_seconds_of(server.service.pid) - began


@pytest.mark.parametrize(("arms", "pages"), [(300, 12), pytest.param(1_000, 50, marks=pytest.mark.soak)])
def test_a_page_costs_the_same_for_many_viewers(server: LimitedServer, tmp_path: Path, arms: int, pages: int) -> None:
    """Everybody sees each change, and the study's neighbor is told meanwhile; rendered for each, it would cost more."""
    names = [f"arm {number}" for number in range(arms)]
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    wide = dbcare.create_study("wide", names, cost=1e-9, sigma=1.0, storage=storage)
    wide.add([(name, number % 7) for number, name in enumerate(names) for _ in range(3)])
    one = measure_tells(server, 1)
    assert measure_tells(server, pages) < 0.5 * pages * one
    assert wait_until_idle(server.service.pid) < 4.0 * one + 0.5


def test_strangers_get_little(server: LimitedServer) -> None:
    """One response on a connection with many requests, and some per second; nobody else notices."""
    with ExitStack() as stack:
        strangers = [stack.enter_context(open_connection(server.service.port, "127.0.0.2")) for _ in range(STRANGERS)]
        for connection in strangers:
            connection.sendall(LOGIN * 12)
        ask_and_tell(server)
        with open_connection(server.service.port, "127.0.0.3") as another:
            another.sendall(LOGIN)
            assert status_of(read_response(another)) == HTTPStatus.OK
        with open_connection(server.service.port, "127.0.0.2") as check:
            check.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert status_of(read_response(check)) == HTTPStatus.OK
        with open_connection(server.service.port, "127.0.0.2") as known:  # a key that was used before is enough
            key = f"Authorization: Bearer {server.keys['worker']}"
            known.sendall(f"GET /v1/studies HTTP/1.1\r\nHost: x\r\n{key}\r\n\r\n".encode())
            assert status_of(read_response(known)) == HTTPStatus.OK
        responses = [read_to_end(connection) for connection in strangers]
    statuses = [re.findall(rb"HTTP/1.1 (\d+)", response) for response in responses]
    assert {len(each) for each in statuses} == {1}
    refused = sum(each == [b"429"] for each in statuses)
    assert 0 < refused <= STRANGERS - RATE
    assert b"one address may send at most 10 per second" in b"".join(responses)
    assert server.count_refusals("stranger_requests_per_second") == refused
    assert server.count_refusals("pipelined_requests") == STRANGERS


def test_a_wrong_key_counts_as_none(tmp_path: Path) -> None:
    """At one request per second, which even a busy machine can exceed."""
    with ExitStack() as stack:
        server = start_server(tmp_path, stack, stranger_requests_per_second=1.0)
        client, statuses = stack.enter_context(server.client("worker")), set[int]()
        client.headers["Authorization"] = f"Bearer {server.keys['worker'][:-1]}x"
        until = time.monotonic() + MAX_SECONDS
        while statuses != {HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS}:
            assert time.monotonic() < until
            statuses.add(client.get("/v1/studies").status_code)


@pytest.mark.parametrize("path", ["/v1/studies/", "/v1//studies", "/login/"])
def test_no_redirect_goes_where_the_host_header_says(server: LimitedServer, path: str) -> None:
    with server.client("one") as client:
        response = client.get(path, headers={"Host": "evil.example"})
    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "evil.example" not in f"{response.headers}{response.text}"
