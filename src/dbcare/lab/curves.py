"""Curves made from results, which figures draw, tables list and claims are checked against."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dbcare.base.look import PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.lab.experiments.experiment import Contender, Experiment, Setting
from dbcare.lab.experiments.passes import Point
from dbcare.lab.experiments.results import Result
from dbcare.lab.guarantees import Guarantee, list_guarantees
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.planned import KnownGapOracle
from dbcare.policies.policy import Policy
from dbcare.policies.registry import POLICIES
from dbcare.problem.bandits import Bandit
from dbcare.problem.rewards import Gaussian
from dbcare.problem.risk import Loss
from dbcare.theory import breakeven, budgets, lower

Floats = npt.NDArray[np.float64]
P = TypeVar("P", bound=Policy)


@dataclass(frozen=True)
class Curve:
    """One policy along the axis: risk and its standard error, error probability, mean pulls and their cost.

    `plain_runs` is how many plain runs have the same standard error: infinite where exact, NaN where unknown.
    """

    policy: str  # its registered name, or module:function
    risk: Floats
    standard_error: Floats
    plain_runs: Floats
    error: Floats
    pulls: Floats
    spent: Floats
    options: Mapping[str, Any] = field(default_factory=dict)  # those of the contender

    @property
    def low(self) -> Floats:
        """Risk - 2 standard errors, which can be negative."""
        return self.risk - 2.0 * self.standard_error

    @property
    def high(self) -> Floats:
        """Risk + 2 standard errors."""
        return self.upper(2.0)

    def lower(self, errors: float) -> Floats:
        """Return the risk less so many standard errors, but at least 0."""
        return np.maximum(self.risk - errors * self.standard_error, 0.0)

    def upper(self, errors: float) -> Floats:
        """Return the risk plus so many standard errors."""
        return self.risk + errors * self.standard_error


@dataclass(frozen=True)
class Panel:
    """All curves of one setting under one loss, with the bounds for any policy and the guarantees of the paper's."""

    title: str
    loss: Loss
    axis: str
    x: Floats
    curves: Mapping[str, Curve]
    lower: Floats
    guarantees: tuple[Guarantee, ...]
    pulls: Floats  # DBCARE's bound on the expected number of pulls
    racing: Floats  # BreakevenRacing's guarantee; NaN where undefined

    @property
    def heading(self) -> str:
        """The setting and the loss, as a heading."""
        return f"{self.title}, {format_loss(self.loss)}"

    def keep(self, labels: Collection[str]) -> Panel:
        """Return the panel with these curves alone."""
        return replace(self, curves={label: curve for label, curve in self.curves.items() if label in labels})

    def up_to(self, largest: float) -> Panel:
        """Return the panel as far as the axis goes up to `largest`."""
        kept = self.x <= largest

        def cut(curve: Curve) -> Curve:
            arrays = ("risk", "standard_error", "plain_runs", "error", "pulls", "spent")
            return replace(curve, **{name: getattr(curve, name)[kept] for name in arrays})

        return replace(
            self,
            x=self.x[kept],
            curves={label: cut(curve) for label, curve in self.curves.items()},
            guarantees=tuple(replace(each, values=each.values[kept]) for each in self.guarantees),
            lower=self.lower[kept],
            pulls=self.pulls[kept],
            racing=self.racing[kept],
        )

    def by_policy(self, *names: str) -> dict[str, Curve]:
        """Return the curves of the policies with these names, which must be registered."""
        policies = [POLICIES.entry(name).name for name in names]
        return {label: curve for label, curve in self.curves.items() if curve.policy in policies}

    def by_kind(self, *kinds: PolicyKind) -> dict[str, Curve]:
        """Return the curves of policies of these kinds."""
        return {label: curve for label, curve in self.curves.items() if POLICIES.kind(curve.policy) in kinds}


def format_loss(loss: Loss) -> str:
    """Return the name of a loss for people."""
    return str(loss).replace("_", " ")


def make_panels(experiment: Experiment, results: Mapping[Point, Result]) -> list[Panel]:
    """Return all panels of an experiment: all settings under the first loss, then under the next."""
    return [
        _make_panel(experiment, number, loss, results)
        for loss in experiment.losses
        for number in range(len(experiment.settings))
    ]


def _make_panel(experiment: Experiment, number: int, loss: Loss, results: Mapping[Point, Result]) -> Panel:
    setting = experiment.settings[number]
    curves = {
        label: _make_curve(contender, loss, setting, [results[point] for point in experiment.curves[place]])
        for label, contender in experiment.contenders.items()
        if (place := (loss, number, label)) in experiment.curves
    }
    # Guarantees use the sigma and bound that a policy was built with, if it takes part.
    dbcare = _find_policies(experiment, number, loss, DBCARE)
    oracle = _find_policies(experiment, number, loss, KnownGapOracle)
    policies: list[DBCARE | None] = [None] * len(setting.x) if dbcare is None else [*dbcare]
    problems = list(zip(setting.bandits, setting.costs, policies, strict=True))
    bounds = np.array(
        [
            (_compute_lower_bound(loss, bandit, cost), *_compute_our_bounds(loss, bandit, cost, policy))
            for bandit, cost, policy in problems
        ]
    )
    least, most_pulls, racing = bounds.T
    return Panel(
        setting.title,
        loss,
        experiment.axis,
        np.array(setting.x),
        curves,
        least,
        list_guarantees(loss, setting.bandits, np.array(setting.costs), dbcare, oracle),
        most_pulls,
        racing,
    )


def _find_policies(experiment: Experiment, number: int, loss: Loss, kind: type[P]) -> list[P] | None:
    """Return the policies of a kind along the axis of a panel; None if it does not take part."""
    for (own_loss, own_number, _), points in experiment.curves.items():
        found = [point.policy for point in points if isinstance(point.policy, kind)]
        if (own_loss, own_number) == (loss, number) and found:
            return found
    return None


def _compute_lower_bound(loss: Loss, bandit: Bandit, cost: float) -> float:
    """Return the bound that every policy exceeds on some instance of the bandit's complexity and smallest gap."""
    if loss is Loss.MISIDENTIFICATION:
        return float(lower.misidentification(bandit.complexity, cost, bandit.sigma))
    return float(lower.simple_regret(bandit.complexity, bandit.smallest_gap, cost, bandit.sigma))


def _compute_our_bounds(loss: Loss, bandit: Bandit, cost: float, policy: DBCARE | None) -> tuple[float, float]:
    """Return DBCARE's bound on expected pulls, if it takes part, and BreakevenRacing's bound on its risk."""
    most_pulls = math.nan
    if policy is not None:
        arms = len(bandit.arms)
        most_pulls = float(budgets.expected_pulls(loss, arms, cost, policy.sigma)) + arms  # whole epochs: its docstring
    return most_pulls, _compute_racing_bound(loss, bandit, cost)


def _compute_racing_bound(loss: Loss, bandit: Bandit, cost: float) -> float:
    """Return BreakevenRacing's guarantee; its theorems require Gaussian arms with the same sigma."""
    if not all(isinstance(arm, Gaussian) and arm.sigma == bandit.sigma for arm in bandit.arms):
        return math.nan
    arms, gap = len(bandit.arms), bandit.smallest_gap
    with contextlib.suppress(InvalidValueError):  # the cost is too high for the bound to be defined
        if arms == 2:
            return float(breakeven.two_arm_integral(loss, gap, cost, bandit.sigma))
        if loss is Loss.MISIDENTIFICATION:
            return float(breakeven.misidentification(bandit.complexity, arms, cost, bandit.sigma))
        return float(breakeven.simple_regret_minimax(arms, cost, bandit.sigma))
    return math.nan


def _make_curve(contender: Contender, loss: Loss, setting: Setting, results: list[Result]) -> Curve:
    risk, standard_error = np.array([result.risk(loss) for result in results]).T
    pulls = np.array([result.pulls for result in results])
    return Curve(
        contender.policy,
        risk,
        standard_error,
        np.array([_count_plain_runs(result, loss) for result in results]),
        np.array([result.error for result in results]),
        pulls,
        np.array(setting.costs) * pulls,
        contender.options,
    )


def _count_plain_runs(result: Result, loss: Loss) -> float:
    if result.engine == "exact":
        return math.inf
    count = result.plain_runs[0 if loss is Loss.MISIDENTIFICATION else 1]
    return math.nan if count is None else count
