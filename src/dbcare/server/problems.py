"""Errors as problem details (RFC 9457), in the library's own words."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from dbcare import errors

LOG = logging.getLogger("dbcare")
MEDIA_TYPE = "application/problem+json"

# The first that an error is decides.
STATUS: dict[type[errors.DbcareError], HTTPStatus] = {
    errors.StudyNotFoundError: HTTPStatus.NOT_FOUND,
    errors.StudyExistsError: HTTPStatus.CONFLICT,
    errors.StudyMismatchError: HTTPStatus.CONFLICT,
    errors.StorageError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.ProtocolError: HTTPStatus.CONFLICT,
    errors.InvalidValueError: HTTPStatus.UNPROCESSABLE_ENTITY,
}


class RefusalError(Exception):
    """A request that is turned down before the library sees it."""

    def __init__(self, status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers


def problem(
    status: HTTPStatus, detail: str, error: str | None = None, headers: dict[str, str] | None = None
) -> JSONResponse:
    """`error` is the name of the library's exception, so that a client can raise the same."""
    body: dict[str, Any] = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    if error is not None:
        body["error"] = error
    return JSONResponse(body, status_code=int(status), media_type=MEDIA_TYPE, headers=headers)


def status_of(error: errors.DbcareError) -> HTTPStatus:
    """The status that an error of the library is answered with."""
    return next((code for kind, code in STATUS.items() if isinstance(error, kind)), HTTPStatus.BAD_REQUEST)


def words_of(error: errors.DbcareError) -> str:
    """What is said of an error; where the studies are kept is nobody's business."""
    if isinstance(error, errors.StorageError):
        LOG.error("%s", error)
        return "The database does not do its part; the server's log says more. Try again later."
    return str(error)


def of_the_library(error: errors.DbcareError) -> JSONResponse:
    """The problem that an error of the library is."""
    return problem(status_of(error), words_of(error), type(error).__name__)


def said_of(error: RequestValidationError) -> str:
    """What is wrong with a body, in a line."""
    return "; ".join(
        f"`{'.'.join(map(str, each['loc'][1:] or each['loc']))}`: {each['msg']}" for each in error.errors()
    )


def install(app: FastAPI) -> None:
    """Answer all errors of the library and of the framework in this way."""

    @app.exception_handler(errors.DbcareError)
    def reported(_request: Request, error: errors.DbcareError) -> JSONResponse:
        return of_the_library(error)

    @app.exception_handler(RefusalError)
    def of_the_gate(_request: Request, refused: RefusalError) -> JSONResponse:
        return problem(refused.status, str(refused), errors.AccessError.__name__, refused.headers)

    @app.exception_handler(RequestValidationError)
    def of_the_body(_request: Request, error: RequestValidationError) -> JSONResponse:
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, said_of(error), errors.InvalidValueError.__name__)

    @app.exception_handler(HTTPException)
    def of_the_framework(_request: Request, error: HTTPException) -> JSONResponse:
        return problem(HTTPStatus(error.status_code), str(error.detail), headers=dict(error.headers or {}))

    @app.exception_handler(Exception)
    def unforeseen(_request: Request, _error: Exception) -> JSONResponse:
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The server failed; its log says why.")
