"""Access to a real server: keys and roles, limits, and what it must not give away."""

import asyncio
import itertools
import re
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2 as httpx
import pytest
from typer.testing import CliRunner

from dbcare.cli import app
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.server.access.roles import Role
from dbcare.server.app import make_app
from dbcare.server.service_limits import DEFAULT_LIMITS, ServiceLimits
from dbcare.studies.stores.open import open_store
from tests.helpers.api_client import STUDY, ApiServer, assert_refused
from tests.helpers.api_routes import ROUTES
from tests.helpers.postgres import Server
from tests.helpers.serve_command import run_serve
from tests.helpers.service_process import run_service

pytestmark = pytest.mark.service


def test_every_route_needs_its_role(server: ApiServer) -> None:
    """Tested without a key, with wrong and revoked ones, and with each role; the check comes before all others."""
    with server.client("viewer") as viewer, server.client(None) as stranger:
        assert_refused(stranger.get("/v1/openapi.json"), 401, "An API key is required")
        paths = viewer.get("/v1/openapi.json").json()["paths"]
        described = {(method, path): each for path, methods in paths.items() for method, each in methods.items()}
        assert described.keys() == ROUTES.keys()
        addresses = itertools.cycle(range(1, 255))
        for (method, path), needed in ROUTES.items():
            assert described[method, path]["security"] == ([] if needed is None else [{"key": [needed]}])
            url = path.replace("{name}", "none")
            for name, text in [("none", None), *server.keys.items()]:
                headers = {"X-Forwarded-For": f"10.0.0.{next(addresses)}"}  # each address may send some
                headers |= {} if text is None else {"Authorization": f"Bearer {text}"}
                response = stranger.request(method, url, headers=headers)
                if needed is None:
                    assert response.status_code == 200
                elif name not in list(Role):
                    refused = "An API key is required" if text is None else "This API key is not valid: it "
                    assert_refused(response, 401, refused)
                    assert response.headers["www-authenticate"] == "Bearer"
                elif not Role(name).allows(needed):
                    assert_refused(response, 403, f"This requires a key with the role {needed}; yours has {name}.")
                else:
                    assert response.status_code in (200, 404, 422)


def test_keys_are_stored_nowhere(server: ApiServer) -> None:
    """Their secrets are neither in the database's files nor in the list of keys."""
    secrets = [text.split("_")[2] for text in server.keys.values() if text.count("_") == 2]
    assert len(secrets) >= 4
    path = Path(server.storage.removeprefix("sqlite:///"))
    stored = b"".join(file.read_bytes() for file in path.parent.iterdir())
    listed = CliRunner().invoke(app, ["keys", "list", "--storage", server.storage]).stdout
    assert "viewer\tviewer" in listed
    for secret in secrets:
        assert secret.encode() not in stored
        assert secret not in listed
    with sqlite3.connect(path) as connection:
        salts = [salt for (salt,) in connection.execute("SELECT salt FROM dbcare_keys")]
    connection.close()
    assert len(set(salts)) == len(salts)


def test_keys_from_the_command_line(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 's.db'}"

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, [*arguments, "--storage", storage])
        assert result.exit_code == code, result.output
        return result.stderr if code else result.stdout

    assert "`--host` must be a loopback address" in run("serve", "--host", "0.0.0.0", code=2)
    text = run("keys", "create", "--role", "worker", "--name", "shop").strip()
    assert re.fullmatch(r"dbc_[0-9a-f]{12}_[0-9a-f]{64}", text)
    identity = text.split("_")[1]
    keys = Keys(open_records(open_store(storage, create=True)))
    assert keys.find(text) is not None
    assert run("keys", "revoke", identity) == ""
    assert keys.find(text) is None
    assert "`key` must be the id of an active key" in run("keys", "revoke", identity, code=2)


def test_bodies_that_are_too_large_are_refused(server: ApiServer, admin: httpx.Client) -> None:
    """With or without Content-Length; the largest number of rewards that is allowed is not too large.

    The server closes a connection rather than read all of such a body, so each has a connection of its own.
    """
    alone = {"Connection": "close"}
    response = admin.post("tell", content=b"x" * (DEFAULT_LIMITS.body_bytes + 1), headers=alone)
    assert_refused(response, 413, "The body is too large: the limit is 4,194,304 bytes.")

    def send_parts() -> Iterator[bytes]:
        for _ in range(DEFAULT_LIMITS.body_bytes // 65536 + 1):
            yield b"x" * 65536

    assert_refused(admin.post("tell", content=send_parts(), headers=alone), 413, "The body is too large")
    many = {"answers": [{"trial": 10**9 + number, "reward": 0.1234567890123456} for number in range(10_000)]}
    assert_refused(admin.post("tell-many", json=many), 404, "trials asked so far: 0.")


def test_an_address_that_sends_too_many_requests_must_wait(tmp_path: Path) -> None:
    """Here, two requests at once, then two per second."""
    service = make_app(f"sqlite:///{tmp_path / 's.db'}", ServiceLimits(requests_per_second=2.0))

    async def send_many() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://127.0.0.1") as client:
            return [await client.get("/healthz") for _ in range(30)]

    responses = asyncio.run(send_many())
    assert {response.status_code for response in responses[:2]} == {200}
    refused = next(response for response in responses if response.status_code != 200)
    assert_refused(refused, 429, "Too many requests: one address may send at most 2 per second.")
    assert int(refused.headers["retry-after"]) >= 1


def test_until_a_key_exists_only_this_machine_is_served(tmp_path: Path) -> None:
    """Pages of other sites cannot use its browser, not even if they reach this machine under another name."""
    storage = f"sqlite:///{tmp_path / 's.db'}"
    with run_service(storage) as url, httpx.Client(base_url=url) as client:
        assert client.post("/v1/studies", json=STUDY).status_code == 201
        for headers in (
            {"Origin": "http://elsewhere.example"},
            {"Host": "elsewhere.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Origin": "null"},
            {"Origin": "http://["},
            {"Host": "["},
            {"X-Forwarded-For": "203.0.113.9"},
            {"Forwarded": "for=203.0.113.9"},
        ):
            response = client.post("/v1/studies/ads/pause", headers=headers)
            assert_refused(response, 403, "No API key exists yet, so only this machine can use this server.")
        ours = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
        assert client.post("/v1/studies/ads/pause", headers=ours).status_code == 204
        Keys(open_records(open_store(storage, create=True))).create("first", Role.ADMIN)
        assert_refused(client.get("/v1/studies"), 401, "An API key is required")


def test_metrics_and_headers(server: ApiServer, admin: httpx.Client) -> None:
    admin.post("ask", json={})
    with server.client("viewer") as client:
        response = client.get("/metrics")
    assert re.search(r'^dbcare_trials_total\{what="asked"\} [1-9]', response.text, re.MULTILINE)
    assert 'route="/v1/studies/{name}/ask"' in response.text
    assert not re.search(r'route="[^"]*test_metrics_and_headers', response.text)  # one series for all studies
    for name, value in {
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cache-control": "no-store",
        "referrer-policy": "same-origin",
    }.items():
        assert response.headers[name] == value
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "unsafe" not in response.headers["content-security-policy"]


def test_an_incomplete_body_does_nothing(server: ApiServer, admin: httpx.Client) -> None:
    """Even if the part that arrived would be a valid body."""
    host, port = server.url.removeprefix("http://").split(":")
    path = admin.base_url.path + "stop"
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.keys['admin']}\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 40\r\n\r\n{{}}".encode())
    time.sleep(0.3)
    assert admin.get("status").json()["state"] == "running"


def test_responses_do_not_say_where_studies_are_kept(postgres: Server) -> None:
    """Neither if the database is gone, nor for keys that it cannot store."""
    storage = postgres.create_database()
    with run_service(storage) as url, httpx.Client(base_url=url, timeout=120.0) as client:
        assert client.post("/login", data={"key": "dbc_\0_x"}).status_code == 401
        postgres.execute(f"DROP DATABASE {storage.split('/')[3].split('?')[0]} WITH (FORCE)")
        response = client.get("/v1/studies")
        assert_refused(response, 503, "The database is unavailable; see the server's log. Retry later.")
        assert response.headers["retry-after"] == "1"
        assert "postgres" not in response.text


def test_the_server_stops_on_sigterm_though_a_page_is_open(tmp_path: Path) -> None:
    """And it prints its address, even if the system chose the port; a port in use is an error."""
    storage = f"sqlite:///{tmp_path / 's.db'}"
    with ExitStack() as stack:
        with run_serve(storage, tmp_path / "log") as url:
            assert not url.endswith(":0")
            client = stack.enter_context(httpx.Client(base_url=url, timeout=30.0))
            client.post("/v1/studies", json=STUDY).raise_for_status()
            stream = stack.enter_context(client.stream("GET", "/studies/ads/events"))
            lines = stream.iter_lines()
            assert next(lines).startswith("data: ")
            port = url.rpartition(":")[2]
            second = CliRunner().invoke(app, ["serve", "--storage", storage, "--port", port])
        assert not stream.is_closed  # it was open when the server stopped
    assert second.exit_code == 2
    assert "Cannot listen on 127.0.0.1:" in second.stderr
    assert second.stdout == ""
