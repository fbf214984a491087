"""Routes that are used all the time: described like all others, but answered without the framework's detours.

FastAPI spends longer on finding out what an endpoint wants than a study on its answer; these want a study and a body.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from dbcare.live.stored_study import Study
from dbcare.server.access.gate import Visitor
from dbcare.server.open_studies import OpenStudies

Answer = Callable[[Study, Any, Request], Response]


def quick_route(
    enter: Callable[[Request], Awaitable[Visitor]], catalogue: OpenStudies, body: type[BaseModel], answer: Answer
) -> type[APIRoute]:
    """A kind of route that lets in whom `enter` does, reads a `body`, and gives what `answer` makes of it."""

    async def handle(request: Request) -> Response:
        await enter(request)
        name = request.path_params["name"]
        study = catalogue.opened(name)
        if study is None:
            study = await run_in_threadpool(catalogue.study, name)
        try:
            read = body.model_validate_json(await request.body())
        except ValidationError as wrong:
            listed = wrong.errors(include_url=False, include_context=False)
            raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in listed]) from None
        return await asyncio.get_running_loop().run_in_executor(catalogue.writers, answer, study, read, request)

    class QuickRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            return handle

    return QuickRoute
