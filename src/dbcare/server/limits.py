"""How large a request may be, and how many a client may send."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbcare.server.problems import RefusalError, make_problem

MAX_BODY_BYTES = 4 * 1024 * 1024  # 50,000 rewards at once
MAX_BODY_SECONDS = 30.0
MAX_CLIENTS = 10_000  # remembered


class Bucket:
    """A limit per client: `rate` requests per second on average, and `burst` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and as of when

    def wait(self, client: str) -> float:
        """Return 0 if one more request is within the limit, else the seconds until it is."""
        now = time.monotonic()
        left, at = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - at) * self.rate)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left, now)
        while len(self._left) > MAX_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self.rate


class Limits:
    """Refuses what is too large (413) or too much (429) before anything else sees it."""

    def __init__(self, app: ASGIApp, rate: float) -> None:
        self.app = app
        self.bucket = Bucket(rate, burst=rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        client = scope.get("client") or ("?", 0)
        wait = self.bucket.wait(client[0])
        if wait > 0.0:
            refusal = make_problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Too many requests: at most {self.bucket.rate:g} per second are accepted from one address.",
                headers={"Retry-After": str(int(wait) + 1)},
            )
            await refusal(scope, receive, send)
            return
        try:
            async with asyncio.timeout(MAX_BODY_SECONDS):
                body = await _read_body(scope, receive)
        except RefusalError as refused:
            await make_problem(refused.status, str(refused))(scope, receive, send)
            return
        except TimeoutError:
            late = f"The body did not arrive within {MAX_BODY_SECONDS:g} seconds."
            await make_problem(HTTPStatus.REQUEST_TIMEOUT, late)(scope, receive, send)
            return
        if body is None:
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
    """Return the whole body; None if the client left before it was complete, and nothing must be done."""
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
            f"The body is too large: at most {MAX_BODY_BYTES:,} bytes are accepted.",
        )
    return b"".join(parts)
