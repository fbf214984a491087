"""Errors as problem details (RFC 9457), with the library's own messages."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from dbcare import errors
from dbcare.base.checks import MAX_SHOWN
from dbcare.server.request_trace import HEADER, get_trace

LOG = logging.getLogger("dbcare")
MEDIA_TYPE = "application/problem+json"

RETRY_SECONDS = 1  # for clients to wait where the database is unavailable

MAX_DESCRIBED = 10  # fields of an invalid request
TYPE_NAME = re.compile(r"(constrained-)?(int|float|str)|(list|dict)\[.*\]")  # as pydantic writes it

# The first class that matches an error decides.
STATUS_BY_ERROR: dict[type[errors.DbcareError], HTTPStatus] = {
    errors.StudyNotFoundError: HTTPStatus.NOT_FOUND,
    errors.StudyExistsError: HTTPStatus.CONFLICT,
    errors.StudyMismatchError: HTTPStatus.CONFLICT,
    errors.UnknownPolicyError: HTTPStatus.CONFLICT,
    errors.StorageError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.ProtocolError: HTTPStatus.CONFLICT,
    errors.InvalidValueError: HTTPStatus.UNPROCESSABLE_ENTITY,
}


class RefusalError(Exception):
    """A request that is refused before the library sees it."""

    def __init__(self, status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers


def make_problem(
    status: HTTPStatus, detail: str, error: str | None = None, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return a problem; `error` names the library's exception, so that a client can raise it too.

    While a request is traced, the problem carries the request's id, and the request's log line the reason.
    """
    body: dict[str, Any] = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    if error is not None:
        body["error"] = error
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {"Retry-After": str(RETRY_SECONDS), **(headers or {})}
    if (trace := get_trace()) is not None:
        trace.reason = detail
        body["request_id"] = trace.id
        headers = {**(headers or {}), HEADER: trace.id}
    return JSONResponse(body, status_code=int(status), media_type=MEDIA_TYPE, headers=headers)


def find_status(error: errors.DbcareError) -> HTTPStatus:
    """Return the HTTP status of an error of the library."""
    return next((code for kind, code in STATUS_BY_ERROR.items() if isinstance(error, kind)), HTTPStatus.BAD_REQUEST)


def public_message(error: errors.DbcareError) -> str:
    """Return what clients are told about an error: not where the studies are kept."""
    if isinstance(error, errors.StorageError):
        LOG.error("%s", error)
        return "The database is unavailable; see the server's log. Retry later."
    return str(error)


def report_error(error: errors.DbcareError) -> JSONResponse:
    """Return an error of the library as a problem."""
    return make_problem(find_status(error), public_message(error), type(error).__name__)


def describe_invalid(error: RequestValidationError) -> str:
    """Return what is wrong with a request, in one line: at most MAX_DESCRIBED of its fields."""
    messages: dict[str, list[str]] = {}
    for part in error.errors():
        place = [str(step) for step in part["loc"][1:] or part["loc"]]
        # Where a field takes values of several types, pydantic adds the name of a type.
        field = ".".join([place[0], *(step for step in place[1:] if not TYPE_NAME.fullmatch(step))])
        messages.setdefault(field, []).append(part["msg"])
    described = [
        f"`{field if len(field) <= MAX_SHOWN else f'{field[:MAX_SHOWN]}...'}`: "
        + ", or ".join([first, *(other.removeprefix("Input should be ") for other in others)])
        for field, (first, *others) in list(messages.items())[:MAX_DESCRIBED]
    ]
    if len(messages) > MAX_DESCRIBED:
        described.append(f"and {len(messages) - MAX_DESCRIBED:,} more")
    return "; ".join(described)


def install(app: FastAPI) -> None:
    """Report all errors of the library and of the framework as problems."""

    @app.exception_handler(errors.DbcareError)
    def report_library_error(_request: Request, error: errors.DbcareError) -> JSONResponse:
        return report_error(error)

    @app.exception_handler(RefusalError)
    def report_refusal(_request: Request, refused: RefusalError) -> JSONResponse:
        return make_problem(refused.status, str(refused), errors.AccessError.__name__, refused.headers)

    @app.exception_handler(RequestValidationError)
    def report_invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        return make_problem(HTTPStatus.UNPROCESSABLE_ENTITY, describe_invalid(error), errors.InvalidValueError.__name__)

    @app.exception_handler(HTTPException)
    def report_framework_error(_request: Request, error: HTTPException) -> JSONResponse:
        return make_problem(HTTPStatus(error.status_code), str(error.detail), headers=dict(error.headers or {}))

    @app.exception_handler(Exception)
    def report_failure(_request: Request, _error: Exception) -> JSONResponse:
        return make_problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The server failed; see its log.")
