"""The study that a plan leads to, as a command for the shell and as a line of Python."""

from __future__ import annotations

import math
import numbers
import shlex
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import check_arm_names, order_by_arm
from dbcare.planner.setting import PlanSetting
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES
from dbcare.problem.risk import Loss

STUDY_NAME = "my-study"
STORAGE = "sqlite:///studies.db"
MAX_UNNAMED_ARMS = 100  # with more, a command is of no use


@dataclass(frozen=True)
class StudyRecipe:
    """The names of the arms, and those options of `create_study` that differ from their defaults.

    Numbers are written so that they are read as exactly the same numbers.
    """

    arms: tuple[str, ...]
    options: dict[str, Any]

    @property
    def policy(self) -> str:
        """Name of the policy that the study runs."""
        return str(self.options.get("policy", DEFAULT_POLICY))

    @property
    def command(self) -> str | None:
        """The `dbcare create` command; None if an arm has a name that a list with commas cannot hold."""
        if any("," in arm or arm != arm.strip() for arm in self.arms):
            return None
        return shlex.join(["dbcare", "create", STUDY_NAME, *self._flags(), "--storage", STORAGE])

    def _flags(self) -> Iterator[str]:
        yield from ("--arms", ",".join(self.arms))
        for name, value in self.options.items():
            yield f"--{name.replace('_', '-')}"
            if value is not True:
                yield _format_for_shell(value)

    @property
    def call(self) -> str:
        """The call of `dbcare.create_study`."""
        options = {**self.options, "storage": STORAGE}
        arguments = [f"{name}={_format_for_python(value)}" for name, value in options.items()]
        return f"dbcare.create_study({', '.join([repr(STUDY_NAME), repr(list(self.arms)), *arguments])})"


def list_amounts(name: str, amount: Any, arms: Any) -> Any:
    """Return one amount as it is, several as a list in the order of the arms."""
    ordered = order_by_arm(name, amount, arms)
    if isinstance(ordered, numbers.Real | str) or not isinstance(ordered, Iterable):
        return ordered
    return checks.items(name, ordered, "one number, or one per arm")


def make_recipe(arms: Any, setting: PlanSetting, compared: Sequence[str], **amounts: Any) -> StudyRecipe | None:
    """Return the study for a plan; None if no policy that is compared runs live, or if very many arms have no names.

    `amounts` are the price, value and cost as they were given and found valid: a price cannot be computed from the risk
    without rounding.
    """
    live = [name for name in compared if name in POLICIES]
    names = name_arms(arms, setting.arms)
    if not live or names is None:
        return None
    policy = DEFAULT_POLICY if DEFAULT_POLICY in live else live[0]
    options = {
        **{name: _to_floats(amount) for name, amount in amounts.items() if amount is not None},
        **({"currency": setting.currency} if setting.currency and setting.is_in_money else {}),
        **({} if setting.risk.loss is Loss.SIMPLE_REGRET else {"risk": str(setting.risk.loss)}),
        **{
            field.name: value
            for field in fields(setting.spread)
            if (value := getattr(setting.spread, field.name)) != field.default
            and (field.name != "sigma_pulls" or field.name in POLICIES[policy].options)
        },
        **({} if policy == DEFAULT_POLICY else {"policy": policy}),
        **({} if setting.not_before == 0 else {"not_before": setting.not_before}),
        **({} if setting.control is None else {"control": setting.control.name}),
    }
    return StudyRecipe(names, options)


def name_arms(arms: Any, count: int) -> tuple[str, ...] | None:
    """Return the names of the arms; where only their number is known, letters, or numbered ones; None for very many."""
    if not isinstance(arms, numbers.Real):
        return check_arm_names(arms)
    if count > MAX_UNNAMED_ARMS:
        return None
    letters = string.ascii_uppercase
    return tuple(letters[:count] if count <= len(letters) else (f"arm{number}" for number in range(1, count + 1)))


def _to_floats(amount: Any) -> float | list[float]:
    return [float(one) for one in amount] if isinstance(amount, list) else float(amount)


def _format_for_shell(value: str | float | Sequence[float]) -> str:
    if isinstance(value, str | int):
        return str(value)
    return _shorten(value) if isinstance(value, float) else ",".join(map(_shorten, value))


def _format_for_python(value: Any) -> str:
    if isinstance(value, list | tuple):
        listed = ", ".join(map(_shorten, value))
        return f"[{listed}]" if isinstance(value, list) else f"({listed})"
    if isinstance(value, float):
        return f"float('{value}')" if math.isinf(value) else _shorten(value)
    return repr(value)


def _shorten(number: float) -> str:
    """Return the shortest text that is read as the same number."""
    return repr(number).removesuffix(".0")
