"""Checks of arguments, each returning the value in its canonical type.

Every message has the form "`name` must <condition> but got <value>."
"""

import math
import numbers
from collections.abc import Iterable
from typing import Any

from dbcare.errors import InvalidValueError


def real(name: str, value: Any) -> float:
    """A finite real number; booleans and text are refused."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidValueError(f"`{name}` must be a real number but got {value!r}.")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond floating point
        number = math.inf
    if not math.isfinite(number):
        raise InvalidValueError(f"`{name}` must be finite but got {number}.")
    return number


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    number = real(name, value)
    if number <= 0.0:
        raise InvalidValueError(f"`{name}` must be positive but got {number}.")
    return number


def known_sigma(value: Any) -> float:
    """A standard deviation, for policies that cannot do without."""
    if value is None:
        raise InvalidValueError("`sigma` must be known here but got None; Breakeven does without.")
    return positive("sigma", value)


def non_negative(name: str, value: Any) -> float:
    """A finite number, zero or above."""
    number = real(name, value)
    if number < 0.0:
        raise InvalidValueError(f"`{name}` must not be negative but got {number}.")
    return number


def open_unit(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidValueError(f"`{name}` must lie strictly between 0 and 1 but got {number}.")
    return number


def unit(name: str, value: Any) -> float:
    """A number between 0 and 1, both included."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise InvalidValueError(f"`{name}` must lie between 0 and 1 but got {number}.")
    return number


def whole(name: str, value: Any, *, at_least: int) -> int:
    """A whole number no smaller than `at_least`; 1e5 counts as whole, 1.5 and True do not."""
    number = real(name, value)
    if number != int(number):
        raise InvalidValueError(f"`{name}` must be a whole number but got {number}.")
    if number < at_least:
        raise InvalidValueError(f"`{name}` must be at least {at_least} but got {int(number)}.")
    return int(value)


def text(name: str, value: Any, *, longest: int = 200) -> str:
    """A text that can be shown in a line and stored anywhere."""
    if isinstance(value, str) and value.strip() and len(value) <= longest and value.isprintable():
        return value
    shown = repr(value)
    raise InvalidValueError(
        f"`{name}` must be a text of 1 to {longest} printable characters but got "
        f"{shown if len(shown) <= 80 else shown[:80] + '...'}."
    )


def spread_within(bound: float, spread: float) -> None:
    """Means whose largest and smallest differ by no more than `bound` (only differences matter, not their level)."""
    if spread > bound * (1.0 + 1e-12):
        raise InvalidValueError(
            f"`bound` must be at least the largest difference of the means, {spread:g}, but got {bound:g}."
        )


def settle(owner: Any, **values: Any) -> None:
    """Give the fields of a frozen dataclass their canonical values."""
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def one_of(name: str, value: Any, choices: Iterable[str]) -> str:
    """One of the names listed."""
    listed = list(choices)
    if value not in listed:
        raise InvalidValueError(f"`{name}` must be one of {', '.join(listed)} but got {value!r}.")
    return str(value)
