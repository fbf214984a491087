"""The form that makes a study, with the plan beside it."""

import re
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ValidationError

from dbcare.errors import DbcareError, InvalidValueError, StudyExistsError
from dbcare.live.settings import POLICIES
from dbcare.live.studies import create_in
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.api.schemas import NewStudy
from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages.rendering import Pages
from dbcare.server.pages.study import address_of
from dbcare.server.problems import status_of

Typed = Annotated[str, Form(max_length=300_000)]
FIELD = re.compile(r"`(\w+)")  # what an error is about comes first in it
ALIASES = {"bounds": "low", "cost": "price", "binary": "rewards"}


class StudyForm(BaseModel):
    """What was typed, as it was typed."""

    name: Typed = ""
    arms: Typed = ""
    unit: Typed = "USD"
    price: Typed = ""
    value: Typed = ""
    rewards: Typed = "binary"  # or bounds, sigma, unknown
    baseline: Typed = "0.1"  # for the plan alone
    low: Typed = ""
    high: Typed = ""
    sigma: Typed = ""
    risk: Typed = "simple_regret"
    direction: Typed = "maximize"
    policy: Typed = POLICIES[0]
    max_spend: Typed = ""
    max_ahead: Typed = ""
    timeout_reward: Typed = ""
    seed: Typed = "0"

    def meant(self) -> dict[str, Any]:
        """As `create_study` takes it; an error if it cannot be meant."""
        prices = [_number("price", each) for each in self.price.replace(";", " ").split()]
        given: dict[str, Any] = {
            "name": self.name.strip(),
            "arms": [line.strip() for line in self.arms.splitlines() if line.strip()],
            "unit": self.unit.strip(),
            "price": prices[0] if len(prices) == 1 else prices or None,
            "value": _number("value", self.value),
            "binary": self.rewards == "binary",
            "bounds": [_required("low", self.low), _required("high", self.high)] if self.rewards == "bounds" else None,
            "sigma": _required("sigma", self.sigma) if self.rewards == "sigma" else None,
            "risk": self.risk,
            "direction": self.direction,
            "policy": self.policy,
            "max_spend": _number("max_spend", self.max_spend),
            "max_ahead": _number("max_ahead", self.max_ahead),
            "timeout_reward": _number("timeout_reward", self.timeout_reward),
            "seed": _required("seed", self.seed),
        }
        try:
            return NewStudy.model_validate(given).model_dump()
        except ValidationError as invalid:
            first = invalid.errors()[0]
            raise InvalidValueError(f"`{first['loc'][0]}`: {first['msg']}.") from None


def _number(name: str, typed: str) -> float | None:
    if not typed.strip():
        return None
    try:
        return float(typed)
    except ValueError:
        raise InvalidValueError(f"`{name}` must be a number such as 0.40 but got {typed!r}.") from None


def _required(name: str, typed: str) -> float:
    found = _number(name, typed)
    if found is None:
        raise InvalidValueError(f"`{name}` must be given here.")
    return found


def routes(pages: Pages, catalogue: OpenStudies) -> APIRouter:
    """/new."""
    router = pages.router()
    Admin = Annotated[Visitor, Depends(pages.needs(Role.ADMIN))]  # noqa: N806  # a type

    def shown(visitor: Visitor, typed: StudyForm, error: DbcareError | None = None) -> Response:
        field = FIELD.match(str(error))
        at = field[1] if field else "name" if isinstance(error, StudyExistsError) else ""
        return pages.show(
            "new.html",
            visitor,
            HTTPStatus.OK if error is None else status_of(error),
            typed=typed,
            policies=[(each, each) for each in POLICIES],
            error=None if error is None else str(error),
            at=ALIASES.get(at, at),
        )

    @router.get("/new")
    def ask(visitor: Admin) -> Response:
        return shown(visitor, StudyForm())

    @router.post("/new")
    def create(visitor: Admin, typed: Annotated[StudyForm, Form()]) -> Response:
        try:
            meant = typed.meant()
            create_in(catalogue.store, load_if_exists=False, **meant)
        except DbcareError as error:
            return shown(visitor, typed, error)
        return RedirectResponse(address_of(meant["name"]), HTTPStatus.SEE_OTHER)

    return router
