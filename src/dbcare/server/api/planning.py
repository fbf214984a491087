"""The route of the planner: what an experiment would cost, before any data."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from dbcare.engines.simulate.halt import Halt
from dbcare.planner.plan import plan
from dbcare.server.access.gate import Gate
from dbcare.server.access.roles import Role
from dbcare.server.api.schemas import PlanFor
from dbcare.server.turns import Turns


def make_routes(gate: Gate, long_work: Turns) -> APIRouter:
    """Return the route /v1/plan."""
    router = APIRouter(prefix="/v1", tags=["planning"])

    @router.post("/plan", dependencies=[gate.needs(Role.VIEWER)])
    async def make_plan(wanted: PlanFor, request: Request) -> dict[str, Any]:  # type: ignore[valid-type]  # built from options
        """Plan an experiment as `dbcare.plan` does: a row per gap and policy, and advice in sentences.

        What takes too much work to simulate is listed under `omissions` instead, with the reason.
        """
        options: dict[str, Any] = wanted.model_dump()  # type: ignore[attr-defined]  # as above

        def work(halt: Halt) -> dict[str, Any]:
            with halt.applied():
                return plan(**options).to_dict()

        return await long_work.run_for(request, work)

    return router
