"""Requests built from option definitions (`dbcare.base.options`): a new study, and a plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WrapValidator, create_model
from pydantic.json_schema import WithJsonSchema
from pydantic_core import PydanticKnownError

from dbcare.base.options import NamedOption, Option, OptionKind, named_options
from dbcare.planner.options import PlanOptions
from dbcare.planner.plan import plan
from dbcare.server.api.schemas import Name, Number, strict
from dbcare.studies.api import create_study
from dbcare.studies.options import MAX_ARMS, StudyOptions

MAX_PLANNED_ARMS = 32
MAX_EXACT_INTEGER = 2**53  # in floating point
Weight = Annotated[
    Number,
    WrapValidator(lambda weight, check: math.inf if weight == "inf" else check(weight)),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "const": "inf"}]}),
]
# One number for all arms: of several, the library says what to do instead.
OneForAllArms = Annotated[
    Number, WrapValidator(lambda value, check: value if isinstance(value, list | dict) else check(value))
]
ONE_FOR_ALL_ARMS = ("value",)


def make_model(
    title: str, doc: str, options: list[NamedOption], config: ConfigDict, fields: dict[str, tuple[Any, Any]]
) -> type[BaseModel]:
    """Return a model with `fields`, and one field per option."""
    option_fields = {named.name: (_field_type(named), named.default) for named in options}
    return create_model(title, __config__=config, __doc__=doc, **fields, **option_fields)  # type: ignore[call-overload,no-any-return]  # the fields are known only here


def _field_type(named: NamedOption) -> Any:
    kind = OneForAllArms if named.name in ONE_FOR_ALL_ARMS else _base_type(named.option)
    return Annotated[kind | None if named.default is None else kind, Field(description=named.option.help)]


def _base_type(option: Option) -> Any:
    if option.choices is not None:
        return _choice_type(option.choices)
    types: dict[OptionKind, Any] = {
        OptionKind.NUMBER: Number,
        OptionKind.WHOLE: Annotated[int, Field(ge=option.minimum, **_upper_bound(option.maximum))],
        OptionKind.TEXT: Annotated[str, Field(min_length=1, max_length=option.longest)],
        OptionKind.FLAG: bool,
        OptionKind.PER_ARM: Number | list[Number] | dict[str, Number],
        OptionKind.WEIGHT: Weight,
        OptionKind.INTERVAL: Annotated[list[Number], Field(min_length=2, max_length=2)],
        OptionKind.NUMBERS: Annotated[list[Number], Field(min_length=1, max_length=option.longest)],
        OptionKind.TRIALS: Annotated[int, Field(ge=option.minimum, **_upper_bound(option.maximum))]
        | Annotated[str, Field(min_length=1, max_length=option.longest)],
        OptionKind.BLOCKS: Annotated[int, Field(ge=option.minimum, **_upper_bound(option.maximum))]
        | Annotated[list[Name], Field(min_length=option.minimum, max_length=option.longest)],
        OptionKind.NAMES: Annotated[list[Name], Field(min_length=1, max_length=option.longest)],
    }
    return types[option.kind]


def _upper_bound(maximum: int | None) -> dict[str, Any]:
    """Return a bound that stays exact in a JSON schema, whose numbers are read as floating point."""
    return {"le": maximum} if maximum is None or maximum <= MAX_EXACT_INTEGER else {"lt": maximum + 1}


def _choice_type(choices: Callable[[], Sequence[str]]) -> Any:
    """Return the type of a choice. Choices are listed for every request, since policies may be registered later."""

    def check(value: str) -> str:
        if value not in choices():
            raise PydanticKnownError("literal_error", {"expected": f"one of {', '.join(map(repr, choices()))}"})
        return value

    return Annotated[str, AfterValidator(check), WithJsonSchema({"type": "string", "enum": list(choices())})]


NewStudy = make_model(
    "NewStudy",
    "A new study, as in `dbcare.create_study`: a price and a value, or a cost; the spread of the rewards "
    "as sigma, baseline, bounds or binary, or nothing to learn it.",
    named_options(StudyOptions, create_study),
    strict(name="ads", arms=["A", "B", "C"], price=0.4, value=20000, sigma=0.5),
    {
        "name": (Name, ...),
        "arms": (Annotated[list[Name], Field(min_length=2, max_length=MAX_ARMS)], ...),
    },
)

PlanFor = make_model(
    "PlanFor",
    "An experiment to plan, as in `dbcare.plan`.",
    named_options(PlanOptions, plan),
    strict(arms=3, price=0.4, value=20000, sigma=0.5),
    {
        "arms": (
            Annotated[int, Field(ge=2, le=MAX_PLANNED_ARMS)]
            | Annotated[list[Name], Field(min_length=2, max_length=MAX_PLANNED_ARMS)],
            ...,
        )
    },
)
