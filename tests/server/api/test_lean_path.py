"""Asks and tells on the lean path get the responses that the described routes give, to the byte."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2 as httpx
import pytest
from fastapi import FastAPI

from dbcare.server.access.keys import Keys
from dbcare.server.access.records import MemoryRecords
from dbcare.server.access.roles import Role
from dbcare.server.api.lean_path import LeanPath
from dbcare.server.app import make_app
from dbcare.studies.record import ask_and_tell
from dbcare.studies.stores.group_commit import GroupCommit
from dbcare.studies.stores.memory import MemoryStore
from tests.helpers.api_client import ApiServer

pytestmark = pytest.mark.service

NAME = "a b \N{SNOWMAN}"
STUDY = {"name": NAME, "arms": ["A", "B"], "cost": 1e-6, "sigma": 1.0, "max_ahead": 6}
PATH = "/v1/studies/a%20b%20%E2%98%83"
KEY = "Idempotency-Key"

# Each request is a role, a path, a body and further headers; "ask" and "tell" are those of the study.
REQUESTS: list[tuple[str | None, str, Any, dict[str, Any]]] = [
    ("worker", "ask", {}, {}),
    ("worker", "ask", {"n": 2, "lease": None, "worker": "w \N{SNOWMAN}"}, {KEY: "one"}),
    ("worker", "ask", {"n": 2, "lease": None, "worker": "w \N{SNOWMAN}"}, {KEY: "one"}),
    ("worker", "ask", {"unit": "u \N{SNOWMAN}"}, {}),
    ("worker", "ask", {"unit": "u \N{SNOWMAN}", "lease": None}, {}),
    ("worker", "ask", {"unit": "u"}, {KEY: "two"}),
    ("worker", "ask", {"unit": "u", "n": 2}, {}),
    ("worker", "ask", {"unit": "u" * 201}, {}),
    ("worker", "ask", {"unit": 7}, {}),
    ("worker", "tell", {"trial": 4, "reward": 0.5}, {}),
    ("worker", "tell", {"trial": 4, "reward": 0.75}, {}),
    ("worker", "ask", {"unit": "u \N{SNOWMAN}"}, {}),
    ("worker", "tell", {"trial": 1, "reward": 0.5}, {}),
    ("worker", "tell", {"trial": 1, "reward": 0.5}, {}),
    ("worker", "tell", {"trial": 1, "reward": 0.75}, {}),
    ("worker", "tell", {"trial": 99, "reward": 0.75}, {}),
    ("worker", "tell", {"trial": 2, "reward": 1e300}, {}),
    ("worker", "tell", {"trial": 2, "reward": "1"}, {}),
    ("worker", "tell", {"trial": 2, "reward": True}, {}),
    ("worker", "tell", {"trial": 2, "reward": None}, {}),
    ("worker", "tell", {"trial": 2.5, "reward": 1}, {}),
    ("worker", "tell", {"trial": 2}, {}),
    ("worker", "tell", {"trial": 2, "reward": 1, "more": 1}, {}),
    ("worker", "tell", [], {}),
    ("worker", "tell", b"", {}),
    ("worker", "tell", b'{"trial": 2, "reward": NaN}', {}),
    ("worker", "tell", b'{"trial": 2, "reward": 1', {}),
    ("worker", "tell", b"\xff\xfe", {}),
    ("worker", "tell", b'{"trial": 2, "reward": 1}', {"Content-Type": "text/plain"}),
    ("worker", "tell", b'{"trial": 3, "reward": 1e400}', {}),
    ("worker", "ask", b"", {}),
    ("worker", "ask", {"n": 0}, {}),
    ("worker", "ask", {"n": 1001}, {}),
    ("worker", "ask", {"n": "2"}, {}),
    ("worker", "ask", {"lease": "5 parsecs"}, {}),
    ("worker", "ask", {"lease": -1}, {}),
    ("worker", "ask", {"lease": "2h", "timeout_reward": 0.5}, {}),
    ("worker", "ask", {"timeout_reward": 1e300}, {}),
    ("worker", "ask", {"worker": ""}, {}),
    ("worker", "ask", {"worker": "w" * 201}, {}),
    ("worker", "ask", {"worker": "a\u0000b"}, {}),
    ("worker", "ask", {}, {KEY: ""}),
    ("worker", "ask", {}, {KEY: "k" * 200}),
    ("worker", "ask", {}, {KEY: "k" * 201}),
    ("worker", "ask", {}, {KEY: b"\xe9"}),
    ("worker", "ask", {"n": 50}, {}),
    ("worker", "assign", {"unit": "v", "fallback": "A", "within": 60.0, "tag": "t", "lease": None}, {}),
    ("worker", "assign", {"unit": "v"}, {}),
    ("worker", "assign", {"unit": "w", "fallback": "C"}, {}),
    ("worker", "assign", {"unit": "w", "within": 0.0}, {}),
    ("worker", "assign", {"unit": "w" * 201}, {}),
    ("worker", "assign", {"unit": "x", "lease": "5 parsecs"}, {}),
    ("worker", "give-back", {"unit": "v", "tag": "another"}, {}),
    ("worker", "tell-unit", {"unit": "v", "reward": 0.25}, {}),
    ("worker", "tell-unit", {"unit": "v", "reward": 0.25}, {}),
    ("worker", "tell-unit", {"unit": "v", "reward": 0.5}, {}),
    ("worker", "tell-unit", {"unit": "nobody", "reward": 0.5}, {}),
    ("worker", "tell-unit", {"unit": "v", "reward": None, "reason": "left"}, {}),
    ("worker", "tell-unit", {"unit": "v", "reward": 1e300}, {}),
    ("worker", "tell", {"trial": 3, "tag": "8c5f1be3", "reward": 0.5}, {}),
    ("worker", "tell", {"trial": 3, "tag": "another", "reward": 0.5}, {}),
    ("worker", "tell", {"trial": 3, "tag": "", "reward": 0.5}, {}),
    ("worker", "fail", {"trial": 4, "tag": "another"}, {}),
    ("viewer", "assign", {"unit": "v"}, {}),
    ("admin", "ask", {}, {}),
    ("viewer", "ask", {}, {}),
    ("viewer", "tell", {"trial": 2, "reward": 1}, {}),
    (None, "ask", {}, {}),
    (None, "ask", {}, {"Authorization": "Bearer dbc_nobody"}),
    (None, "ask", {}, {"Authorization": "Basic abc"}),
    ("worker", "/v1/studies/none/ask", {}, {}),
    ("worker", "/v1/studies//ask", {}, {}),
    ("worker", "/v1/studies/a%2Fb/ask", {}, {}),
    ("worker", f"{PATH}/ask/", {}, {}),
    ("worker", f"{PATH}/ask/tell", {}, {}),
    ("worker", f"/v1/studies/{'n' * 300}/ask", {}, {}),
    ("admin", f"{PATH}/stop", {}, {}),
    ("worker", "ask", {}, {}),
    ("worker", "tell", {"trial": 4, "reward": 0.5}, {}),
]


@contextmanager
def counted_submissions() -> Iterator[list[object]]:
    """Count the operations that no thread waits for, which only the lean path makes."""
    submitted: list[object] = []
    original = GroupCommit.submit

    def submit(self: GroupCommit, operation: Any, *rest: Any) -> None:
        submitted.append(operation)
        original(self, operation, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GroupCommit, "submit", submit)
        yield submitted


@contextmanager
def stopped_clock() -> Iterator[None]:
    """Stop the clock, so that both paths give trials the same times to expire, and give all the same tag."""
    now = time.time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: now)
        patch.setattr(ask_and_tell, "make_tag", lambda: "8c5f1be3")
        yield


def make_service(keys: MemoryRecords, *, lean: bool) -> FastAPI:
    app = make_app(MemoryStore(), records=keys)
    if not lean:
        lean_path: object = LeanPath
        app.user_middleware = [added for added in app.user_middleware if added.cls is not lean_path]
    return app


async def send_all(app: FastAPI, texts: dict[str, str]) -> list[tuple[int, dict[str, str], Any]]:
    """Send all requests; return the status, headers and body of each response."""
    received = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        admin = {"Authorization": f"Bearer {texts['admin']}"}
        (await client.post("/v1/studies", json=STUDY, headers=admin)).raise_for_status()
        for role, path, body, more in REQUESTS:
            headers = {"Content-Type": "application/json", "X-Request-ID": "same"} | more
            if role is not None:
                headers["Authorization"] = f"Bearer {texts[role]}"
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            address = path if path.startswith("/") else f"{PATH}/{path}"
            response = await client.post(address, content=content, headers=headers)
            parsed = response.json() if response.content else None
            received.append((response.status_code, dict(response.headers), parsed))
    return received


def test_both_paths_give_the_same_responses() -> None:
    keys = MemoryRecords()
    texts = {str(role): Keys(keys).create(str(role), role)[1] for role in Role}
    with stopped_clock(), counted_submissions() as submitted:
        lean = asyncio.run(send_all(make_service(keys, lean=True), texts))
        succeeded = [
            path in ("ask", "tell") and status < 400
            for (_, path, _, _), (status, _, _) in zip(REQUESTS, lean, strict=True)
        ]
        assert len(submitted) >= sum(succeeded) > 10
        submitted.clear()
        described = asyncio.run(send_all(make_service(keys, lean=False), texts))
        assert submitted == []
    for request, ours, theirs in zip(REQUESTS, lean, described, strict=True):
        assert ours == theirs, request
    assert {200, 204, 401, 403, 404, 409, 422} <= {status for status, _, _ in lean}


def test_a_client_that_leaves_takes_nothing_back(server: ApiServer, admin: httpx.Client) -> None:
    """What was sent in full is carried out, whether or not anyone waits for the response."""
    trials = admin.post("ask", json={"n": 2}).json()["trials"]
    host, port = httpx.URL(server.url).host, httpx.URL(server.url).port
    for trial in trials:
        body = json.dumps({"trial": trial["id"], "reward": 0.5})
        head = (
            f"POST {admin.base_url.raw_path.decode()}tell HTTP/1.1\r\nHost: {host}\r\n"
            f"Authorization: Bearer {server.keys['worker']}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((host, port)) as connection:
            connection.sendall((head + body).encode())
    until = time.monotonic() + 30.0
    while admin.get("status").json()["counted"] < len(trials):
        assert time.monotonic() < until
        time.sleep(0.02)
