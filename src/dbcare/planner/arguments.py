"""Checks of what a plan is given."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from dbcare.base import checks
from dbcare.base.times import SECONDS_PER_DAY, parse_duration
from dbcare.errors import InvalidValueError
from dbcare.planner.setting import MAX_TRIALS, ControlArm, PlanSetting
from dbcare.planner.study_recipe import name_arms

MAX_ARMS = 500  # about the most for which three seconds on two CPUs are enough


def check_count(arms: Any) -> int:
    """Return the number of arms, if a plan for so many does not take minutes."""
    count = checks.arms(len(arms) if isinstance(arms, Sequence) and not isinstance(arms, str) else arms)
    if count > MAX_ARMS:
        raise InvalidValueError(
            f"`arms` must be at most {MAX_ARMS} for a plan, which simulates many runs, but got {count}; plan with "
            f"{MAX_ARMS} to see what to expect."
        )
    return count


def check_gaps(setting: PlanSetting, gaps: Any) -> tuple[float, ...]:
    """Return the gaps, each once, in ascending order."""
    if isinstance(gaps, numbers.Real | str):
        return (setting.check_gap("gaps", gaps),)
    listed = checks.items("gaps", gaps, "a number or several")
    checked = {setting.check_gap(f"gaps[{place}]", gap) for place, gap in enumerate(listed)}
    if not checked:
        raise InvalidValueError("`gaps` must be at least one number but got none.")
    return tuple(sorted(checked))


def count_trials(not_before: Any, per_day: Any) -> int:
    """Return the number of trials before which there is no stop, which may be given as a duration."""
    if not isinstance(not_before, str):
        return 0 if not_before is None else checks.whole("not_before", not_before, at_least=0, at_most=MAX_TRIALS)
    seconds = parse_duration("not_before", not_before, ", or a number of observations")
    if per_day is None:
        raise InvalidValueError(f"`per_day` is required for a duration but got `not_before` {not_before} without it.")
    trials = math.ceil(seconds / SECONDS_PER_DAY * checks.positive("per_day", per_day) * (1.0 - 1e-12))
    return checks.whole("not_before", trials, at_least=0, at_most=MAX_TRIALS)


def find_control(control: Any, arms: Any, count: int) -> ControlArm | None:
    """Return the control arm by its name, which for a mere number of arms is that in the study: A, B, C and so on."""
    if control is None:
        return None
    names = name_arms(arms, count)
    if names is None:
        raise InvalidValueError(f"`control` requires the names of the arms but got `arms` {count}, which are too many.")
    return ControlArm(names.index(checks.one_of("control", control, names)), control)
