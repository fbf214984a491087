"""Options that several interfaces offer: how they are declared, and what each interface calls them.

A function such as `create_study` spells its options out with their defaults. A `TypedDict` gives each of them a type
for callers that pass them on (`Unpack`), and an `Option`, from which the command line, the HTTP API and the form on
the dashboard are made.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, get_type_hints

from dbcare.errors import InvalidValueError


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


QUOTED = re.compile(r"`([^`]+)`")
WORD = re.compile(r"(?<![\w-])[A-Za-z_]\w*")  # not what is spelled for a shell already, such as --free
ENTRY = re.compile(r"\[(\d+)\]$")  # as in `price[1]`, which counts from 0
ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)=(None\b|True\b)?")  # as in "but got price=None"
COMMA = re.compile(r"[-+]?[\d.]*(,\d+)+[\d.]*")  # a decimal point in some countries; in others, it separates thousands
PAIR = re.compile(r"\s*(.*?)\s*=\s*([^,;=]*?)\s*(?:[,;]|$)")  # of a text such as A=0.4, B=2


def translate_names(message: str, names: Mapping[str, str], mark: str = "`") -> str:
    """Return a message with options called what they are called where it is shown.

    `names` has these by the names in Python, which messages put between backticks or before "="; `mark` replaces the
    backticks.
    """

    def translate_quoted(found: re.Match[str]) -> str:
        inner = found[1]
        if not any(word in names for word in WORD.findall(inner)):
            return found[0]
        place = ENTRY.search(inner)
        translated = WORD.sub(lambda word: names.get(word[0], word[0]), ENTRY.sub("", inner))
        return f"{mark}{translated}{mark}" + (f" (entry {int(place[1]) + 1})" if place else "")

    def translate_assigned(found: re.Match[str]) -> str:
        name = names.get(found[1])
        if name is None:
            return found[0]
        return {"None": f"no {name}", "True": name}.get(found[2] or "", f"{name} ")

    return QUOTED.sub(translate_quoted, ASSIGNED.sub(translate_assigned, message))


def find_name(message: str, names: Mapping[str, str]) -> str | None:
    """Return the first option that a message is about, by its name in Python; None if there is none."""
    quoted = [(found.start(), word) for found in QUOTED.finditer(message) for word in WORD.findall(found[1])]
    assigned = [(found.start(), found[1]) for found in ASSIGNED.finditer(message)]
    return next((word for _, word in sorted(quoted + assigned, key=lambda place: place[0]) if word in names), None)


def parse_number(name: str, text: str) -> float:
    """Return a number that was typed for an option."""
    try:
        return float(text)
    except ValueError:
        hint = "; use a decimal point, and no commas between thousands" if COMMA.fullmatch(text.strip()) else ""
        raise InvalidValueError(f"`{name}` must be a number but got {text!r}{hint}.") from None


def parse_blocks(name: str, text: str) -> float | list[str]:
    """Return the number of blocks that was typed, or their names, separated by commas."""
    if "," in text:
        return [part.strip() for part in text.split(",")]
    return parse_number(name, text)


def parse_per_arm(name: str, text: str, parts: Sequence[str]) -> float | list[float] | dict[str, float]:
    """Return amounts that were typed: by the names of the arms, such as A=0.4, B=2, or the numbers in `parts`."""
    if "=" in text:
        return _parse_pairs(name, text)
    numbers = [parse_number(name, part) for part in parts]
    return numbers[0] if len(numbers) == 1 else numbers


def _parse_pairs(name: str, text: str) -> dict[str, float]:
    amounts: dict[str, float] = {}
    place = 0
    while place < len(text):
        pair = PAIR.match(text, place)
        if pair is None or not pair[1] or pair[1] in amounts:
            raise InvalidValueError(
                f"`{name}` must have one entry for each arm, such as A=0.4, B=2, but got {text[place:].strip()!r}."
            )
        amounts[pair[1]] = parse_number(name, pair[2])
        place = pair.end()
    return amounts
