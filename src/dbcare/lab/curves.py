"""From results to curves: what figures draw, tables list and claims look at."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbcare.bandit import Bandit
from dbcare.errors import InvalidValueError
from dbcare.lab.experiment import Experiment, Setting
from dbcare.lab.points import Point
from dbcare.lab.results import Result
from dbcare.policies.dbcare import DBCARE
from dbcare.policies.look import PolicyKind
from dbcare.policies.policy import Policy
from dbcare.policies.registry import POLICIES
from dbcare.rewards import Gaussian
from dbcare.risk import Loss
from dbcare.theory import breakeven, lower, pulls, upper

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """One policy along the axis: risk with its standard error, error, mean pulls and what they cost."""

    policy: str  # its registered name, or module:function
    risk: Floats
    standard_error: Floats
    error: Floats
    pulls: Floats
    spent: Floats

    @property
    def low(self) -> Floats:
        """Risk - 2 standard errors, but no less than what was spent: a loss is never negative."""
        return np.maximum(self.risk - 2.0 * self.standard_error, np.minimum(self.spent, self.risk))

    @property
    def high(self) -> Floats:
        """Risk + 2 standard errors."""
        return self.risk + 2.0 * self.standard_error


@dataclass(frozen=True)
class Panel:
    """All curves of one setting under one loss, and what theory says there of any policy and of two of them."""

    title: str
    loss: Loss
    axis: str
    x: Floats
    curves: Mapping[str, Curve]
    lower: Floats
    upper: Floats  # DBCARE's guarantee; not a number where it is undefined
    pulls: Floats  # DBCARE's bound on the expected pulls
    racing: Floats  # BreakevenRacing's guarantee; not a number where it is undefined

    @property
    def heading(self) -> str:
        """Setting and loss, for a reader."""
        return f"{self.title}, {words(self.loss)}"

    def by_policy(self, *names: str) -> dict[str, Curve]:
        """Return the curves of policies with these names, each of which must be registered."""
        policies = [POLICIES.entry(name).name for name in names]
        return {label: curve for label, curve in self.curves.items() if curve.policy in policies}

    def by_kind(self, *kinds: PolicyKind) -> dict[str, Curve]:
        """Return the curves of policies of these kinds."""
        return {label: curve for label, curve in self.curves.items() if POLICIES.kind(curve.policy) in kinds}


def words(loss: Loss) -> str:
    """The loss for a reader."""
    return str(loss).replace("_", " ")


def panels(experiment: Experiment, results: Mapping[Point, Result]) -> list[Panel]:
    """Every panel of an experiment: the settings of the first loss, then those of the next."""
    return [
        _panel(experiment, number, loss, results)
        for loss in experiment.losses
        for number in range(len(experiment.settings))
    ]


def _panel(experiment: Experiment, number: int, loss: Loss, results: Mapping[Point, Result]) -> Panel:
    setting = experiment.settings[number]
    curves = {
        label: _curve(
            contender.policy, loss, setting, [results[point] for point in experiment.curves[loss, number, label]]
        )
        for label, contender in experiment.contenders.items()
    }
    # The guarantees are DBCARE's: they use the sigma and bound that it was given, if it takes part.
    policies: list[Policy | None] = next(
        (
            [point.policy for point in points]
            for (own_loss, own_number, _), points in experiment.curves.items()
            if (own_loss, own_number) == (loss, number) and isinstance(points[0].policy, DBCARE)
        ),
        [None] * len(setting.x),
    )
    places = zip(setting.bandits, setting.costs, policies, strict=True)
    bounds = np.array(
        [(*_theory(loss, bandit, cost, policy), _racing(loss, bandit, cost)) for bandit, cost, policy in places]
    )
    return Panel(setting.title, loss, experiment.axis, np.array(setting.x), curves, *bounds.T)


def _theory(loss: Loss, bandit: Bandit, cost: float, policy: Policy | None) -> tuple[float, float, float]:
    """The lower bound for any policy, DBCARE's guarantee, and the bound on its expected pulls, if it takes part."""
    arms, hardness, gap = len(bandit.arms), bandit.complexity, bandit.smallest_gap
    if loss is Loss.MISIDENTIFICATION:
        least = float(lower.misidentification(hardness, cost, bandit.sigma))
    else:
        least = float(lower.simple_regret(hardness, gap, cost, bandit.sigma))
    guarantee = most = math.nan
    if isinstance(policy, DBCARE):
        sigma, bound = policy.sigma, policy.bound
        most = float(pulls.expected_pulls(loss, arms, cost, sigma)) + arms  # whole epochs: see its docstring
        with contextlib.suppress(InvalidValueError):  # too dear for the bound to mean anything
            if arms == 2:
                guarantee = float(upper.two_arm(loss, gap, cost, sigma, bound=bound))
            elif loss is Loss.MISIDENTIFICATION:
                guarantee = float(upper.misidentification(hardness, arms, cost, sigma))
            else:
                guarantee = float(upper.simple_regret(hardness, gap, arms, cost, sigma, bound=bound))
    return least, guarantee, most


def _racing(loss: Loss, bandit: Bandit, cost: float) -> float:
    """BreakevenRacing's guarantee: its theorems are for Gaussian arms of the same sigma."""
    if not all(isinstance(arm, Gaussian) and arm.sigma == bandit.sigma for arm in bandit.arms):
        return math.nan
    arms, gap = len(bandit.arms), bandit.smallest_gap
    with contextlib.suppress(InvalidValueError):  # too dear for the bound to mean anything
        if arms == 2:
            return float(breakeven.two_arm_integral(loss, gap, cost, bandit.sigma))
        if loss is Loss.MISIDENTIFICATION:
            return float(breakeven.misidentification(bandit.complexity, arms, cost, bandit.sigma))
        return float(breakeven.simple_regret_minimax(arms, cost, bandit.sigma))
    return math.nan


def _curve(policy: str, loss: Loss, setting: Setting, found: list[Result]) -> Curve:
    risk, standard_error = np.array([result.risk(loss) for result in found]).T
    pulls = np.array([result.pulls for result in found])
    return Curve(
        policy,
        risk,
        standard_error,
        np.array([result.error for result in found]),
        pulls,
        np.array(setting.costs) * pulls,
    )
