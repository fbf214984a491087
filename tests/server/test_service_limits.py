"""What one client can take of a real server: size and time of requests and responses, from the socket on."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict
from itertools import repeat
from pathlib import Path

import httpx2 as httpx
import pytest
from typer.testing import CliRunner

from dbcare.cli import app
from dbcare.errors import InvalidValueError
from dbcare.server.app import make_app
from dbcare.server.pages.rendering import PLOTLY, file_url
from dbcare.server.service_limits import DEFAULT_LIMITS, ServiceLimits, describe_limits
from tests.helpers.api_client import assert_refused
from tests.helpers.limited_server import LimitedServer, start_server
from tests.helpers.raw_client import (
    REQUEST,
    cpu_seconds_of,
    memory_of,
    open_connection,
    read_response,
    read_to_end,
    send_all,
    status_of,
)

pytestmark = pytest.mark.service

MEGABYTE = 1024 * 1024
CHUNKED = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
PATIENCE = 15.0  # seconds for a server that gives up after one, on a busy machine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedServer]:
    """Run an impatient server."""
    with ExitStack() as stack:
        yield start_server(
            tmp_path_factory.mktemp("limits"),
            stack,
            header_seconds=1.0,
            body_seconds=1.5,
            idle_seconds=1,
            write_seconds=1.0,
        )


FLOODS = {
    "a header": (b"GET / HTTP/1.1\r\nX: ", b"x" * 65536),
    "headers": (b"GET / HTTP/1.1\r\n", b"X-Name: value\r\n" * 4096),
    "a name": (b"GET / HTTP/1.1\r\n", b"x" * 65536),
    "a path": (b"GET /", b"x" * 65536),
    "empty lines": (b"", b"\r\n" * 32768),
    "trailers": (CHUNKED + b"1\r\nx\r\n0\r\n", b"X-Name: value\r\n" * 4096),
    "a trailer": (CHUNKED + b"0\r\nX: ", b"x" * 65536),
    "a chunk's extension": (CHUNKED + b"1;x=", b"x" * 65536),
}


@pytest.mark.parametrize("what", FLOODS)
def test_headers_without_end(what: str, server: LimitedServer) -> None:
    """A stranger offers 100 MB: the server takes 64 KB, and needs no memory for the rest."""
    start, part = FLOODS[what]
    before, refused = memory_of(server.service.pid), server.count_refusals("large_headers")
    with open_connection(server.service.port) as connection:
        sent = send_all(connection, [start, *[part] * (100 * MEGABYTE // len(part))])
        response = read_to_end(connection)
    assert sent < 8 * MEGABYTE  # what the buffers of both ends have room for
    assert status_of(response) == 431
    assert b"The headers are too large: the limit is 65,536 bytes and 100 headers." in response
    assert memory_of(server.service.pid) - before < 5 * MEGABYTE
    assert server.count_refusals("large_headers") == refused + 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (f"X: {'x' * 65_000}\r\n", 200),
        (f"X: {'x' * 65_536}\r\n", 431),
        (f"X: {'x' * 3 * MEGABYTE}\r\n", 431),
        ("X:\r\n" * 99, 200),
        ("X:\r\n" * 100, 431),
        ("X:\r\n" * 16_000, 431),
    ],
)
def test_complete_headers_have_a_limit(headers: str, status: int, server: LimitedServer) -> None:
    """On a new connection, and on one that was used before."""
    request = REQUEST.replace(b"\r\n\r\n", b"\r\n" + headers.encode() + b"\r\n")
    for earlier in (0, 2):
        with open_connection(server.service.port) as connection:
            for _ in range(earlier):
                connection.sendall(REQUEST)
                assert status_of(read_response(connection)) == 200
            send_all(connection, [request])
            assert status_of(read_response(connection)) == status


# By how a connection begins after so many requests, and what it sends then: the status of the response.
SLOW_HEADERS: dict[tuple[int, bytes, bytes], int | None] = {
    (0, b"", b""): None,  # a connection that is never used is closed without a word
    (0, b"GET / HTTP/1.1\r\nX: ", b"x"): 408,
    (0, b"GET /", b"x"): 408,
    (1, b"GET / HTTP/1.1\r\nX: ", b"x"): 408,
    (1, b"\r\n", b"\r\n"): 408,
    (1, b"", b""): None,  # idle
}


def test_slow_headers(server: LimitedServer) -> None:
    """A drop now and then doesn't keep a connection open; all wait at the same time."""
    with ThreadPoolExecutor(len(SLOW_HEADERS)) as pool:
        checks = [pool.submit(check_slow_headers, server, *case, status) for case, status in SLOW_HEADERS.items()]
        for case, check in zip(SLOW_HEADERS, checks, strict=True):
            assert check.exception() is None, case


def check_slow_headers(server: LimitedServer, earlier: int, start: bytes, drop: bytes, status: int | None) -> None:
    with open_connection(server.service.port) as connection:
        for _ in range(earlier):
            connection.sendall(REQUEST)
            assert status_of(read_response(connection)) == 200
        connection.sendall(start)
        response, began = b"", time.monotonic()
        connection.settimeout(0.1)
        while time.monotonic() - began < PATIENCE:
            try:
                connection.sendall(drop)
                part = connection.recv(65536)
            except TimeoutError:
                continue
            except ConnectionError:
                break
            if not part:
                break
            response += part
    seconds = time.monotonic() - began
    assert 0.9 < seconds < PATIENCE
    if status is None:
        assert response == b""
    else:
        assert status_of(response) == status
        assert b"The headers did not arrive within 1 seconds." in response


def test_slow_bodies(server: LimitedServer) -> None:
    """The client is told, and nothing is done; what comes later is not read."""
    head = f"POST /v1/studies/ads/pause HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.keys['admin']}\r\n"
    for framing in (b"Content-Length: 2\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"):
        with open_connection(server.service.port) as connection:
            connection.sendall(head.encode() + framing)
            response = read_to_end(connection)
        assert status_of(response) == 408
        assert b"The body did not arrive within 1.5 seconds." in response
    with server.client("admin") as client:
        assert client.get("/v1/studies/ads/status").json()["state"] == "running"


def test_one_byte_chunks_cost_little(server: LimitedServer) -> None:
    """142,000 of them took 17 seconds of a processor; the body is still the one that was sent."""
    text = json.dumps({"trial": 1, "reward": 0.5}).ljust(142_000).encode()
    head = (
        "POST /v1/studies/ads/tell HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {server.keys['worker']}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    before = cpu_seconds_of(server.service.pid)
    with open_connection(server.service.port) as connection:
        connection.sendall(head.encode() + b"".join(b"1\r\n%c\r\n" % byte for byte in text) + b"0\r\n\r\n")
        response = read_response(connection)
    assert status_of(response) == 404
    assert b"trials asked so far: 0" in response  # so it was understood
    assert cpu_seconds_of(server.service.pid) - before < 3.0


def test_strangers_send_small_bodies_only(server: LimitedServer) -> None:
    """They could fill the memory with large ones; a key or a session makes the difference."""
    body = b"x" * (DEFAULT_LIMITS.stranger_body_bytes + 1)
    with httpx.Client(base_url=server.service.address) as stranger, server.client("one") as viewer:
        for content in (body, iter([body])):
            response = stranger.post("/v1/plan", content=content)
            assert_refused(response, 401, "A body of more than 65,536 bytes requires a valid API key")
        assert_refused(stranger.post("/v1/plan", content=body[:-1]), 401, "An API key is required")
        for content in (body, iter([body])):
            assert viewer.post("/v1/plan", content=content).status_code == 422  # it was read
    with closing(server.sign_in("one")) as browser:
        assert_refused(browser.post("/v1/plan", content=body), 403, "must send its session's token")


def test_a_connection_goes_on_after_a_refused_body(server: LimitedServer) -> None:
    """Also if the refusal comes before the body, since no header of it tells the client to connect again."""
    size = DEFAULT_LIMITS.stranger_body_bytes + 1
    with open_connection(server.service.port) as connection:
        connection.sendall(f"POST /v1/plan HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode())
        assert connection.recv(12) == b"HTTP/1.1 401"
        connection.sendall(b"x" * size + b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"HTTP/1.1 200" in read_to_end(connection)


def test_a_refused_body_is_not_read_to_its_end(server: LimitedServer) -> None:
    """The refusal comes at once, and then the connection ends, however much the client has announced."""
    with open_connection(server.service.port) as connection:
        connection.sendall(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
        sent = send_all(connection, repeat(b"x" * 65536, 15_000))
        response = read_to_end(connection)
    assert status_of(response) == 413
    assert sent < 8 * MEGABYTE


LARGE_FILE = f"GET {file_url(PLOTLY)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()  # open to everyone


def test_clients_that_do_not_read(server: LimitedServer) -> None:
    """A stranger asks for a large file and doesn't read it: the connection is closed, with all that it holds."""
    refused = server.count_refusals("slow_reader")
    for request in (LARGE_FILE, LARGE_FILE * 5, LARGE_FILE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")):
        with open_connection(server.service.port, receive_bytes=4096) as connection:
            connection.sendall(request)
            began = time.monotonic()
            while server.count_refusals("slow_reader") == refused:
                assert time.monotonic() - began < PATIENCE
                time.sleep(0.1)
            refused += 1
            assert len(read_to_end(connection)) < 2 * MEGABYTE


def test_clients_that_read_slowly_get_everything(server: LimitedServer) -> None:
    """It takes them several times the time for which a client may read nothing, and may be idle."""
    with httpx.Client(base_url=server.service.address) as client:
        expected = client.get(file_url(PLOTLY), headers={"Accept-Encoding": "identity"}).content
    assert len(expected) > 3 * MEGABYTE
    with open_connection(server.service.port, receive_bytes=65536) as connection:
        connection.sendall(LARGE_FILE)
        began, received = time.monotonic(), b""
        while not received.endswith(expected[-1000:]):
            part = connection.recv(131072)
            assert part, f"{len(received)} bytes in {time.monotonic() - began:.1f} s"
            received += part
            time.sleep(3.0 * len(part) / len(expected))
    assert received.endswith(expected)
    assert time.monotonic() - began > 3.0


def test_pipelined_requests(server: LimitedServer) -> None:
    """Some are answered in their order; far too many are not, and take no memory. Strangers get one answer."""
    key = f"\r\nAuthorization: Bearer {server.keys['one']}".encode()
    mine = b"GET /v1/studies HTTP/1.1\r\nHost: x" + key + b"\r\n\r\n"
    requests = b"".join(mine.replace(b"studies", b"studies/none") + mine for _ in range(5))
    with open_connection(server.service.port) as connection:
        connection.sendall(mine)
        assert status_of(read_response(connection)) == 200
        connection.sendall(requests + mine.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        statuses = re.findall(rb"HTTP/1.1 (\d+)", read_to_end(connection))
    assert statuses == [b"404", b"200"] * 5 + [b"200"]
    before, refused = memory_of(server.service.pid), server.count_refusals("pipelined_requests")
    with open_connection(server.service.port) as connection:
        connection.sendall(REQUEST * 3)
        assert re.findall(rb"HTTP/1.1 (\d+)", read_to_end(connection)) == [b"200"]
    assert server.count_refusals("pipelined_requests") == refused + 1
    refused += 1
    with open_connection(server.service.port) as connection:
        connection.sendall(mine)
        assert status_of(read_response(connection)) == 200
        connection.sendall(mine * 20_000)
        responses = read_to_end(connection)
    assert 1 <= responses.count(b"HTTP/1.1 200 OK") <= 30
    assert responses.count(b"HTTP/1.1") == responses.count(b"HTTP/1.1 200 OK")
    assert memory_of(server.service.pid) - before < 5 * MEGABYTE
    assert server.count_refusals("pipelined_requests") == refused + 1


def test_the_body_of_a_pipelined_request_does_not_pile_up(server: LimitedServer) -> None:
    """Behind a response that never ends, nobody takes it."""
    before = memory_of(server.service.pid)
    with closing(server.sign_in("one")) as browser, open_connection(server.service.port) as connection:
        cookie = f"dbcare_session={browser.cookies['dbcare_session']}"
        connection.sendall(f"GET /studies/ads/events HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n".encode())
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
        connection.sendall(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
        sent = send_all(connection, repeat(b"x" * 65536, 15_000))
    assert sent < 8 * MEGABYTE
    assert memory_of(server.service.pid) - before < 5 * MEGABYTE


def test_other_protocols(server: LimitedServer) -> None:
    """An offer of another protocol is ignored; what is not HTTP is refused; a body can be asked for first."""
    upgrade = REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    with open_connection(server.service.port) as connection:
        connection.sendall(upgrade + b"\x81\x05hello")
        response = read_to_end(connection)
    assert status_of(response) == 200
    assert response.count(b"HTTP/1.1") == 1
    with open_connection(server.service.port) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")  # how TLS begins
        response = read_to_end(connection)
    assert status_of(response) == 400
    assert b"The request is not valid HTTP/1.1." in response
    with open_connection(server.service.port) as connection:
        form = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        connection.sendall(form + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"key=x")
        assert status_of(read_response(connection)) == 401


def test_limits_are_options_and_metrics(server: LimitedServer) -> None:
    """Every number of `ServiceLimits` can be set on the command line, and is shown with its default."""
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["serve", "--help"]).stdout
    with server.client("admin") as client:
        metrics = client.get("/metrics").text
    changed = {"header_seconds": 1.0, "body_seconds": 1.5, "idle_seconds": 1, "write_seconds": 1.0}
    for name, value in asdict(DEFAULT_LIMITS).items():
        assert re.search(rf"--{name.replace('_', '-')} .*\[default: {value}\]", shown), name
        exported = re.search(rf'^dbcare_limit\{{name="{name}"\}} (\S+)$', metrics, re.MULTILINE)
        assert exported is not None
        assert float(exported[1]) == changed.get(name, value)
    assert re.search(r'^dbcare_connections\{phase="responding"\} [1-9]', metrics, re.MULTILINE)


def test_limits_must_be_positive(tmp_path: Path) -> None:
    for name, kind, meaning in describe_limits():
        assert meaning.endswith(".")
        with pytest.raises(InvalidValueError, match=f"`{name}` must be"):
            ServiceLimits(**{name: kind(0)})  # type: ignore[arg-type]  # names of both kinds
    with pytest.raises(InvalidValueError, match="`connections` must be a whole number"):
        make_app(f"sqlite:///{tmp_path / 's.db'}", ServiceLimits(connections=1.5))  # type: ignore[arg-type]  # wrong on purpose
    command = ["serve", "--storage", f"sqlite:///{tmp_path / 's.db'}", "--header-bytes", "0"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2
    assert "`--header-bytes` must be at least 1 but got 0." in refused.stderr
