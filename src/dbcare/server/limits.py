"""How large a request may be, and how many a client may send."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbcare.server.problems import RefusalError, problem

LARGEST_BODY = 4 * 1024 * 1024  # bytes: 50,000 answers at once
SLOWEST_BODY = 30.0  # seconds
CLIENTS = 10_000  # remembered at most


class Bucket:
    """So many requests a second on average, and `burst` at once, for each client."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when that was so

    def wait(self, client: str) -> float:
        """0 if one more request is within the limit, else the seconds until it is."""
        now = time.monotonic()
        left, at = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - at) * self.rate)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left, now)
        while len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self.rate


class Limits:
    """Turns down what is too large (413) or too much (429) before anything else looks at it."""

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
            refusal = problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Requests must be at most {self.bucket.rate:g} a second from one address.",
                headers={"Retry-After": str(int(wait) + 1)},
            )
            await refusal(scope, receive, send)
            return
        try:
            async with asyncio.timeout(SLOWEST_BODY):
                body = await _body(scope, receive)
        except RefusalError as refused:
            await problem(refused.status, str(refused))(scope, receive, send)
            return
        except TimeoutError:
            late = f"A body must arrive within {SLOWEST_BODY:g} seconds."
            await problem(HTTPStatus.REQUEST_TIMEOUT, late)(scope, receive, send)
            return
        if body is None:
            return
        given = False

        async def replayed() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replayed, send)


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body; None if the client left before it was complete: then nothing must be done."""
    announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    parts: list[bytes] = []
    size, more = int(announced) if announced.isdigit() else LARGEST_BODY + 1, True
    while more and size <= LARGEST_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size = sum(map(len, parts))
        more = message.get("more_body", False)
    if size > LARGEST_BODY:
        raise RefusalError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A body must have at most {LARGEST_BODY:,} bytes.")
    return b"".join(parts)
