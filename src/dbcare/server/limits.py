"""Limits on how many requests a client may send, and on the size of their bodies."""

from __future__ import annotations

import time
from collections import OrderedDict
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbcare.errors import DbcareError
from dbcare.server.access.gate import Gate
from dbcare.server.addresses import identify_client
from dbcare.server.metrics import Metrics, Refusal
from dbcare.server.problems import RefusalError, make_problem, report_error
from dbcare.server.service_limits import ServiceLimits

MAX_CLIENTS = 10_000  # to keep track of


class Bucket:
    """A limit per client: `rate` requests per second on average, and `burst` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and as of when

    def take(self, address: str) -> float:
        """Count a request and return 0 if it is within the limit; otherwise return the seconds to wait."""
        client, now = identify_client(address), time.monotonic()
        left, at = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - at) * self.rate)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left, now)
        while len(self._left) > MAX_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self.rate


class Limits:
    """Refuses requests that are too frequent (429) or too large (413; 401 for strangers) before the routes see them."""

    def __init__(self, app: ASGIApp, limits: ServiceLimits, gate: Gate, metrics: Metrics) -> None:
        self.app = app
        self.limits = limits
        self.gate = gate
        self.metrics = metrics
        self.bucket = Bucket(limits.requests_per_second, burst=max(1.0, limits.requests_per_second))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        client = scope.get("client") or ("?", 0)
        wait = self.bucket.take(client[0])
        if wait > 0.0:
            self.metrics.refuse(Refusal.FREQUENT)
            await self._too_frequent(wait)(scope, receive, send)
            return
        try:
            body = await self._read_body(scope, receive)
        except RefusalError as refused:
            self.metrics.refuse(Refusal.LARGE_BODY)
            await make_problem(refused.status, str(refused), headers=refused.headers)(scope, receive, send)
            return
        except DbcareError as error:  # the database did not say who sent it
            await report_error(error)(scope, receive, send)
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

    def _too_frequent(self, wait: float) -> JSONResponse:
        return make_problem(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"Too many requests: one address may send at most {self.bucket.rate:g} per second.",
            headers={"Retry-After": str(int(wait) + 1)},
        )

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the whole body, or None if the client disconnected before sending all of it."""
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        allowed = min(self.limits.stranger_body_bytes, self.limits.body_bytes)
        if int(announced) > allowed:
            allowed = await self._allow_body(scope, int(announced))
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > allowed:
                allowed = await self._allow_body(scope, size)
            more = message.get("more_body", False)
        return b"".join(parts)

    async def _allow_body(self, scope: Scope, size: int) -> int:
        """Return how large a body may be that is too large for strangers; refuse theirs, and those of any size."""
        if size > self.limits.body_bytes:
            raise RefusalError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The body is too large: the limit is {self.limits.body_bytes:,} bytes.",
            )
        if not await self.gate.knows(Request(scope)):
            raise RefusalError(
                HTTPStatus.UNAUTHORIZED,
                f"A body of more than {self.limits.stranger_body_bytes:,} bytes requires a valid API key, "
                "sent as `Authorization: Bearer ...`.",
                {"WWW-Authenticate": "Bearer"},
            )
        return self.limits.body_bytes
