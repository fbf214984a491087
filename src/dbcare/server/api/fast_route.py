"""A route for endpoints that are called all the time: described by FastAPI, but called without its overhead.

FastAPI spends longer on resolving an endpoint's parameters than a study needs to respond. These endpoints take a study,
a body and, some of them, an idempotency key, in this order, and are called with just that.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from dbcare.server.access.gate import Visitor
from dbcare.server.open_studies import OpenStudies

IDEMPOTENCY_KEY = "Idempotency-Key"


def make_fast_route(enter: Callable[[Request], Awaitable[Visitor]], studies: OpenStudies) -> type[APIRoute]:
    """Return a class of routes that admit visitors as `enter` does, and run their endpoint in a thread for writing."""

    class FastRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            """Return a handler that calls the endpoint directly."""
            endpoint: Callable[..., BaseModel | None] = self.endpoint
            assert self.body_field is not None
            body_model: type[BaseModel] = self.body_field.field_info.annotation  # type: ignore[assignment]  # always a model
            takes_key = len(inspect.signature(endpoint).parameters) > 2

            async def handle(request: Request) -> Response:
                await enter(request)
                name = request.path_params["name"]
                study = studies.find(name)
                if study is None:
                    study = await run_in_threadpool(studies.get, name)
                body = _read_body(body_model, await request.body())
                key = (request.headers.get(IDEMPOTENCY_KEY),) if takes_key else ()
                loop = asyncio.get_running_loop()
                result = await loop.run_in_executor(studies.writers, endpoint, study, body, *key)
                if result is None:
                    return Response(status_code=HTTPStatus.NO_CONTENT)
                return Response(result.model_dump_json(), media_type="application/json")

            return handle

    return FastRoute


def _read_body(model: type[BaseModel], raw: bytes) -> BaseModel:
    try:
        return model.model_validate_json(raw)
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False, include_context=False)
        raise RequestValidationError([{**error, "loc": ("body", *error["loc"])} for error in errors]) from None
