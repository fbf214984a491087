"""The service behind proxies: who is believed, who is limited, and a real nginx with the configuration that we ship."""

import select
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2 as httpx
import pytest

from dbcare.errors import InvalidValueError
from dbcare.server.limits import TrustedProxies
from tests.helpers.api_client import assert_refused
from tests.helpers.limited_server import LimitedServer, start_server
from tests.helpers.nginx import run_nginx
from tests.helpers.raw_client import REQUEST, open_connection, read_response, read_to_end, send_all, status_of
from tests.helpers.service_process import run_service

pytestmark = pytest.mark.service

PROXY = "127.0.0.9"
HOST = "studies.example.com"
ORIGIN = {"Origin": f"https://{HOST}"}


@pytest.mark.parametrize(
    "mark",
    [
        {"Via": "1.1 proxy"},
        {"X-Real-IP": "203.0.113.9"},
        {"X-Forwarded-Proto": "https"},
        {"Forwarded": "for=203.0.113.9"},
        {"CF-Connecting-IP": "203.0.113.9"},
        {"True-Client-IP": "203.0.113.9"},
        {"X-Envoy-External-Address": "203.0.113.9"},
    ],
    ids=lambda mark: next(iter(mark)),
)
def test_a_server_without_keys_refuses_what_a_proxy_passed_on(mark: dict[str, str], keyless: str) -> None:
    with httpx.Client(base_url=keyless) as client:
        assert client.get("/v1/studies").status_code == 200
        refused = client.get("/v1/studies", headers=mark)
        assert_refused(refused, 403, "No API key exists yet, so only this machine can use this server.")


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_service(f"sqlite:///{tmp_path_factory.mktemp('keyless') / 's.db'}") as address:
        yield address


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedServer]:
    """Run a server that trusts one proxy, and lets an address have few connections and requests."""
    with ExitStack() as stack:
        yield start_server(
            tmp_path_factory.mktemp("trusting"), stack, PROXY, connections_per_address=5, requests_per_second=10.0
        )


def test_only_trusted_proxies_may_have_many_connections(server: LimitedServer) -> None:
    """Even this machine's own address has no privilege."""
    for source, served in ((PROXY, 30), ("127.0.0.1", 5), ("127.0.0.8", 5)):
        with ExitStack() as stack:
            opened = (open_connection(server.service.port, source) for _ in range(30))
            connections = [stack.enter_context(connection) for connection in opened]
            for number, connection in enumerate(connections):
                send_all(connection, [REQUEST.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 10.0.0.%d\r\n\r\n" % number)])
            statuses = [status_of(read_response(connection)) for connection in connections]
        assert statuses[served:] == [429] * (30 - served)
        assert statuses[:served] == [200] * served
        time.sleep(1.1)  # so that this address may send requests again


def test_only_trusted_proxies_are_believed(server: LimitedServer) -> None:
    """Clients of a proxy are counted one by one; others cannot pretend to be many."""

    def send(source: str, clients: list[str]) -> list[int]:
        transport = httpx.HTTPTransport(local_address=source)
        with httpx.Client(base_url=server.service.address, transport=transport) as client:
            return [client.get("/healthz", headers={"X-Forwarded-For": name}).status_code for name in clients]

    many = [f"203.0.113.{number}" for number in range(100)]
    assert send(PROXY, many) == [200] * 100
    assert send("127.0.0.7", many).count(429) > 50
    assert send(PROXY, ["198.51.100.1"] * 100).count(429) > 50


@pytest.mark.parametrize("text", ["10.0.0.0/33", "proxy.example.com", "*", "10.0.0.5/8"])
def test_what_is_no_network_is_an_error(text: str) -> None:
    with pytest.raises(InvalidValueError, match="`trusted_proxies` must be addresses or networks such as"):
        TrustedProxies(f"10.0.0.1, {text}")
    assert "10.0.0.1" in TrustedProxies("10.0.0.1, fd00::/8")
    assert "fd00::5" in TrustedProxies("10.0.0.1, fd00::/8")
    assert "10.0.0.2" not in TrustedProxies("10.0.0.1, fd00::/8")


class Front:
    """nginx in front of a service."""

    def __init__(self, server: LimitedServer, port: int) -> None:
        self.server, self.port = server, port
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE  # the certificate is our own

    def client(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}", verify=self.tls, headers={"Host": HOST}, timeout=30.0
        )

    def connect(self) -> socket.socket:
        connection = self.tls.wrap_socket(socket.create_connection(("127.0.0.1", self.port)))
        connection.settimeout(30.0)
        return connection


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Run the service and nginx with the configuration that we ship, less patient than it."""
    folder = tmp_path_factory.mktemp("front")
    with ExitStack() as stack:
        server = start_server(folder, stack, "127.0.0.1", connections_per_address=1)
        changes = {"client_header_timeout 10s;": "client_header_timeout 1s;"}
        yield Front(server, stack.enter_context(run_nginx(folder, server.service.port, changes=changes)))


def test_nginx_passes_on_requests_forms_and_events(front: Front) -> None:
    """The cookie is secure, the form is accepted, and news arrive at once."""
    with front.client() as browser, front.server.client("admin") as admin:
        signed_in = browser.post("/login", data={"key": front.server.keys["admin"]}, headers=ORIGIN)
        assert signed_in.status_code == 303
        cookie = signed_in.headers["set-cookie"]
        assert "Secure" in cookie
        session = {"Cookie": cookie.partition(";")[0]}
        with browser.stream("GET", "/studies/ads/events", headers=session) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data: "))
            assert "paused" not in next(lines)
            admin.post("/v1/studies/ads/pause").raise_for_status()
            assert "paused" in next(lines)
        admin.post("/v1/studies/ads/resume").raise_for_status()


def test_nginx_serves_many_clients_over_trusted_connections(front: Front) -> None:
    """The service lets one address have one connection here, but nginx may have more."""
    with ExitStack() as stack:
        clients = [stack.enter_context(front.client()) for _ in range(5)]
        for client in clients:
            signed_in = client.post("/login", data={"key": front.server.keys["one"]}, headers=ORIGIN)
            session = {"Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
            stream = stack.enter_context(client.stream("GET", "/studies/ads/events", headers=session))
            assert stream.status_code == 200
        assert clients[0].get("/healthz").status_code == 200


def test_nginx_limits_strangers(front: Front) -> None:
    """Headers that are too large or too slow, bodies that are too large, and too many connections."""
    with front.client() as client:
        assert client.get("/healthz", headers={"X": "x" * 70_000}).status_code == 400  # as nginx has it
        assert client.post("/login", content=b"x" * (4 * 1024 * 1024 + 1)).status_code == 413
    with closing(front.connect()) as connection:
        began = time.monotonic()
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ")
        answer = read_to_end(connection)
        assert answer == b""
        assert 0.5 < time.monotonic() - began < 15.0
    with ExitStack() as stack:
        connections = []
        for _ in range(110):  # all at the same time, each with a body that does not come
            connections.append(stack.enter_context(closing(front.connect())))
            connections[-1].sendall(b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
        refused = []
        while ready := select.select([each for each in connections if each not in refused], [], [], 1.0)[0]:
            assert [status_of(connection.recv(65536)) for connection in ready] == [429] * len(ready)
            refused += ready
        assert len(refused) == 10


def test_nginx_limits_requests(tmp_path: Path) -> None:
    """Here, 5 at once and 1 per second."""
    with ExitStack() as stack:
        server = start_server(tmp_path, stack, "127.0.0.1")
        changes = {"rate=1000r/s": "rate=1r/s", "burst=1000": "burst=4"}
        front = Front(server, stack.enter_context(run_nginx(tmp_path, server.service.port, changes=changes)))
        with front.client() as client:
            statuses = [client.get("/healthz").status_code for _ in range(20)]
    assert statuses[:5] == [200] * 5
    assert statuses.count(429) >= 10
