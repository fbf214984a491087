"""Requests with options that are defined once (`dbcare.options`): a new study, and a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import WithJsonSchema

from dbcare import validation
from dbcare.live.options import MAX_ARMS_PER_REQUEST, StudyOptions
from dbcare.live.studies import create_study
from dbcare.options import NamedOption, Option, OptionKind, named_options
from dbcare.planner.options import PlanOptions
from dbcare.planner.plan import plan
from dbcare.server.api.schemas import Name, Number, strict

MAX_PLANNED_ARMS = 32


def make_model(
    title: str, doc: str, options: list[NamedOption], config: ConfigDict, fields: dict[str, tuple[Any, Any]]
) -> type[BaseModel]:
    """Return a model with `fields`, and one field per option."""
    made = {named.name: (_field_type(named), named.default) for named in options}
    return create_model(title, __config__=config, __doc__=doc, **fields, **made)  # type: ignore[call-overload,no-any-return]


def _field_type(named: NamedOption) -> Any:
    kind = _base_type(named.name, named.option)
    return Annotated[kind | None if named.default is None else kind, Field(description=named.option.help)]


def _base_type(name: str, option: Option) -> Any:
    if option.choices is not None:
        return _choice_type(name, option.choices)
    types: dict[OptionKind, Any] = {
        OptionKind.NUMBER: Number,
        # As a bound that is exact in floating point too, which JSON schemas are read with.
        OptionKind.WHOLE: Annotated[
            int, Field(ge=option.minimum, lt=None if option.maximum is None else option.maximum + 1)
        ],
        OptionKind.TEXT: Annotated[str, Field(min_length=1, max_length=option.longest)],
        OptionKind.FLAG: bool,
        OptionKind.PER_ARM: Number | list[Number],
        OptionKind.INTERVAL: Annotated[list[Number], Field(min_length=2, max_length=2)],
        OptionKind.NUMBERS: Annotated[list[Number], Field(min_length=1, max_length=option.longest)],
    }
    return types[option.kind]


def _choice_type(name: str, choices: Callable[[], Any]) -> Any:
    """Return a text that is one of the choices, looked up for every request: policies may be registered meanwhile."""

    def check(value: str) -> str:
        return validation.one_of(name, value, choices())

    return Annotated[str, AfterValidator(check), WithJsonSchema({"type": "string", "enum": list(map(str, choices()))})]


NewStudy = make_model(
    "NewStudy",
    "As `dbcare.create_study`: a price and a value, or a cost; sigma, bounds or binary.",
    named_options(StudyOptions, create_study),
    strict(name="ads", arms=["A", "B", "C"], price=0.4, value=20000, sigma=0.5),
    {
        "name": (Name, ...),
        "arms": (Annotated[list[Name], Field(min_length=2, max_length=MAX_ARMS_PER_REQUEST)], ...),
    },
)

PlanFor = make_model(
    "PlanFor",
    "As `dbcare.plan`: what an experiment would cost, before any data.",
    named_options(PlanOptions, plan),
    strict(arms=3, price=0.4, value=20000, sigma=0.5),
    {"arms": (Annotated[int, Field(ge=2, le=MAX_PLANNED_ARMS)], ...)},
)
