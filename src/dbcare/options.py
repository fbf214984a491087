"""Options shared by several interfaces, each defined once in a typed dictionary.

A function such as `create_study` spells its options out with their defaults. A `TypedDict` gives each of them a type
for callers that pass them on (`Unpack`), and an `Option`, from which the command line, the HTTP API and the form on
the dashboard are made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, get_type_hints


class OptionKind(Enum):
    """What a value looks like."""

    NUMBER = auto()
    WHOLE = auto()
    TEXT = auto()
    FLAG = auto()
    CHOICE = auto()
    PER_ARM = auto()  # one number for all arms, or one per arm
    WEIGHT = auto()  # a positive number, or infinity
    INTERVAL = auto()  # two numbers, the lower one first
    NUMBERS = auto()  # one or more numbers
    NAMES = auto()  # one or more texts
    BLOCKS = auto()  # a whole number, or names
    TRIALS = auto()  # a whole number of trials, or a duration such as 14d


@dataclass(frozen=True)
class Option:
    """How the command line, the API and the form present one option.

    `help` is a sentence for the command line and the description of the API. `choices` lists the texts that are valid,
    when it is called. `minimum`, `maximum` (of whole numbers) and `longest` (of texts and lists) are the API's limits.
    `label` and `hint` are for the dashboard's form, which otherwise shows the name.
    """

    kind: OptionKind
    help: str
    choices: Callable[[], Sequence[str]] | None = None
    minimum: int | None = None
    maximum: int | None = None
    longest: int | None = None
    label: str = ""
    hint: str = ""


@dataclass(frozen=True)
class NamedOption:
    """An option with its name, and its default in the function that spells it out."""

    name: str
    option: Option
    default: Any


def read_options(options: type) -> dict[str, Option]:
    """Return the options of a typed dictionary by name, in its order."""
    return {
        name: next(item for item in hint.__metadata__ if isinstance(item, Option))
        for name, hint in get_type_hints(options, include_extras=True).items()
    }


def named_options(options: type, function: Callable[..., Any]) -> list[NamedOption]:
    """Return the options of a typed dictionary, in its order, with the defaults of `function`."""
    parameters = inspect.signature(function).parameters
    return [NamedOption(name, option, parameters[name].default) for name, option in read_options(options).items()]
