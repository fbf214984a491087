"""Check arguments; each check returns the value in its canonical type.

Messages have the form "`name` must <condition> but got <value>."
"""

import math
import numbers
from collections.abc import Iterable
from typing import Any

from dbcare.errors import InvalidValueError


def real(name: str, value: Any) -> float:
    """Check that the value is a finite real number; booleans and strings are rejected."""
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
    """Check that the value is a finite number above zero."""
    number = real(name, value)
    if number <= 0.0:
        raise InvalidValueError(f"`{name}` must be positive but got {number}.")
    return number


def known_sigma(value: Any) -> float:
    """Check that the value is a standard deviation, for policies that require one."""
    if value is None:
        raise InvalidValueError("`sigma` is required here; Breakeven accepts None.")
    return positive("sigma", value)


def non_negative(name: str, value: Any) -> float:
    """Check that the value is a finite number, zero or above."""
    number = real(name, value)
    if number < 0.0:
        raise InvalidValueError(f"`{name}` must not be negative but got {number}.")
    return number


def open_unit(name: str, value: Any) -> float:
    """Check that the value lies strictly between 0 and 1."""
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidValueError(f"`{name}` must lie strictly between 0 and 1 but got {number}.")
    return number


def unit(name: str, value: Any) -> float:
    """Check that the value lies between 0 and 1, both included."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise InvalidValueError(f"`{name}` must lie between 0 and 1 but got {number}.")
    return number


def whole(name: str, value: Any, *, at_least: int) -> int:
    """Check that the value is a whole number, at least `at_least`; 1e5 counts as whole, 1.5 and True do not."""
    number = real(name, value)
    if number != int(number):
        raise InvalidValueError(f"`{name}` must be a whole number but got {number}.")
    if number < at_least:
        raise InvalidValueError(f"`{name}` must be at least {at_least} but got {int(number)}.")
    return int(value)


def text(name: str, value: Any, *, longest: int = 200) -> str:
    """Check that the value is a nonblank string that fits on one line and can be stored anywhere."""
    if isinstance(value, str) and value.strip() and len(value) <= longest and value.isprintable():
        return value
    shown = repr(value)
    raise InvalidValueError(
        f"`{name}` must be a string of 1 to {longest} printable characters but got "
        f"{shown if len(shown) <= 80 else shown[:80] + '...'}."
    )


def spread_within(bound: float, spread: float) -> None:
    """Check that the largest and smallest mean differ by at most `bound`; only differences matter, not the level."""
    if spread > bound * (1.0 + 1e-12):
        raise InvalidValueError(
            f"`bound` must be at least the largest difference between means, {spread:g}, but got {bound:g}."
        )


def set_fields(owner: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass to their canonical values."""
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def one_of(name: str, value: Any, choices: Iterable[str]) -> str:
    """Check that the value is one of `choices`."""
    names = list(choices)
    if value not in names:
        raise InvalidValueError(f"`{name}` must be one of {', '.join(names)} but got {value!r}.")
    return str(value)
