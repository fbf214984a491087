"""Who may use a real server, how much and how often, and what it gives away."""

import asyncio
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx
from helpers.api_client import STUDY, Running, refused
from helpers.postgres import Server
from helpers.service_process import service

from dbcare.live.stores.sql.store import SqlStore
from dbcare.server.access.keys import Keys
from dbcare.server.access.roles import Role
from dbcare.server.app import make_app
from dbcare.server.limits import LARGEST_BODY

COMMAND = Path(sys.executable).with_name("dbcare")

# Every route of the description, with the least role that it asks for; None for those open to all.
ROUTES: dict[tuple[str, str], Role | None] = {
    ("get", "/healthz"): None,
    ("get", "/metrics"): Role.VIEWER,
    ("post", "/v1/plan"): Role.VIEWER,
    ("get", "/v1/studies"): Role.VIEWER,
    ("post", "/v1/studies"): Role.ADMIN,
    ("get", "/v1/studies/{name}"): Role.VIEWER,
    ("delete", "/v1/studies/{name}"): Role.ADMIN,
    **{
        ("get", f"/v1/studies/{{name}}/{path}"): Role.VIEWER
        for path in ("status", "recommendation", "explain", "pending", "history", "check", "export")
    },
    **{("post", f"/v1/studies/{{name}}/{path}"): Role.WORKER for path in ("ask", "tell", "tell-many", "fail", "add")},
    **{("post", f"/v1/studies/{{name}}/{path}"): Role.ADMIN for path in ("pause", "resume", "stop", "retire")},
}


def test_every_route_needs_its_role(server: Running) -> None:
    """Without a key, with one that is wrong or revoked, with each role: before anything else is looked at."""
    with server.client(None) as stranger:
        paths = stranger.get("/v1/openapi.json").json()["paths"]
        assert {(method, path) for path, methods in paths.items() for method in methods} == set(ROUTES)
        for (method, path), needed in ROUTES.items():
            url = path.replace("{name}", "none")
            for name, text in [("none", None), *server.keys.items()]:
                headers = {} if text is None else {"Authorization": f"Bearer {text}"}
                answer = stranger.request(method, url, headers=headers)
                if needed is None:
                    assert answer.status_code == 200
                elif name not in list(Role):
                    refused(answer, 401, "A valid API key must be given")
                    assert answer.headers["www-authenticate"] == "Bearer"
                elif not Role(name).allows(needed):
                    refused(answer, 403, f"The key must have the role {needed} for this but has {name}")
                else:
                    assert answer.status_code in (200, 404, 422)


def test_keys_are_nowhere_to_be_found(server: Running) -> None:
    """Neither in the database's files nor in the list."""
    secrets = [text.split("_")[2] for text in server.keys.values() if text.count("_") == 2]
    assert len(secrets) >= 4
    path = Path(server.storage.removeprefix("sqlite:///"))
    stored = b"".join(file.read_bytes() for file in path.parent.iterdir())
    listed = subprocess.run(
        [COMMAND, "keys", "list", "--storage", server.storage], capture_output=True, text=True, check=True
    ).stdout
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

    def keys(*arguments: str, code: int = 0) -> str:
        ran = subprocess.run(
            [COMMAND, *arguments, "--storage", storage], capture_output=True, text=True, check=False, timeout=60
        )
        assert ran.returncode == code, ran.stderr
        return ran.stdout + ran.stderr

    assert "`host` must be a loopback address" in keys("serve", "--host", "0.0.0.0", code=2)
    text = keys("keys", "create", "--role", "worker", "--name", "shop").strip()
    assert re.fullmatch(r"dbc_[0-9a-f]{12}_[0-9a-f]{64}", text)
    identity = text.split("_")[1]
    known = Keys(SqlStore(storage))
    assert known.known(text) is not None
    assert keys("keys", "revoke", identity) == ""
    assert known.known(text) is None
    assert "`key` must be the id of a key that is in use" in keys("keys", "revoke", identity, code=2)


def test_bodies_that_are_too_large_are_turned_down(server: Running, admin: httpx.Client) -> None:
    """Announced or not; and the largest allowed number of answers is not too large."""
    refused(admin.post("tell", content=b"x" * (LARGEST_BODY + 1)), 413, "A body must have at most 4,194,304 bytes.")

    def parts() -> Iterator[bytes]:
        for _ in range(LARGEST_BODY // 65536 + 1):
            yield b"x" * 65536

    refused(admin.post("tell", content=parts()), 413, "A body must have at most")
    many = {"answers": [{"trial": 10**9 + number, "reward": 0.1234567890123456} for number in range(50_000)]}
    refused(admin.post("tell-many", json=many), 404, "`trial` must be one of the 0 that were asked")


def test_an_address_that_asks_too_often_has_to_wait(tmp_path: Path) -> None:
    """Ten at once, then as many a second."""
    app = make_app(f"sqlite:///{tmp_path / 's.db'}", rate=10.0)

    async def many() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            return [await client.get("/healthz") for _ in range(30)]

    answers = asyncio.run(many())
    assert {answer.status_code for answer in answers[:10]} == {200}
    refused(answers[-1], 429, "Requests must be at most 10 a second from one address.")
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_without_any_key_only_this_machine_is_served(tmp_path: Path) -> None:
    """And no page of another site, nor one that got hold of this machine under another name, can use its browser."""
    with service(f"sqlite:///{tmp_path / 's.db'}") as url, httpx.Client(base_url=url) as client:
        assert client.post("/v1/studies", json=STUDY).status_code == 201
        own = url.removeprefix("http://")
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
            answer = client.post("/v1/studies/ads/pause", headers=headers)
            refused(answer, 403, "Without a key, only programs and pages of this machine")
        ours = {"Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"}
        assert client.post("/v1/studies/ads/pause", headers=ours).status_code == 204
        Keys(SqlStore(f"sqlite:///{tmp_path / 's.db'}")).create("first", Role.ADMIN)
        refused(client.get("/v1/studies"), 401, "A valid API key must be given")


def test_metrics_and_headers(server: Running, admin: httpx.Client) -> None:
    admin.post("ask", json={})
    with server.client("viewer") as client:
        answer = client.get("/metrics")
    assert re.search(r'^dbcare_trials_total\{what="asked"\} [1-9]', answer.text, re.MULTILINE)
    assert 'route="/v1/studies/{name}/ask"' in answer.text
    assert "test_metrics_and_headers" not in answer.text  # names of studies are nobody's
    for name, value in {
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cache-control": "no-store",
        "referrer-policy": "same-origin",
    }.items():
        assert answer.headers[name] == value
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_a_body_that_was_cut_off_does_nothing(server: Running, admin: httpx.Client) -> None:
    """Though what has come of it would be a body by itself."""
    host, port = server.url.removeprefix("http://").split(":")
    path = admin.base_url.path + "stop"
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.keys['admin']}\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 40\r\n\r\n{{}}".encode())
    time.sleep(0.3)
    assert admin.get("status").json()["state"] == "running"


def test_where_studies_are_kept_is_nobodys_business(postgres: Server) -> None:
    """Neither when the database is away, nor by keys that it cannot read."""
    name = postgres.new_database()
    with service(name) as url, httpx.Client(base_url=url, timeout=120.0) as client:
        assert client.post("/login", data={"key": "dbc_\0_x"}).status_code == 401
        postgres.sql(f"DROP DATABASE {name.split('/')[3].split('?')[0]} WITH (FORCE)")
        answer = client.get("/healthz")
        refused(answer, 503, "The database does not do its part; the server's log says more.")
        assert "postgres" not in answer.text


def test_told_to_stop_it_stops_though_somebody_looks(tmp_path: Path) -> None:
    """SIGTERM with a page open; and it says where it serves, also if the system has chosen the port."""
    storage = f"sqlite:///{tmp_path / 's.db'}"
    command = [str(COMMAND), "serve", "--storage", storage, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        assert not url.endswith(":0")
        with httpx.Client(base_url=url, timeout=30.0) as client:
            client.post("/v1/studies", json=STUDY).raise_for_status()
            with client.stream("GET", "/studies/ads/events") as news:
                assert next(news.iter_lines()).startswith("data: ")
                taken = subprocess.run(
                    [*command[:-1], url.rpartition(":")[2]], capture_output=True, text=True, check=False, timeout=60
                )
                process.terminate()
                assert process.wait(timeout=30) in (0, -signal.SIGTERM)
    assert taken.returncode == 2
    assert "`host` and `port` must be a free address of this machine" in taken.stderr
    assert taken.stdout == ""


def test_many_plans_at_once_do_not_hold_up_the_rest(server: Running) -> None:
    body = {"arms": 8, "cost": 1e-5, "sigma": 0.5}
    with server.client("viewer") as client, ThreadPoolExecutor(12) as pool:
        plans = [pool.submit(client.post, "/v1/plan", json=body) for _ in range(12)]
        began = time.monotonic()
        assert client.get("/healthz").status_code == 200
        healthy_after = time.monotonic() - began
        codes = sorted(plan.result().status_code for plan in plans)
    assert healthy_after < 20.0
    assert codes[0] == 200
    assert codes[-1] == 429
