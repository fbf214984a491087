"""The cells of a plan: at which gaps, and for which ways to decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dbcare import validation
from dbcare.engines.evaluation import Evaluation
from dbcare.errors import InvalidValueError
from dbcare.planner.outlook import Outlook
from dbcare.planner.setting import PlanSetting
from dbcare.planner.strategies import default_names, find_largest_gap, find_obstacle, find_strategy, strategy_names
from dbcare.policies.policy import Policy
from dbcare.policies.schedule import SchedulePolicy
from dbcare.risk import Risk


@dataclass(frozen=True, eq=False)
class Cell:
    """A way to decide at one gap, and the risk to evaluate it by."""

    name: str
    gap: float
    policy: Policy
    risk: Risk

    def make_outlook(self, setting: PlanSetting, evaluation: Evaluation) -> Outlook:
        """Return what an evaluation of this cell says."""
        return Outlook(self.name, self.gap, self.policy, evaluation, setting.loss_value, setting.per_day)


def build_cells(setting: PlanSetting, names: Sequence[str], gaps: Sequence[float]) -> list[Cell]:
    """Build the policies by gap and name; equal ones are one object, so that their tables are built once.

    A policy has no cells at gaps that it is not made for.
    """
    built: list[Policy] = []
    cells = []
    largest = {name: find_largest_gap(find_strategy(name), setting) for name in names}
    for gap in gaps:
        for name in (name for name in names if gap <= largest[name]):
            policy, risk = find_strategy(name).build(setting, gap)
            policy = next((other for other in built if other == policy), policy)
            built.append(policy)
            cells.append(Cell(name, gap, policy, risk))
    return cells


def sort_by_work(cells: Iterable[Cell]) -> list[Cell]:
    """Sort cells so that those that hardly take work come first, then large gaps, which take less."""
    return sorted(cells, key=lambda cell: (not isinstance(cell.policy, SchedulePolicy), -cell.gap))


def choose_strategies(
    setting: PlanSetting, policies: Any, gaps: Sequence[float]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the names of those that take part, in the table's order, and why others are left out, or at some gaps."""
    wanted = default_names() if policies is None else _check_names(policies)
    left_out: dict[str, str] = {}
    names = []
    for name in wanted:
        obstacle = find_obstacle(find_strategy(name), setting)
        largest = 0.0 if obstacle is not None else find_largest_gap(find_strategy(name), setting)
        if largest < gaps[-1]:
            left_out[name] = obstacle or _describe_limit(setting, largest)
        if largest >= gaps[0]:
            names.append(name)
        elif policies is not None:
            raise InvalidValueError(f"`policies` cannot include {name}: {left_out[name]}.")
    return tuple(names), left_out


def _describe_limit(setting: PlanSetting, largest: float) -> str:
    remedy = " unless the range of rewards is stated" if setting.spread.range is None else ""
    return f"it assumes gaps of at most {largest:g}{remedy}"


def _check_names(policies: Any) -> list[str]:
    listed = [policies] if isinstance(policies, str) else validation.items("policies", policies, "names of policies")
    wanted = [find_strategy(name).name for name in listed]
    if not wanted:
        raise InvalidValueError("`policies` must be at least one name but got none.")
    return [name for name in strategy_names() if name in wanted]
