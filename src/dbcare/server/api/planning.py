"""The route of the planner: what an experiment would cost, before any data."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends

from dbcare.errors import InvalidValueError
from dbcare.planner.plan import plan
from dbcare.risk import Risk
from dbcare.server.access.gate import Gate
from dbcare.server.access.roles import Role
from dbcare.server.api.option_models import PlanFor
from dbcare.server.problems import RefusalError

MIN_COST = 1e-7  # of a pull, in units of the loss; a smaller one takes long to simulate
MAX_QUEUED_PLANS = 3
RETRY_SECONDS = 5


def make_routes(gate: Gate) -> APIRouter:
    """Return the route /v1/plan."""
    router = APIRouter(prefix="/v1", tags=["planning"])
    one_at_a_time = CapacityLimiter(1)  # a plan uses all CPUs; it must not take up a thread of the other routes

    @router.post("/plan", dependencies=[Depends(gate.needs(Role.VIEWER))])
    async def make_plan(wanted: PlanFor) -> dict[str, Any]:  # type: ignore[valid-type]  # built from options
        """Plan an experiment as `dbcare.plan` does: a row per gap and policy, and advice in sentences."""
        options: dict[str, Any] = wanted.model_dump()  # type: ignore[attr-defined]  # as above
        price = Risk.simple_regret(options["cost"], price=options["price"], value=options["value"])
        if (lowest := min(price.costs(options["arms"]))) < MIN_COST:
            raise InvalidValueError(f"`cost` must be at least {MIN_COST:g} here but got {lowest:g}.")
        if one_at_a_time.statistics().tasks_waiting >= MAX_QUEUED_PLANS:
            raise RefusalError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Too many plans are queued; retry in {RETRY_SECONDS} seconds.",
                {"Retry-After": str(RETRY_SECONDS)},
            )
        return await to_thread.run_sync(lambda: plan(**options).to_dict(), limiter=one_at_a_time)

    return router
