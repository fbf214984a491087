"""Names of arms, and amounts that are given by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.validation import show


def check_arm_names(arms: Any) -> tuple[str, ...]:
    """Return the names of two or more arms, all of them different."""
    if isinstance(arms, str | bytes) or not isinstance(arms, Sequence):
        raise InvalidValueError(f"`arms` must be a sequence of names but got {show(arms)}.")
    names = tuple(validation.text("arms", arm) for arm in arms)
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
