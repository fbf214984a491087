"""The route of the planner: what an experiment would cost, before any data."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from anyio import CancelScope, CapacityLimiter, to_thread
from fastapi import APIRouter, Request
from starlette.types import Receive

from dbcare.engines.work_budget import WorkBudget, WorkCancelledError
from dbcare.planner.plan import plan
from dbcare.server.access.gate import Gate
from dbcare.server.access.roles import Role
from dbcare.server.api.option_models import PlanFor
from dbcare.server.problems import RefusalError

MAX_WORK = 2e8  # per plan: about 5 seconds on two CPUs
MAX_QUEUED_PLANS = 3
RETRY_SECONDS = 5
CLIENT_LEFT = HTTPStatus.REQUEST_TIMEOUT  # for the metrics; nobody receives it


CancellableWork = Callable[[Callable[[], bool]], dict[str, Any]]  # takes a function that says whether to cancel


def make_routes(gate: Gate) -> APIRouter:
    """Return the route /v1/plan."""
    router = APIRouter(prefix="/v1", tags=["planning"])
    one_at_a_time = CapacityLimiter(1)  # a plan uses all CPUs; it must not take up a thread of the other routes

    @router.post("/plan", dependencies=[gate.needs(Role.VIEWER)])
    async def make_plan(wanted: PlanFor, request: Request) -> dict[str, Any]:  # type: ignore[valid-type]  # built from options
        """Plan an experiment as `dbcare.plan` does: a row per gap and policy, and advice in sentences.

        What takes too much work to simulate is listed under `omissions` instead, with the reason.
        """
        options: dict[str, Any] = wanted.model_dump()  # type: ignore[attr-defined]  # as above
        if one_at_a_time.statistics().tasks_waiting >= MAX_QUEUED_PLANS:
            raise RefusalError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Too many plans are queued; retry in {RETRY_SECONDS} seconds.",
                {"Retry-After": str(RETRY_SECONDS)},
            )

        def work(is_cancelled: Callable[[], bool]) -> dict[str, Any]:
            return plan(**options, budget=WorkBudget(MAX_WORK, is_cancelled)).to_dict()

        return await run_for_client(request.receive, work, one_at_a_time)

    return router


async def run_for_client(receive: Receive, work: CancellableWork, limiter: CapacityLimiter) -> dict[str, Any]:
    """Run `work` in a thread of the limiter until it is done or the client has disconnected.

    `work` takes a function that returns whether the client has disconnected, and raises WorkCancelledError then. Until
    a thread is free, a client that disconnects gives up its place.
    """
    left = threading.Event()

    async def wait_for_disconnect() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()
        scope.cancel()

    with CancelScope() as scope:
        watcher = asyncio.create_task(wait_for_disconnect())
        try:
            # The thread ends soon after the client has left; until then it keeps its place.
            return await to_thread.run_sync(work, left.is_set, limiter=limiter)
        except WorkCancelledError:
            pass
        finally:
            left.set()  # also if the server itself cancels the request
            watcher.cancel()
    raise RefusalError(CLIENT_LEFT, "The client disconnected.")
