"""Nobody can shut the others out of a real server: connections by address and in total, and streams by visitor."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2 as httpx
import pytest

from dbcare.server.limits import identify_client
from tests.helpers.limited_server import LimitedServer, start_server
from tests.helpers.prepared_process import PreparedProcess, run_code
from tests.helpers.raw_client import REQUEST, open_connection, read_response, read_to_end, status_of

pytestmark = pytest.mark.service

WITH_FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 500))
from dbcare.cli import app
app(["serve", "--port", "0", *sys.argv[1:]])
"""
HALF_OPEN = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_SENT = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nkey="
STREAM = "/studies/ads/events"
PATIENCE = 15.0  # seconds for what takes one, on a busy machine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedServer]:
    """Run a server with room for few connections and streams."""
    with ExitStack() as stack:
        yield start_server(
            tmp_path_factory.mktemp("sharing"),
            stack,
            connections=60,
            connections_per_address=20,
            streams=3,
            streams_per_visitor=2,
        )


def ask_and_tell(client: httpx.Client) -> float:
    """Ask for a trial and tell its reward; return the seconds that it took."""
    start = time.monotonic()
    trial = client.post("/v1/studies/ads/ask", json={}).raise_for_status().json()["trials"][0]
    client.post("/v1/studies/ads/tell", json={"trial": trial["id"], "reward": 0.5}).raise_for_status()
    return time.monotonic() - start


def test_one_address_cannot_take_all_connections(server: LimitedServer) -> None:
    """300 half-open connections from one address: most are refused, and a worker elsewhere does not notice."""
    with ExitStack() as stack, server.client("worker") as client:
        ask_and_tell(client)
        before = server.count_refusals("connections_per_address")
        connections = (open_connection(server.service.port, "127.0.0.2") for _ in range(300))
        strangers = [stack.enter_context(connection) for connection in connections]
        seconds = []
        for stranger in strangers[:20]:
            stranger.sendall(HALF_OPEN)
            seconds.append(ask_and_tell(client))
        with server.client("worker") as newcomer:
            ask_and_tell(newcomer)
        assert max(seconds) < 5.0
        for stranger in strangers[20:]:
            response = read_to_end(stranger)
            assert status_of(response) == 429
            assert b"Too many connections: one address may have 20." in response
        assert server.count_refusals("connections_per_address") == before + 280
        strangers[0].sendall(b"x\r\n\r\n")
        assert status_of(read_response(strangers[0])) == 200  # those within the limit are served
    with open_connection(server.service.port, "127.0.0.2") as stranger:  # and once they are gone, others
        stranger.sendall(REQUEST)
        assert status_of(read_response(stranger)) == 200


@pytest.mark.parametrize("start", [b"", HALF_OPEN, HALF_SENT, REQUEST])
def test_many_addresses_cannot_take_all_connections(start: bytes, server: LimitedServer) -> None:
    """Connections that wait for a request give way, the oldest first; streams in progress do not."""
    with (
        ExitStack() as stack,
        closing(server.sign_in("one")) as browser,
        browser.stream("GET", STREAM) as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("data: ")
        before = server.count_refusals("gave_way")
        strangers = []
        for number in range(100):
            stranger = stack.enter_context(open_connection(server.service.port, f"127.0.0.{10 + number // 20}"))
            stranger.sendall(start)
            if start == REQUEST:
                assert status_of(read_response(stranger)) == 200
            strangers.append(stranger)
        with server.client("worker") as client:
            assert max(ask_and_tell(client) for _ in range(10)) < 5.0
        assert server.count_refusals("gave_way") - before >= 100 - 60
        assert read_to_end(strangers[0]) == b""
        assert read_to_end(strangers[30]) == b""
        strangers[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            strangers[-1].recv(1)  # the newest are still there
        with server.client("worker") as client:
            ask_and_tell(client)
        assert next(line for line in lines if line.startswith("data: "))


def open_stream(stack: ExitStack, browser: httpx.Client) -> int:
    """Open a stream that lasts as long as the stack; return its status."""
    stream = stack.enter_context(browser.stream("GET", STREAM))
    if stream.status_code == 200:
        lines = stream.iter_lines()
        assert next(lines).startswith("data: ")
        stack.callback(id, lines)  # without a reference to the lines, the stream would end now
    return stream.status_code


def test_responses_in_progress_never_give_way(tmp_path: Path) -> None:
    """If they take all connections, a new one is refused, until one of them ends."""
    with ExitStack() as stack:
        server = start_server(tmp_path, stack, connections=3)
        with closing(server.sign_in("one")) as browser, ExitStack() as streams:
            assert [open_stream(streams, browser) for _ in range(3)] == [200] * 3
            with open_connection(server.service.port) as connection:
                response = read_to_end(connection)
            assert status_of(response) == 503
            assert b"All 3 connections are in use; retry later." in response
        deadline = time.monotonic() + PATIENCE
        while True:  # the server notices soon
            with open_connection(server.service.port) as connection:
                connection.sendall(REQUEST)
                if status_of(read_response(connection)) == 200:
                    break
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_one_viewer_cannot_take_all_streams(server: LimitedServer) -> None:
    """Signing in again does not help; others have streams left, up to the total."""
    with ExitStack() as stack:
        first, again, other = (stack.enter_context(closing(server.sign_in(name))) for name in ("one", "one", "two"))
        assert [open_stream(stack, first), open_stream(stack, again)] == [200, 200]
        refused = first.get(STREAM)
        assert refused.status_code == 429
        assert refused.json()["detail"] == "You have too many open pages: at most 2 can be updated live."
        assert again.get(STREAM).status_code == 429
        assert open_stream(stack, other) == 200
        refused = other.get(STREAM)
        assert refused.status_code == 503
        assert refused.json()["detail"] == "Too many open pages: at most 3 can be updated live."
        with httpx.Client(base_url=server.service.address) as stranger:
            assert stranger.get(STREAM).text == "event: gone\ndata: \n\n"


def test_streams_that_end_make_room(server: LimitedServer) -> None:
    """Also those with another request behind them on their connection, and many that begin at the same time."""
    with closing(server.sign_in("one")) as browser:
        cookie = f"dbcare_session={browser.cookies['dbcare_session']}"
        request = f"GET {STREAM} HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n\r\n".encode()
        for _ in range(3):
            opened: list[socket.socket] = []
            deadline = time.monotonic() + PATIENCE
            while len(opened) < 2:
                connection = open_connection(server.service.port)
                connection.sendall(request + REQUEST * 3)
                if connection.recv(12) == b"HTTP/1.1 200":
                    opened.append(connection)
                    continue
                connection.close()
                assert time.monotonic() < deadline, "the streams before are still counted"
                time.sleep(0.1)
            for connection in opened:
                connection.close()
        with ThreadPoolExecutor(12) as pool, ExitStack() as stack:
            time.sleep(2.0)  # so that the streams before have ended
            statuses = list(pool.map(lambda _: open_stream(stack, browser), range(12)))
        assert sorted(statuses) == [200, 200] + [429] * 10


def test_files_are_enough_for_the_connections(tmp_path: Path) -> None:
    """The limit of the system is raised as far as it can be; beyond that, the server says what to do."""
    storage = f"sqlite:///{tmp_path / 's.db'}"
    refused = run_code(WITH_FEW_FILES, "--connections", "1000", DBCARE_STORAGE=storage)
    assert refused.returncode == 2
    assert "`--connections` must be at most 300 here but got 1000: this process may open 500 files" in refused.stderr
    (script := tmp_path / "serve.py").write_text(WITH_FEW_FILES)
    printed = tmp_path / "printed"
    process = PreparedProcess(script, ["--connections", "300"], printed, tmp_path / "log", DBCARE_STORAGE=storage)
    try:
        deadline = time.monotonic() + 4 * PATIENCE
        while not printed.read_text().endswith("\n"):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        port = int(printed.read_text().splitlines()[0].rpartition(":")[2])
        with ExitStack() as stack:
            for _ in range(150):  # more than 100
                connection = stack.enter_context(open_connection(port))
                connection.sendall(HALF_OPEN)
            connection.sendall(b"x\r\n\r\n")
            assert status_of(read_response(connection)) == 200
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("not: an address", "not: an address"),
        ("testclient", "testclient"),
    ],
)
def test_a_network_of_ipv6_is_one_client(address: str, client: str) -> None:
    assert identify_client(address) == client
