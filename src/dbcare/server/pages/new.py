"""The page that creates a study: a form built from the study options, with a plan next to it."""

import re
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ValidationError, create_model

from dbcare.errors import DbcareError, InvalidValueError, StudyExistsError
from dbcare.live.options import StudyOptions
from dbcare.live.settings import Settings
from dbcare.live.studies import create_in, create_study
from dbcare.options import NamedOption, OptionKind, named_options
from dbcare.planner.strategies import default_names, find_strategy
from dbcare.policies.registry import DEFAULT_POLICY
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.api.option_models import MAX_PLANNED_ARMS, NewStudy
from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages.rendering import Pages
from dbcare.server.pages.study import study_url
from dbcare.server.problems import find_status
from dbcare.server.request_log import STUDY

Typed = Annotated[str, Form(max_length=300_000)]
FIELD = re.compile(r"`(\w+)")  # an error begins with the field that it is about
FIELD_OF_OPTION = {"bounds": "low", "cost": "price", "binary": "rewards"}  # for options without a field

OPTIONS = {named.name: named for named in named_options(StudyOptions, create_study)}
# Fields that are not options: `rewards` stands for binary, bounds and sigma; the baseline is for the plan only.
OWN_FIELDS = {"name": "", "arms": "", "rewards": "binary", "baseline": "0.1", "low": "", "high": ""}
WITHOUT_FIELD = ("cost", "bounds", "binary")
LAID_OUT = ("price", "value", "unit", "sigma", "direction", "risk")  # by the template; the others follow
REQUIRED = ("price", "value")
FLAGS = {"true": True, "false": False}


def _as_typed(named: NamedOption) -> str:
    if named.option.kind is OptionKind.FLAG:
        return str(named.default).lower()
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
        if name not in (*WITHOUT_FIELD, "sigma")
    }
    options["name"] = typed["name"]
    options["arms"] = [line.strip() for line in typed["arms"].splitlines() if line.strip()]
    rewards = typed["rewards"]
    options["binary"] = rewards == "binary"
    if rewards == "bounds":
        options["bounds"] = [_require_number(end, typed[end]) for end in ("low", "high")]
    if rewards == "sigma":
        options["sigma"] = _require_number("sigma", typed["sigma"])
    try:
        return NewStudy.model_validate(options).model_dump()
    except ValidationError as invalid:
        first = invalid.errors()[0]
        raise InvalidValueError(f"`{first['loc'][0]}`: {first['msg']}.") from None


def parse_field(named: NamedOption, text: str) -> Any:
    """Return the value of an option that was typed; `NewStudy` checks it."""
    kind = named.option.kind
    if not text and named.default is None and named.name not in REQUIRED:
        return None
    if kind in (OptionKind.TEXT, OptionKind.CHOICE):
        return text
    if kind is OptionKind.FLAG:
        return FLAGS.get(text, text)
    if kind in (OptionKind.NUMBER, OptionKind.WHOLE):
        return _require_number(named.name, text)
    numbers = [_require_number(named.name, part) for part in text.replace(";", " ").split() or [""]]
    return numbers[0] if kind is OptionKind.PER_ARM and len(numbers) == 1 else numbers


def _require_number(name: str, text: str) -> float:
    if not text:
        raise InvalidValueError(f"`{name}` is required here.")
    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(f"`{name}` must be a number such as 0.40 but got {text!r}.") from None


def make_routes(pages: Pages, studies: OpenStudies) -> APIRouter:
    """Return the page /new."""
    router = pages.router()
    Admin = Annotated[Visitor, Depends(pages.needs(Role.ADMIN))]  # noqa: N806  # a type

    def render(visitor: Visitor, form: BaseModel, error: DbcareError | None = None) -> Response:
        field = FIELD.match(str(error))
        wrong = field[1] if field else "name" if isinstance(error, StudyExistsError) else ""
        return pages.render(
            "new.html",
            visitor,
            HTTPStatus.OK if error is None else find_status(error),
            typed=form.model_dump(),
            options=OPTIONS,
            required=REQUIRED,
            more=[named for name, named in OPTIONS.items() if name not in (*WITHOUT_FIELD, *LAID_OUT)],
            plan_labels=[(name, find_strategy(name).label) for name in default_names()],
            plan_policy=DEFAULT_POLICY,
            max_planned_arms=MAX_PLANNED_ARMS,
            error=None if error is None else str(error),
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
