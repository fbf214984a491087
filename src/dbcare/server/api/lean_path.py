"""The lean path: asks and tells of busy programs are answered before the framework sees them.

FastAPI spends longer on finding a route and resolving its parameters than a study needs to respond. Valid requests of
programs with a key are carried out here, in a shared commit; no thread waits for it. Everything else, such as what must
be refused, takes the usual route, so that it is described, checked and reported in one place.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbcare.errors import DbcareError, InvalidValueError, StorageError, StudyNotFoundError, TrialNotFoundError
from dbcare.server.access.gate import Gate, read_key
from dbcare.server.access.roles import Role
from dbcare.server.api import schemas
from dbcare.server.api.schemas import MAX_KEY_LENGTH
from dbcare.server.metrics import Metrics
from dbcare.server.problems import RefusalError, report_error
from dbcare.server.request_trace import trace_trial
from dbcare.server.studies import OpenStudies
from dbcare.studies.assignment import Assignment
from dbcare.studies.record.ask_and_tell import AskOutcome
from dbcare.studies.record.commits import StudyOperation
from dbcare.studies.stored import StoredStudy

PREFIX = "/v1/studies/"
KEY_HEADER = b"idempotency-key"
JSON_TYPE = (b"content-type", b"application/json")
ACTIONS = ("ask", "tell", "assign", "tell-unit")
MAX_SECONDS = 30.0  # for an ask or a tell; then the client hears that the database is unavailable
LOOK_SECONDS = 1.0  # between looks for those that take longer

# What to carry out, and the function that turns its result into the response.
Prepared = tuple[StudyOperation[Any], Callable[[Any], BaseModel | None]]


class Mailbox:
    """Tells the event loop about operations that threads have carried out, waking it once for a whole group.

    Nobody waits for longer than MAX_SECONDS, such as for a database that hangs.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._done: deque[asyncio.Future[None]] = deque()
        self._is_awake = False
        self._expected: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._is_watching = False

    def expect(self) -> asyncio.Future[None]:
        """Return a future to pass to `deliver` later."""
        future = self.loop.create_future()
        while self._expected and self._expected[0][1].done():  # a busy service would keep thousands until the next look
            self._expected.popleft()
        self._expected.append((self.loop.time(), future))
        if not self._is_watching:
            self._watch()
        return future

    def _watch(self) -> None:
        """Let those fail that take too long, now and again as long as anything is expected."""
        now = self.loop.time()
        while self._expected:
            began, future = self._expected[0]
            if not future.done():
                if now - began <= MAX_SECONDS:
                    break
                problem = f"The database has not answered for {MAX_SECONDS:g} seconds; a change may still be stored."
                future.set_exception(StorageError(problem))
            self._expected.popleft()
        self._is_watching = bool(self._expected)
        if self._is_watching:
            self.loop.call_later(LOOK_SECONDS, self._watch)

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
            if action in ACTIONS and (study := await self._find_study(name, Request(scope))) is not None:
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
            operation, finish = self._prepare(study, action, scope, message.get("body", b""))
        except (ValidationError, DbcareError):
            await self.app(scope, _replay(message, receive), send)
            return
        scope["route"], scope["path_params"] = self._routes[action], {"name": study.name}
        mailbox = self._mailbox
        if mailbox is None or mailbox.loop is not asyncio.get_running_loop():
            mailbox = self._mailbox = Mailbox()
        future = mailbox.expect()
        study.commits.submit(operation, self.studies.writers, partial(mailbox.deliver, future))
        try:
            await future
            result = operation.outcome()
        except DbcareError as error:
            if isinstance(error, StudyNotFoundError) and not isinstance(error, TrialNotFoundError):
                self.studies.forget(study.name)  # it may have been re-created
            await report_error(error)(scope, receive, send)
            return
        await _send(finish(result), send)

    def _prepare(self, study: StoredStudy, action: str, scope: Scope, body: bytes) -> Prepared:
        """Return what is to be done, and how to respond to it; raise if the request is invalid."""
        if JSON_TYPE not in scope["headers"]:
            raise InvalidValueError("`Content-Type` must be application/json here.")
        if action == "tell":
            answer = schemas.Answer.model_validate_json(body)
            trace_trial(answer.trial)
            finish_tell = partial(self._finish_tell, study.name)
            return study.tell_later(answer.identify(), answer.reward, price=answer.price), finish_tell
        if action == "tell-unit":
            outcome = schemas.UnitOutcome.model_validate_json(body)
            if outcome.reward is None or not outcome.charged or outcome.reason is not None:
                raise InvalidValueError("Only rewards take the lean path.")
            finish_tell = partial(self._finish_tell, study.name)
            return study.tell_unit_later(outcome.unit, outcome.reward, price=outcome.price), finish_tell
        if action == "assign":
            unit = schemas.Assign.model_validate_json(body)
            request = study.check_assign(**dict(unit))
            return study.assign_later(request, unit.fallback, unit.within), partial(self._finish_assign, study.name)
        wanted = schemas.Ask.model_validate_json(body)
        key = next((value.decode("latin-1") for name, value in scope["headers"] if name == KEY_HEADER), None)
        if key is not None and not 0 < len(key) <= MAX_KEY_LENGTH:
            raise InvalidValueError(f"`{KEY_HEADER.decode()}` must have 1 to {MAX_KEY_LENGTH} characters.")
        return study.ask_later(study.check_ask(**dict(wanted), key=key)), partial(self._finish_ask, study.name)

    def _finish_ask(self, study: str, result: AskOutcome) -> BaseModel:
        self.metrics.count_ask(study, result)
        return schemas.Asked.from_result(result)

    def _finish_assign(self, study: str, result: tuple[Assignment, AskOutcome]) -> BaseModel:
        found, outcome = result
        self.metrics.count_ask(study, outcome)
        return schemas.Assigned.from_assignment(found)

    def _finish_tell(self, study: str, recorded: bool | None) -> BaseModel | None:
        self.metrics.count_told(study, int(recorded is not False))
        return None if recorded is None else schemas.Recorded(recorded=recorded)


async def _send(content: BaseModel | None, send: Send) -> None:
    status, body, headers = HTTPStatus.NO_CONTENT, b"", []
    if content is not None:
        status, body = HTTPStatus.OK, content.model_dump_json().encode()
        headers = [JSON_TYPE, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _replay(message: Message, receive: Receive) -> Receive:
    """Return a `receive` that begins with a message that was received already."""
    messages = [message]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
