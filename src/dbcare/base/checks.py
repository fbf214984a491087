"""Checks of arguments: each returns the value in its plain form, or says what must hold and what it got.

Messages have the form "`name` must <condition> but got <value>."

Numbers have limits of magnitude: at most MAX_MAGNITUDE, and at least MIN_MAGNITUDE where they must be positive. The
largest expression in the package is gap^3 / (8 sigma^2 cost), which stays below 1e300 within these limits; a sum of
1e15 squared rewards stays below 1e116. So nothing that is computed from accepted numbers overflows, and no divisor
becomes 0. Real prices, rewards and standard deviations are nowhere near the limits.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbcare.errors import InvalidValueError

MAX_MAGNITUDE = 1e50
MIN_MAGNITUDE = 1e-50
MAX_ARMS = 1_000_000  # a run keeps several numbers per arm, a simulation does so for each thread
MAX_BLOCKS = 100_000  # of a pool
MAX_WHOLE = 2**63 - 1  # what a 64-bit integer holds
MAX_SHOWN = 80  # characters of a value in a message


def show(value: Any) -> str:
    """Return a value as messages show it, cut off if it is long."""
    try:
        shown = repr(value)
    except Exception:  # an integer with too many digits, or an object that cannot describe itself
        shown = f"an object of type {type(value).__name__}"
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}..."


def real(name: str, value: Any) -> float:
    """Check that the value is a real number of at most MAX_MAGNITUDE; booleans and strings are rejected."""
    if type(value) is float and -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE:
        return value  # as most rewards are; asking for numbers.Real takes several times as long
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidValueError(f"`{name}` must be a real number but got {show(value)}.")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond floating point
        number = math.inf
    if not math.isfinite(number):
        raise InvalidValueError(f"`{name}` must be finite but got {number}.")
    if abs(number) > MAX_MAGNITUDE:
        raise InvalidValueError(f"`{name}` must be at most {MAX_MAGNITUDE:g} in absolute value but got {number}.")
    return number


def positive(name: str, value: Any) -> float:
    """Check that the value is a number above zero, within the limits of magnitude."""
    number = real(name, value)
    if number <= 0.0:
        raise InvalidValueError(f"`{name}` must be positive but got {number}.")
    if number < MIN_MAGNITUDE:
        raise InvalidValueError(f"`{name}` must be at least {MIN_MAGNITUDE:g} but got {number}.")
    return number


def known_sigma(value: Any) -> float:
    """Check that the value is a standard deviation, for policies that require one."""
    if value is None:
        raise InvalidValueError("`sigma` is required here; Breakeven can learn it.")
    return positive("sigma", value)


def non_negative(name: str, value: Any) -> float:
    """Check that the value is zero, or a number above it within the limits of magnitude."""
    number = real(name, value)
    if number < 0.0:
        raise InvalidValueError(f"`{name}` must not be negative but got {number}.")
    if 0.0 < number < MIN_MAGNITUDE:
        raise InvalidValueError(f"`{name}` must be 0 or at least {MIN_MAGNITUDE:g} but got {number}.")
    return number


def open_unit(name: str, value: Any) -> float:
    """Check that the value lies strictly between 0 and 1."""
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidValueError(f"`{name}` must lie strictly between 0 and 1 but got {number}.")
    return positive(name, number)


def unit(name: str, value: Any) -> float:
    """Check that the value lies between 0 and 1, both included."""
    number = real(name, value)
    if not 0.0 <= number <= 1.0:
        raise InvalidValueError(f"`{name}` must lie between 0 and 1 but got {number}.")
    return number


def whole(name: str, value: Any, *, at_least: int, at_most: int = MAX_WHOLE) -> int:
    """Check that the value is a whole number within limits; 1e5 counts as whole, 1.5 and True do not."""
    number = real(name, value)
    if number != int(number):
        raise InvalidValueError(f"`{name}` must be a whole number but got {number}.")
    count = int(value)
    if count < at_least:
        raise InvalidValueError(f"`{name}` must be at least {at_least} but got {count}.")
    if count > at_most:
        raise InvalidValueError(f"`{name}` must be at most {at_most} but got {count}.")
    return count


def arms(value: Any, *, at_least: int = 2) -> int:
    """Check that the value is a number of arms."""
    return whole("arms", value, at_least=at_least, at_most=MAX_ARMS)


def flag(name: str, value: Any) -> bool:
    """Check that the value is True or False."""
    if not isinstance(value, bool):
        raise InvalidValueError(f"`{name}` must be True or False but got {show(value)}.")
    return value


def items(name: str, value: Any, what: str) -> list[Any]:
    """Return the items of an iterable other than a text; an error that its own iteration raises passes through."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        iterator = iter(value)
    except TypeError:
        raise InvalidValueError(f"`{name}` must be {what} but got {show(value)}.") from None
    return list(iterator)


def pairs(name: str, value: Any, what: str) -> list[tuple[Any, Any]]:
    """Return the items of an iterable, each of which must be a pair."""
    return [(first, second) for first, second in tuples(name, value, what, 2)]


def tuples(name: str, value: Any, what: str, *lengths: int) -> list[tuple[Any, ...]]:
    """Return the items of an iterable, each of which must have so many parts."""
    checked = []
    for place, item in enumerate(items(name, value, what)):
        try:
            parts = () if isinstance(item, str | bytes) else tuple(item)
        except TypeError:
            parts = ()
        if len(parts) not in lengths:
            raise InvalidValueError(f"`{name}` must be {what} but got {show(item)} at position {place}.")
        checked.append(parts)
    return checked


def text(name: str, value: Any, *, longest: int = 200) -> str:
    """Check that the value is a nonblank string that fits on one line and can be stored anywhere."""
    if isinstance(value, str) and value.strip() and len(value) <= longest and value.isprintable():
        return str.__str__(value)  # a subclass, such as numpy's, may look different
    raise InvalidValueError(f"`{name}` must be a string of 1 to {longest} printable characters but got {show(value)}.")


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
    if not isinstance(value, str) or value not in names:
        raise InvalidValueError(f"`{name}` must be one of {', '.join(names)} but got {show(value)}.")
    return str(value)


def check_arm_names(arms: Any) -> tuple[str, ...]:
    """Return the names of two or more arms, all of them different."""
    if isinstance(arms, str | bytes) or not isinstance(arms, Sequence):
        raise InvalidValueError(f"`arms` must be a sequence of names but got {show(arms)}.")
    names = tuple(text("arms", arm) for arm in arms)
    if len(names) < 2 or len(set(names)) != len(names):
        raise InvalidValueError(f"`arms` must be 2 or more different names but got {show(list(names))}.")
    return names


def order_by_arm(name: str, amount: Any, arms: Any) -> Any:
    """Return amounts given by the names of the arms as a list in their order; any others as they are."""
    if not isinstance(amount, Mapping):
        return amount
    if not isinstance(arms, Sequence):
        raise InvalidValueError(f"`{name}` is given by name, so `arms` must be names, not {show(arms)}.")
    names = check_arm_names(arms)
    if missing := [arm for arm in names if arm not in amount]:
        raise InvalidValueError(f"`{name}` must have an entry for each arm but got none for {show(missing[0])}.")
    if unknown := [arm for arm in amount if arm not in names]:
        raise InvalidValueError(
            f"`{name}` has an entry for {show(unknown[0])}, which is not an arm; the arms are {', '.join(names)}."
        )
    return [amount[arm] for arm in names]
