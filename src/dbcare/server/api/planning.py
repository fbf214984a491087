"""The planner's route: what experimenting would cost, before any data."""

from __future__ import annotations

import threading
from typing import Any

from fastapi import APIRouter, Depends

from dbcare.errors import InvalidValueError
from dbcare.lab.planner.plan import plan
from dbcare.risk import Risk
from dbcare.server.access.gate import Gate
from dbcare.server.access.roles import Role
from dbcare.server.api.bodies import PlanFor

SMALLEST_COST = 1e-9  # of a pull in units of the loss: what takes a few seconds to simulate

_one_at_a_time = threading.Lock()  # a plan keeps all processors busy


def routes(gate: Gate) -> APIRouter:
    """/v1/plan."""
    router = APIRouter(prefix="/v1", tags=["planning"])

    @router.post("/plan", dependencies=[Depends(gate.needs(Role.VIEWER))])
    def planned(wanted: PlanFor) -> dict[str, Any]:
        """As `dbcare.plan`: a row for each gap and policy, and advice in sentences."""
        costs = Risk.simple_regret(wanted.cost, price=wanted.price, value=wanted.value).costs(wanted.arms)
        if min(costs) < SMALLEST_COST:
            raise InvalidValueError(f"`cost` must be at least {SMALLEST_COST:g} here but got {min(costs):g}.")
        with _one_at_a_time:
            return plan(**wanted.model_dump()).to_dict()

    return router
