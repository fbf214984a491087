"""The gate in front of every route: who sent a request, and whether they may.

A program sends its key as `Authorization: Bearer ...`. A browser sends the cookie of its session and, with every
change, the session's token, which pages of other sites cannot know. Until the first key is created, anyone on this
machine has access; requests that a browser sends for another site are then refused.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Security
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from dbcare.errors import StorageError
from dbcare.server.access.keys import BrowserSession, Key, Keys, Sessions
from dbcare.server.access.roles import Role
from dbcare.server.problems import RefusalError
from dbcare.server.studies import SharedLookups

COOKIE = "dbcare_session"
TOKEN_HEADER = "X-CSRF-Token"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
RECALL_SECONDS = 0.3  # to look up who sent a request that is answered even if the database is not
FRESH_SECONDS = 0.25  # during which a revoked key may still be accepted
MAX_RECENT_KEYS = 10_000
VISITOR = "dbcare.visitor"  # where a request's scope has the visitor's name
KEY = "dbcare.key"  # where it has the key that the visitor used, even if the key is no longer valid
CHALLENGE = {"WWW-Authenticate": "Bearer"}
LOOPBACK = ("localhost", "127.0.0.1", "::1")
PROXY_HEADERS = ("forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip")
PROXY_HEADER_PREFIXES = ("x-forwarded-", "x-envoy-", "x-amzn-", "x-original-")


@dataclass(frozen=True)
class Visitor:
    """Who sent a request."""

    role: Role
    name: str
    session: BrowserSession | None = None
    key: Key | None = None


class InvalidKeyError(RefusalError):
    """A request with a key that has expired or was revoked."""

    def __init__(self, key: Key) -> None:
        super().__init__(HTTPStatus.UNAUTHORIZED, f"This API key is not valid: it {key.why_invalid()}.", CHALLENGE)
        self.key = key


LOCAL_VISITOR = Visitor(Role.ADMIN, "anyone on this machine")  # as long as no key exists


class Gate:
    """Identifies visitors by their key or session."""

    def __init__(self, keys: Keys, sessions: Sessions) -> None:
        self.keys = keys
        self.sessions = sessions
        self._lookups: SharedLookups[Visitor | None] = SharedLookups()
        # Keys that were valid, until when that is believed, and until when they are valid unless they are revoked.
        self._recent: dict[str, tuple[float, float, Visitor]] = {}
        self._known: set[str] = set()  # keys and cookies that were valid when they were last looked up
        self._is_open = False  # whether no key existed when that was last looked up

    def identify(self, request: Request, text: str | None) -> Visitor | None:
        """Return who sent a request, by its key or else by the browser's session; None for a stranger."""
        visitor = self._identify(request, text)
        credential = request.cookies.get(COOKIE) if text is None else text
        if visitor is None:
            self._known.discard(credential or "")
        else:
            _note_visitor(request, visitor)
            if credential is not None:
                if len(self._known) >= MAX_RECENT_KEYS:
                    self._known.clear()
                self._known.add(credential)
        return visitor

    def is_stranger(self, scope: Scope) -> bool:
        """Return whether a request comes from someone who has not proved lately that they have access to anything.

        This looks nothing up, so it bounds what strangers may do, but lets nobody in.
        """
        for name, value in scope["headers"]:
            if name == b"authorization" and value[7:].decode("latin-1") in self._known:  # the usual case, without ado
                return False
        request = Request(scope)
        credential = read_key(request) or request.cookies.get(COOKIE)
        return credential not in self._known and not (self._is_open and not _is_foreign(request))

    def _identify(self, request: Request, text: str | None) -> Visitor | None:
        if text is not None:
            key = self.keys.recognize(text)
            if key is None:
                self._recent.pop(text, None)
                return None
            if key.why_invalid() is not None:
                self._known.discard(text)
                self._recent.pop(text, None)
                raise InvalidKeyError(key)
            self.keys.note_use(key)
            if len(self._recent) >= MAX_RECENT_KEYS:
                self._recent.clear()
            visitor = Visitor(key.role, key.name, key=key)
            now, left = time.monotonic(), key.seconds_left()
            self._recent[text] = now + min(FRESH_SECONDS, left), now + left, visitor
            return visitor
        cookie = request.cookies.get(COOKIE)
        session = None if cookie is None else self.sessions.find(cookie)
        if session is not None:
            self.keys.note_use(session.key)
            return Visitor(session.key.role, session.key.name, session, session.key)
        self._is_open = not self.keys.any()
        if not self._is_open:
            return None
        if _is_foreign(request):
            raise RefusalError(
                HTTPStatus.FORBIDDEN,
                "No API key exists yet, so only this machine can use this server.",
            )
        return LOCAL_VISITOR

    def _recognize(self, text: str | None) -> Visitor | None:
        """Return who sent the same key just now, so that the key of a busy program is not looked up every time."""
        until, _, visitor = (0.0, 0.0, None) if text is None else self._recent.get(text, (0.0, 0.0, None))
        return visitor if time.monotonic() < until else None

    async def find_visitor(self, request: Request) -> Visitor | None:
        """Return who sent a request; None for a stranger."""
        text = read_key(request)
        if text is None:
            return await run_in_threadpool(self.identify, request, None)
        visitor = self._recognize(text)
        if visitor is None:
            try:
                visitor = await self._lookups.run(text, lambda: self.identify(request, text))
            except InvalidKeyError as refused:
                request.scope[KEY] = refused.key
                raise
        if visitor is not None:
            _note_visitor(request, visitor)
        return visitor

    async def recall_visitor(self, request: Request) -> Visitor | None:
        """Return who sent a request, as `find_visitor` does, within a second.

        If the database does not respond, a key counts as valid that was valid when it was last looked up, and anyone on
        this machine has access if no key existed then.
        """
        text = read_key(request)
        try:
            async with asyncio.timeout(RECALL_SECONDS):
                if text is not None:
                    return await self.find_visitor(request)
                sent = f"\n{_is_foreign(request)} {request.cookies.get(COOKIE)}"  # no key has a line break
                return await self._lookups.run(sent, lambda: self.identify(request, None))
        except (TimeoutError, StorageError):
            if text is None and self._is_open and not _is_foreign(request):
                return LOCAL_VISITOR
            _, until, visitor = self._recent.get(text or "", (0.0, 0.0, None))
            if visitor is None or time.monotonic() > until:
                raise StorageError("The database does not say who sent a request for the metrics.") from None
            _note_visitor(request, visitor)
            return visitor

    async def knows(self, request: Request) -> bool:
        """Return whether a request comes from someone who has access to anything."""
        try:
            return await self.find_visitor(request) is not None
        except RefusalError:
            return False

    def needs(self, role: Role, *, in_time: bool = False) -> Any:
        """Return a dependency that admits visitors with the role; the API's description says so.

        With `in_time`, it does not wait for a database that is slow, or down: see `recall_visitor`.
        """
        return Security(RoleCheck(role, self.recall_visitor if in_time else self.find_visitor), scopes=[role])


class RoleCheck(SecurityBase):
    """Admits visitors with a role, and returns them."""

    scheme_name = "key"
    model = HTTPBearer(description="An API key, created with `dbcare keys create`.")

    def __init__(self, role: Role, find_visitor: Callable[[Request], Awaitable[Visitor | None]]) -> None:
        self._role = role
        self._find_visitor = find_visitor

    async def __call__(self, request: Request) -> Visitor:
        """Return who sent a request, or raise a RefusalError."""
        visitor = await self._find_visitor(request)
        if visitor is None:
            raise RefusalError(
                HTTPStatus.UNAUTHORIZED,
                "An API key is required, sent as `Authorization: Bearer ...`."
                if read_key(request) is None
                else "This API key is not valid: it is unknown.",
                CHALLENGE,
            )
        if not visitor.role.allows(self._role):
            raise RefusalError(
                HTTPStatus.FORBIDDEN, f"This requires a key with the role {self._role}; yours has {visitor.role}."
            )
        if (
            visitor.session is not None
            and request.method not in SAFE_METHODS
            and not visitor.session.issued(request.headers.get(TOKEN_HEADER))
        ):
            raise RefusalError(HTTPStatus.FORBIDDEN, f"A browser must send its session's token as {TOKEN_HEADER}.")
        return visitor


def _note_visitor(request: Request, visitor: Visitor) -> None:
    request.scope[VISITOR], request.scope[KEY] = visitor.name, visitor.key


def read_key(request: Request) -> str | None:
    """Return the key in the `Authorization` header; None if there is none."""
    # From the raw headers: to decode all of them takes longer than to look up the key.
    sent = next((value for name, value in request.scope["headers"] if name == b"authorization"), b"")
    scheme, _, text = sent.decode("latin-1").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else None


def _is_foreign(request: Request) -> bool:
    """Return whether a request comes from another machine, under another host's name, or from another site's page."""
    was_proxied = any(name in PROXY_HEADERS or name.startswith(PROXY_HEADER_PREFIXES) for name in request.headers)
    is_local = request.client is not None and is_loopback(request.client.host)
    origin = _parse_origin(f"http://{request.headers.get('host', '')}")
    return was_proxied or not is_local or origin is None or origin[0] not in LOOPBACK or is_cross_site(request)


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_cross_site(request: Request) -> bool:
    """Return whether a browser says that a change comes from another site's page."""
    if request.method in SAFE_METHODS:
        return False
    origin = request.headers.get("origin")
    if origin is not None:
        source = _parse_origin(origin)
        if source is None or source != _parse_origin(f"{request.url.scheme}://{request.headers.get('host', '')}"):
            return True
    return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _parse_origin(address: str) -> tuple[str, int] | None:
    """Return the host and port of an origin; None if it cannot be parsed."""
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    return None if parts.hostname is None else (parts.hostname, port)
