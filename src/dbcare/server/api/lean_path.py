"""The lean path: asks and tells of busy programs are answered before the framework sees them.

FastAPI spends longer on finding a route and resolving its parameters than a study needs to respond. Valid requests of
programs with a key are carried out here, in a shared commit; no thread waits for it. Everything else, such as what must
be refused, takes the usual route, so that it is described, checked and reported in one place.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbcare.errors import DbcareError, InvalidValueError, StudyNotFoundError, TrialNotFoundError
from dbcare.live.ask import AskOutcome
from dbcare.live.operations import StudyOperation
from dbcare.live.stored_study import StoredStudy
from dbcare.server.access.gate import Gate, read_key
from dbcare.server.access.roles import Role
from dbcare.server.api import schemas
from dbcare.server.api.schemas import MAX_KEY_LENGTH
from dbcare.server.metrics import Metrics
from dbcare.server.open_studies import OpenStudies
from dbcare.server.problems import RefusalError, report_error

PREFIX = "/v1/studies/"
KEY_HEADER = b"idempotency-key"
JSON_TYPE = (b"content-type", b"application/json")


class Mailbox:
    """Tells the event loop about operations that threads have carried out, waking it once for a whole group."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._done: deque[asyncio.Future[None]] = deque()
        self._is_awake = False

    def expect(self) -> asyncio.Future[None]:
        """Return a future to pass to `deliver` later."""
        return self.loop.create_future()

    def deliver(self, future: asyncio.Future[None]) -> None:
        """Note that an operation is done. Called in the thread that carried it out."""
        self._done.append(future)
        if not self._is_awake:
            self._is_awake = True
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                self.loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._is_awake = False
        while self._done:
            future = self._done.popleft()
            if not future.done():  # the client may have disconnected; the change stands
                future.set_result(None)


class LeanPath:
    """Carries out asks and tells, or passes requests on to the routes, whose models and problems it shares."""

    def __init__(self, app: ASGIApp, gate: Gate, studies: OpenStudies, metrics: Metrics, routes: list[Any]) -> None:
        self.app = app
        self.gate = gate
        self.studies = studies
        self.metrics = metrics
        self._routes = {route.path.rpartition("/")[2]: route for route in routes if isinstance(route, Route)}
        self._mailbox: Mailbox | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"].startswith(PREFIX):
            name, _, action = scope["path"][len(PREFIX) :].partition("/")
            if action in ("ask", "tell") and (study := await self._find_study(name, Request(scope))) is not None:
                await self._respond(study, action, scope, receive, send)
                return
        await self.app(scope, receive, send)

    async def _find_study(self, name: str, request: Request) -> StoredStudy | None:
        """Return the study, if the request has a worker's key; None if it must take the usual route."""
        if read_key(request) is None:  # a browser's session is not enough
            return None
        try:
            visitor = await self.gate.find_visitor(request)
            return await self.studies.open(name) if visitor is not None and visitor.role.allows(Role.WORKER) else None
        except (DbcareError, RefusalError):
            return None

    async def _respond(self, study: StoredStudy, action: str, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()  # the whole body: that is what `Limits` passes on
        try:
            operation = self._prepare(study, action, scope, message.get("body", b""))
        except (ValidationError, DbcareError):
            await self.app(scope, _replay(message, receive), send)
            return
        scope["route"], scope["path_params"] = self._routes[action], {"name": study.name}
        mailbox = self._mailbox
        if mailbox is None or mailbox.loop is not asyncio.get_running_loop():
            mailbox = self._mailbox = Mailbox()
        future = mailbox.expect()
        study.commits.submit(operation, self.studies.writers, partial(mailbox.deliver, future))
        await future
        try:
            result = operation.outcome()
        except DbcareError as error:
            if isinstance(error, StudyNotFoundError) and not isinstance(error, TrialNotFoundError):
                self.studies.forget(study.name)  # it may have been re-created
            await report_error(error)(scope, receive, send)
            return
        await self._send(result, send)

    def _prepare(self, study: StoredStudy, action: str, scope: Scope, body: bytes) -> StudyOperation[Any]:
        """Return what is to be done; raise if the request is invalid."""
        if JSON_TYPE not in scope["headers"]:
            raise InvalidValueError("`Content-Type` must be application/json here.")
        if action == "tell":
            answer = schemas.Answer.model_validate_json(body)
            return study.tell_later(answer.trial, answer.reward, price=answer.price)
        wanted = schemas.Ask.model_validate_json(body)
        key = next((value.decode("latin-1") for name, value in scope["headers"] if name == KEY_HEADER), None)
        if key is not None and not 0 < len(key) <= MAX_KEY_LENGTH:
            raise InvalidValueError(f"`{KEY_HEADER.decode()}` must have 1 to {MAX_KEY_LENGTH} characters.")
        return study.ask_later(study.check_ask(**dict(wanted), key=key))

    async def _send(self, result: AskOutcome | None, send: Send) -> None:
        if result is None:
            self.metrics.told.inc()
            status, body, headers = HTTPStatus.NO_CONTENT, b"", []
        else:
            self.metrics.asked.inc(result.new)
            status, body = HTTPStatus.OK, schemas.Asked.from_result(result).model_dump_json().encode()
            headers = [JSON_TYPE, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": int(status), "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _replay(message: Message, receive: Receive) -> Receive:
    """Return a `receive` that begins with a message that was received already."""
    messages = [message]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
