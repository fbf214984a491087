"""The planner's route: what experimenting would cost, before any data."""

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
from dbcare.server.api.schemas import PlanFor
from dbcare.server.problems import RefusalError

SMALLEST_COST = 1e-7  # of a pull in units of the loss: less would take long to simulate
MOST_WAITING = 3


def routes(gate: Gate) -> APIRouter:
    """/v1/plan."""
    router = APIRouter(prefix="/v1", tags=["planning"])
    one = CapacityLimiter(1)  # a plan keeps all processors busy, and must not take a thread from others

    @router.post("/plan", dependencies=[Depends(gate.needs(Role.VIEWER))])
    async def planned(wanted: PlanFor) -> dict[str, Any]:
        """As `dbcare.plan`: a row for each gap and policy, and advice in sentences."""
        costs = Risk.simple_regret(wanted.cost, price=wanted.price, value=wanted.value).costs(wanted.arms)
        if min(costs) < SMALLEST_COST:
            raise InvalidValueError(f"`cost` must be at least {SMALLEST_COST:g} here but got {min(costs):g}.")
        if one.statistics().tasks_waiting >= MOST_WAITING:
            raise RefusalError(HTTPStatus.TOO_MANY_REQUESTS, "Plans must wait for each other.", {"Retry-After": "5"})
        return await to_thread.run_sync(lambda: plan(**wanted.model_dump()).to_dict(), limiter=one)

    return router
