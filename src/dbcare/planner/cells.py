"""The cells of a plan: at which gaps, for which ways to decide, and with how many runs."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dbcare import validation
from dbcare.engines.evaluate_within import CountedRuns
from dbcare.engines.work_budget import WorkBudget
from dbcare.errors import InvalidValueError
from dbcare.planner.setting import PlanSetting
from dbcare.planner.strategies import default_names, find_largest_gap, find_obstacle, find_strategy, strategy_names
from dbcare.policies.policy import Policy
from dbcare.policies.registry import DEFAULT_POLICY
from dbcare.policies.schedule import SchedulePolicy
from dbcare.risk import Risk

PILOT_RUNS = 16
MAX_PILOT_WORK = 1e9  # far more than a pilot takes; it bounds each run
TARGET_PULLS = 6e6  # simulated in all by default: about a second with few arms
MIN_RUNS, MAX_RUNS = 200, 20_000


@dataclass(frozen=True, eq=False)
class Cell:
    """A way to decide at one gap, and the risk to evaluate it by."""

    name: str
    gap: float
    policy: Policy
    risk: Risk


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


def check_gaps(setting: PlanSetting, gaps: Any) -> tuple[float, ...]:
    """Return the gaps, each once, in ascending order."""
    if isinstance(gaps, numbers.Real | str):
        return (setting.check_gap("gaps", gaps),)
    listed = validation.items("gaps", gaps, "a number or several")
    checked = {setting.check_gap(f"gaps[{place}]", gap) for place, gap in enumerate(listed)}
    if not checked:
        raise InvalidValueError("`gaps` must be at least one number but got none.")
    return tuple(sorted(checked))


def check_budget(budget: Any) -> WorkBudget:
    """Return the budget, if it is one."""
    if not isinstance(budget, WorkBudget):
        raise InvalidValueError(f"`budget` must be a WorkBudget but got {budget!r}.")
    return budget


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


def count_affordable_runs(
    setting: PlanSetting, gaps: Sequence[float], seed: int, threads: int | None, budget: WorkBudget
) -> int:
    """Return how many runs of the default policy at all gaps make about TARGET_PULLS, by a short pilot.

    A pull takes longer with many arms. The pilot ends once MIN_RUNS are sure to be too many, so the number does not
    depend on the budget.
    """
    policy, risk = find_strategy(DEFAULT_POLICY).build(setting, gaps[0])
    target = TARGET_PULLS / (1.0 + setting.arms / 20.0)
    enough = WorkBudget(MAX_PILOT_WORK, budget.is_cancelled)
    pulls = 0.0
    for gap in reversed(gaps):
        pilot = CountedRuns(enough, policy, setting.bandit(gap), risk, PILOT_RUNS, seed, threads)
        while pilot.made < PILOT_RUNS and MIN_RUNS * (pulls + pilot.pulls / PILOT_RUNS) < target:
            pilot.extend()
        pulls += pilot.pulls / PILOT_RUNS
        budget.take(pilot.work)
        if MIN_RUNS * pulls >= target:
            break
    return int(min(MAX_RUNS, max(MIN_RUNS, round(target / max(1.0, pulls), -2))))
