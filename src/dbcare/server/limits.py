"""Size and rate of requests, who sent them, and the headers of responses."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import OrderedDict
from contextlib import AsyncExitStack, suppress
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbcare.errors import DbcareError, InvalidValueError
from dbcare.server.access.gate import Gate
from dbcare.server.metrics import Metrics, Refusal
from dbcare.server.problems import RefusalError, make_problem, report_error
from dbcare.server.service_limits import ServiceLimits
from dbcare.server.turns import REFUSAL_SECONDS, Turns

IPV6_NETWORK_BITS = 64  # the smallest network that a provider hands out: one client has all of its addresses


def identify_client(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the network of an IPv6 address."""
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, IPV6_NETWORK_BITS), strict=False))


class TrustedProxies:
    """Addresses and networks, from a text such as "10.0.0.5,192.168.0.0/16"."""

    def __init__(self, text: str) -> None:
        self._networks = [_parse_network(part.strip()) for part in text.split(",") if part.strip()]

    def __contains__(self, address: str) -> bool:
        if not self._networks:
            return False
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._networks)


def _parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise InvalidValueError(
            f"`trusted_proxies` must be addresses or networks such as 10.0.0.5,192.168.0.0/16 but got {text!r}."
        ) from None


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
REPORT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # no-referrer would hide that our forms are ours
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
ENCODED_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


class SecurityHeaders:
    """Adds these headers to every response, except those that its route has set."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                own = {name for name, _ in headers}
                headers += [(name, value) for name, value in ENCODED_HEADERS if name not in own]
                message = {**message, "headers": headers}
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


MAX_CLIENTS = 10_000  # to keep track of
HEALTH_PATH, READY_PATH = "/healthz", "/readyz"


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


def make_bucket(rate: float) -> Bucket:
    """Return a limit of so many requests per second, all of which may come at once."""
    return Bucket(rate, burst=max(1.0, rate))


def make_refusal(wait: float, bucket: Bucket, whose: str) -> JSONResponse:
    """Return the response to a request that came too early."""
    return make_problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"Too many requests{whose}: one address may send at most {bucket.rate:g} per second.",
        headers={"Retry-After": str(int(wait) + 1)},
    )


class Limits:
    """Refuses requests that are too frequent (429) or too large (413; 401 for strangers) before the routes see them.

    Strangers, who have shown no valid key, get few requests per second, and one at a time: their addresses take turns.
    Health checks never wait, and have a rate of their own, so that no other request of the same address counts.
    """

    def __init__(self, app: ASGIApp, limits: ServiceLimits, gate: Gate, metrics: Metrics) -> None:
        self.app = app
        self.limits = limits
        self.gate = gate
        self.metrics = metrics
        self.bucket = make_bucket(limits.requests_per_second)
        self.stranger_bucket = make_bucket(limits.stranger_requests_per_second)
        self.health_bucket = make_bucket(limits.stranger_requests_per_second)
        self.strangers = Turns(limits.connections, metrics, Refusal.STRANGERS)  # the buckets refuse them before

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        address = (scope.get("client") or ("?", 0))[0]
        is_stranger = self.gate.is_stranger(scope)
        is_health_check = scope["path"] in (HEALTH_PATH, READY_PATH)
        if (wait := self.bucket.take(address)) > 0.0:
            self.metrics.refuse(Refusal.FREQUENT)
            await make_refusal(wait, self.bucket, "")(scope, receive, send)
            return
        own = self.health_bucket if is_health_check else self.stranger_bucket
        if is_stranger and (wait := own.take(address)) > 0.0:
            self.metrics.refuse(Refusal.STRANGERS)
            await asyncio.sleep(REFUSAL_SECONDS)
            await make_refusal(wait, own, " without a valid API key")(scope, receive, send)
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

        if is_stranger and not is_health_check:
            await self._respond_to_stranger(address, scope, replay, send)
        else:
            await self.app(scope, replay, send)

    async def _respond_to_stranger(self, address: str, scope: Scope, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as turn:

            async def send_after_turn(message: Message) -> None:
                await turn.aclose()  # a client that reads slowly keeps nobody waiting
                await send(message)

            await turn.enter_async_context(self.strangers.take(identify_client(address)))
            with suppress(DbcareError):  # which the route reports
                if await self.gate.knows(Request(scope)):  # not a stranger, but a newcomer
                    await turn.aclose()
            await self.app(scope, receive, send_after_turn)

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
