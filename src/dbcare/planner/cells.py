"""The cells of a plan: at which gaps, and for which ways to decide."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dbcare.base import checks
from dbcare.engines import exact
from dbcare.engines.evaluate import choose_risk
from dbcare.engines.exact.law import fixed_law
from dbcare.engines.pooling.model import find_family
from dbcare.engines.result import Evaluation, build_from_law
from dbcare.engines.statistics import QUANTILES
from dbcare.errors import InvalidValueError
from dbcare.planner.outlook import Omission, Outlook
from dbcare.planner.setting import PlanSetting
from dbcare.planner.strategies import default_names, find_largest_gap, find_obstacle, find_strategy, strategy_names
from dbcare.policies.elimination.elimination import count_max_epochs
from dbcare.policies.policy import Pace, Policy
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Risk

MAX_EXACT_EPOCHS = 8_000  # about a tenth of a second, which cannot be interrupted
MAX_TABLE_EPOCHS = 10_000_000  # of an elimination policy: 80 MB, and several times that to build


@dataclass(frozen=True, eq=False)
class Cell:
    """A way to decide at one gap of a setting, and the risk to evaluate it by."""

    name: str
    setting: PlanSetting
    gap: float
    policy: Policy
    risk: Risk

    @cached_property
    def bandit(self) -> Bandit:
        """The arms."""
        return self.setting.bandit(self.gap)

    @property
    def can_pool(self) -> bool:
        """Whether runs at other gaps say something about this one."""
        return self.policy.treats_arms_alike and not self.risk.costs_differ and find_family([self.bandit]) is not None

    def at(self, gap: float) -> Cell:
        """Return the same policy at another gap."""
        return Cell(self.name, self.setting, gap, self.policy, self.risk)

    def find_obstacle(self) -> str | None:
        """Return why the cell takes too much work, whatever the number of runs, if it does."""
        if self.policy.pace is Pace.ELIMINATION:
            epochs = count_max_epochs(self.policy.arms, self.policy.max_pulls)
            if epochs > MAX_TABLE_EPOCHS:
                return f"its tables have up to {epochs:,} epochs"
        return None

    def compute(self, seed: int) -> Evaluation | None:
        """Evaluate the cell exactly, if that is possible and fast; refuse rewards that the policy is not made for."""
        choose_risk(self.policy, self.bandit, self.risk)
        began, policy, bandit = time.perf_counter(), self.policy, self.bandit
        if self.risk.costs_differ:
            return None
        if policy.pulls_each:
            wrong = np.array([self.setting.one_best(self.gap).chance_wrong(policy.pulls_each)])
            law = fixed_law(np.array([self.gap]), policy.arms * policy.pulls_each / 2.0, wrong, np.array(QUANTILES))
        elif not exact.applies(policy, bandit) or _takes_long(policy, bandit):
            return None
        else:
            law = exact.compute_law(policy, bandit)
        return build_from_law(law, policy, self.risk, seed, began)

    def make_outlook(self, evaluation: Evaluation, effective_runs: float = math.inf) -> Outlook:
        """Return what an evaluation of this cell says, and on how many runs, by their weights, it rests."""
        setting = self.setting
        return Outlook(
            self.name, self.gap, self.policy, evaluation, setting.loss_value, setting.per_day, effective_runs,
            setting.control_is_best,
        )  # fmt: skip

    def omit(self, why: str) -> Omission:
        """Return that this cell is left out, and why."""
        return Omission(self.name, self.gap, why, self.setting.control_is_best)


def _takes_long(policy: Policy, bandit: Bandit) -> bool:
    """Return whether the exact engine takes long, though it applies."""
    return policy.pace is Pace.ELIMINATION and exact.count_epochs(policy, bandit) > MAX_EXACT_EPOCHS


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
            cells.append(Cell(name, setting, gap, policy, risk))
    return cells


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
    listed = [policies] if isinstance(policies, str) else checks.items("policies", policies, "names of policies")
    wanted = [find_strategy(name).name for name in listed]
    if not wanted:
        raise InvalidValueError("`policies` must be at least one name but got none.")
    return [name for name in strategy_names() if name in wanted]
