"""The page that creates a study: a form built from the study options, with a plan next to it."""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ValidationError, create_model

from dbcare.base import checks
from dbcare.base.options import (
    NamedOption,
    OptionKind,
    find_name,
    named_options,
    parse_blocks,
    parse_number,
    parse_per_arm,
    translate_names,
)
from dbcare.errors import DbcareError, InvalidValueError, StudyExistsError
from dbcare.planner.setting import default_names, find_strategy
from dbcare.policies.registry import DEFAULT_POLICY
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.api.schemas import MAX_PLANNED_ARMS, NewStudy
from dbcare.server.pages.rendering import Pages
from dbcare.server.pages.study import study_url
from dbcare.server.problems import find_status
from dbcare.server.request_log import STUDY
from dbcare.server.studies import OpenStudies
from dbcare.studies.api import create_in, create_study
from dbcare.studies.options import StudyOptions
from dbcare.studies.settings import Settings

Typed = Annotated[str, Form(max_length=300_000)]

OPTIONS = {named.name: named for named in named_options(StudyOptions, create_study)}
# Ways to state the spread of the rewards.
SPREADS = {
    "baseline": "Rates: 0 or 1",
    "binary": "0 or 1, rate unknown",
    "sigma": "Standard deviation",
    "bounds": "Range",
    "unknown": "Unknown: learn it",
}
OWN_FIELDS = {"name": "", "arms": "", "rewards": "baseline", "low": "", "high": ""}  # fields that are not options
SPREAD_OPTIONS = ("sigma", "baseline", "bounds", "binary")
WITHOUT_FIELD = ("cost", "bounds", "binary")
FIELD_OF_OPTION = {"bounds": "low", "cost": "price", "binary": "rewards"}
LAID_OUT = ("price", "value", "currency", "sigma", "baseline", "direction", "risk")  # by the template
REQUIRED = ("price", "value")
FLAGS = {"true": True, "false": False}
LISTS = (OptionKind.INTERVAL, OptionKind.NUMBERS)
LABELS = {
    **{name: named.option.label or name for name, named in OPTIONS.items()},
    "name": "Name",
    "arms": "Arms",
    "low": "Lowest reward",
    "high": "Highest reward",
    "rewards": "What rewards look like",
    "bounds": "Range",
    "cost": "Price of a trial divided by Value",
    "per_day": "Trials per day",  # of the plan only
}


def _as_typed(named: NamedOption) -> str:
    if named.option.kind is OptionKind.FLAG:
        return str(named.default).lower()
    if isinstance(named.default, float):
        return f"{named.default:g}"
    return "" if named.default is None else str(named.default)


StudyForm: type[BaseModel] = create_model(  # with everything as it was typed
    "StudyForm",
    **{name: (Typed, default) for name, default in OWN_FIELDS.items()},  # type: ignore[call-overload]  # names known at run time
    **{name: (Typed, _as_typed(named)) for name, named in OPTIONS.items() if name not in WITHOUT_FIELD},
)


def parse_form(form: BaseModel) -> dict[str, Any]:
    """Return the options of `create_study` that were typed into the form."""
    typed: dict[str, str] = {name: text.strip() for name, text in form.model_dump().items()}
    options: dict[str, Any] = {
        name: parse_field(named, typed[name])
        for name, named in OPTIONS.items()
        if name not in (*WITHOUT_FIELD, *SPREAD_OPTIONS)
    }
    options["name"] = typed["name"]
    options["arms"] = [line.strip() for line in typed["arms"].splitlines() if line.strip()]
    try:
        return dict(NewStudy.model_validate(options | parse_spread(typed)))
    except ValidationError as invalid:
        first = invalid.errors()[0]
        raise InvalidValueError(f"`{first['loc'][0]}`: {first['msg']}.") from None


def parse_spread(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that state the spread of the rewards in the chosen way; other fields do not matter."""
    way = checks.one_of("rewards", typed["rewards"], SPREADS)
    if way == "bounds":
        sigma = parse_number("sigma", typed["sigma"]) if typed["sigma"] else None
        return {"bounds": [_require_number(end, typed[end]) for end in ("low", "high")], "sigma": sigma}
    if way in ("baseline", "sigma"):
        return {way: _require_number(way, typed[way])}
    return {"binary": way == "binary"}


def parse_field(named: NamedOption, text: str) -> Any:
    """Return the value of an option that was typed; `NewStudy` checks it."""
    kind = named.option.kind
    if not text and named.name not in REQUIRED:
        return named.default
    if kind in (OptionKind.TEXT, OptionKind.CHOICE):
        return text
    if kind is OptionKind.FLAG:
        return FLAGS.get(text, text)
    if kind is OptionKind.TRIALS and text[-1:].isalpha():
        return text
    if kind is OptionKind.BLOCKS:
        return parse_blocks(named.name, text)
    if kind in (OptionKind.WHOLE, OptionKind.WEIGHT, OptionKind.TRIALS):
        number = _require_number(named.name, text)
        return "inf" if math.isinf(number) and number > 0.0 else number
    parts = text.replace(";", " ").split()
    if not parts:
        raise InvalidValueError(f"`{named.name}` is required here.")
    amounts = parse_per_arm(named.name, text, parts)
    return [amounts] if isinstance(amounts, float) and kind in LISTS else amounts


def _require_number(name: str, text: str) -> float:
    if not text:
        raise InvalidValueError(f"`{name}` is required here.")
    return parse_number(name, text)


def make_routes(pages: Pages, studies: OpenStudies) -> APIRouter:
    """Return the page /new."""
    router = pages.router()
    Admin = Annotated[Visitor, Depends(pages.needs(Role.ADMIN))]  # noqa: N806  # a type

    def render(visitor: Visitor, form: BaseModel, error: DbcareError | None = None) -> Response:
        message = "" if error is None else str(error)
        wrong = find_name(message, LABELS) or ("name" if isinstance(error, StudyExistsError) else "")
        return pages.render(
            "new.html",
            visitor,
            HTTPStatus.OK if error is None else find_status(error),
            typed=form.model_dump(),
            options=OPTIONS,
            required=REQUIRED,
            spreads=SPREADS.items(),
            labels=LABELS,
            more=[named for name, named in OPTIONS.items() if name not in (*WITHOUT_FIELD, *LAID_OUT)],
            plan_labels=[(name, find_strategy(name).label) for name in default_names()],
            plan_policy=DEFAULT_POLICY,
            max_planned_arms=MAX_PLANNED_ARMS,
            error=translate_names(message, LABELS, mark=""),
            wrong_field=FIELD_OF_OPTION.get(wrong, wrong),
        )

    @router.get("/new")
    def show_form(visitor: Admin) -> Response:
        return render(visitor, StudyForm())

    @router.post("/new")
    def create(request: Request, visitor: Admin, form: Annotated[StudyForm, Form()]) -> Response:  # type: ignore[valid-type]  # built from options
        try:
            options = parse_form(form)
            request.scope[STUDY] = name = options.pop("name")
            create_in(studies.store, name, Settings.from_options(**options), by=visitor.name)
        except DbcareError as error:
            return render(visitor, form, error)
        return RedirectResponse(study_url(name), HTTPStatus.SEE_OTHER)

    return router
