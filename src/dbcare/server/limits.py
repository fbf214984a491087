"""Limits on the size of requests, and on how many a client may send."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbcare.server.problems import RefusalError, make_problem

MAX_BODY_BYTES = 4 * 1024 * 1024  # room for 50,000 rewards
MAX_BODY_SECONDS = 30.0
MAX_CLIENTS = 10_000  # to keep track of


class Bucket:
    """A limit per client: `rate` requests per second on average, and `burst` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and as of when

    def take(self, client: str) -> float:
        """Count a request and return 0 if it is within the limit; otherwise return the seconds to wait."""
        now = time.monotonic()
        left, at = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - at) * self.rate)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left, now)
        while len(self._left) > MAX_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self.rate


class Limits:
    """Refuses requests that are too large (413) or too frequent (429) before anything else sees them."""

    def __init__(self, app: ASGIApp, rate: float) -> None:
        self.app = app
        self.bucket = Bucket(rate, burst=rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        client = scope.get("client") or ("?", 0)
        wait = self.bucket.take(client[0])
        if wait > 0.0:
            problem = make_problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Too many requests: one address may send at most {self.bucket.rate:g} per second.",
                headers={"Retry-After": str(int(wait) + 1)},
            )
            await problem(scope, receive, send)
            return
        try:
            async with asyncio.timeout(MAX_BODY_SECONDS):
                body = await _read_body(scope, receive)
        except RefusalError as refused:
            await make_problem(refused.status, str(refused))(scope, receive, send)
            return
        except TimeoutError:
            detail = f"The body did not arrive within {MAX_BODY_SECONDS:g} seconds."
            await make_problem(HTTPStatus.REQUEST_TIMEOUT, detail)(scope, receive, send)
            return
        if body is None:  # nobody is waiting for a response
            return
        replayed = False

        async def replay() -> Message:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)


async def _read_body(scope: Scope, receive: Receive) -> bytes | None:
    """Return the whole body, or None if the client disconnected before sending all of it."""
    announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    parts: list[bytes] = []
    size, more = int(announced) if announced.isdigit() else MAX_BODY_BYTES + 1, True
    while more and size <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size = sum(map(len, parts))
        more = message.get("more_body", False)
    if size > MAX_BODY_BYTES:
        raise RefusalError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body is too large: the limit is {MAX_BODY_BYTES:,} bytes.",
        )
    return b"".join(parts)
