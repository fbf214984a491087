"""The gate in front of every route: who is it, and may they?

A program brings its key as `Authorization: Bearer ...`. A browser brings the cookie of its session and, for anything
that changes something, the session's token, which pages of other sites cannot know. As long as no key was ever made,
everybody on this machine is let in: then requests that a browser sends for another site are turned down.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from dbcare.server.access.keys import Keys
from dbcare.server.access.roles import Role
from dbcare.server.access.sessions import BrowserSession, Sessions
from dbcare.server.problems import RefusalError

COOKIE = "dbcare_session"
TOKEN = "X-CSRF-Token"  # a header's name
SAFE = ("GET", "HEAD", "OPTIONS")
FRESH = 0.25  # seconds within which a revoked key may still be let in
MOST_RECENT = 10_000
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Visitor:
    """Who sent a request."""

    role: Role
    name: str
    session: BrowserSession | None = None


class Gate:
    """Knows visitors by their key or session."""

    def __init__(self, keys: Keys, sessions: Sessions) -> None:
        self.keys = keys
        self.sessions = sessions
        self._recent: dict[str, tuple[float, Visitor]] = {}  # keys that were good, and when

    def visitor(self, request: Request, given: str | None) -> Visitor | None:
        """Who it is, by the key that was given, or else by the browser's session; None for strangers."""
        if given is not None:
            key = self.keys.known(given)
            if key is None:
                return None
            if len(self._recent) >= MOST_RECENT:
                self._recent.clear()
            visitor = Visitor(key.role, key.name)
            self._recent[given] = time.monotonic(), visitor
            return visitor
        cookie = request.cookies.get(COOKIE)
        session = None if cookie is None else self.sessions.known(cookie)
        if session is not None:
            return Visitor(session.role, session.name, session)
        if self.keys.any():
            return None
        if _is_foreign(request):
            raise RefusalError(
                HTTPStatus.FORBIDDEN,
                "Without a key, only programs and pages of this machine itself may use this server.",
            )
        return Visitor(Role.ADMIN, "everybody on this machine")

    def _seen(self, given: str | None) -> Visitor | None:
        """Who showed the same key just now, so that busy programs are not looked up again and again."""
        at, visitor = (0.0, None) if given is None else self._recent.get(given, (0.0, None))
        return visitor if time.monotonic() - at < FRESH else None

    def needs(self, role: Role) -> Callable[[Request], Awaitable[Visitor]]:
        """A dependency that lets in who has the role."""

        async def enter(request: Request) -> Visitor:
            given = given_key(request)
            visitor = self._seen(given) or await run_in_threadpool(self.visitor, request, given)
            if visitor is None:
                raise RefusalError(
                    HTTPStatus.UNAUTHORIZED,
                    "A valid API key must be given as `Authorization: Bearer ...`.",
                    {"WWW-Authenticate": "Bearer"},
                )
            if not visitor.role.allows(role):
                raise RefusalError(
                    HTTPStatus.FORBIDDEN, f"The key must have the role {role} for this but has {visitor.role}."
                )
            if (
                visitor.session is not None
                and request.method not in SAFE
                and not visitor.session.wrote(request.headers.get(TOKEN))
            ):
                raise RefusalError(HTTPStatus.FORBIDDEN, f"A browser must send its session's token as {TOKEN}.")
            return visitor

        return enter


def given_key(request: Request) -> str | None:
    """What stands behind `Bearer`; None if there is no such header."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else None


def _is_foreign(request: Request) -> bool:
    """Whether this comes from elsewhere, under a name that is not this machine's, or for a page that is not ours."""
    passed_on = any(name == "forwarded" or name.startswith("x-forwarded-") for name in request.headers)
    from_here = request.client is not None and is_loopback(request.client.host)
    place = _place(f"http://{request.headers.get('host', '')}")
    return passed_on or not from_here or place is None or place[0] not in LOOPBACK or is_cross_site(request)


def is_loopback(host: str) -> bool:
    """Whether only this machine has that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_cross_site(request: Request) -> bool:
    """Whether a browser says that this changes something for a page that is not ours."""
    if request.method in SAFE:
        return False
    origin = request.headers.get("origin")
    if origin is not None:
        place = _place(origin)
        if place is None or place != _place(f"{request.url.scheme}://{request.headers.get('host', '')}"):
            return True
    return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _place(address: str) -> tuple[str, int] | None:
    """Host and port of an origin; None if it cannot be read."""
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    return None if parts.hostname is None else (parts.hostname, port)
