"""Theory alone: bounds on the risk by gap (the paper's Fig. 1 for two arms, and the same for more).

With more than two arms, one arm is better than all others by the gap (1-sparse), so that H = (K-1)/gap^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dbcare.base import checks
from dbcare.errors import InvalidValueError
from dbcare.lab.curves import Floats, format_loss
from dbcare.lab.figures import AXIS, THEORY, Plot, PlotLine
from dbcare.policies.registry import POLICIES
from dbcare.problem.risk import Loss
from dbcare.theory import breakeven, lower, upper

NAME = "bounds"
TITLE = "Bounds for two arms"
SOURCE = "Section 2, Fig. 1"
DECISIONS = (
    "The paper does not state the cost and sigma of this figure; we use those of its two-arm experiments, 1e-4 and 1.",
    "DBCARE's upper bound is the piecewise curve from which the corollaries follow, as it shows the transition that "
    "the text describes; the printed corollary is a multiple of the lower bound. B = 3, the largest gap shown.",
    "The oracle's upper bound is the one in its proof. The printed one, 32 times the lower bound plus 2c, is 8 at "
    "small gaps for misidentification, where the oracle guesses and has a risk of 1/2.",
    "The lower bound is one for the worst instance with that gap.",
    "The bound of BreakevenRacing is ours, not the paper's.",
)


@dataclass(frozen=True)
class Setup:
    """The problem that bounds are computed for."""

    cost: float = 1e-4
    sigma: float = 1.0
    arms: int = 2
    smallest: float = 3e-3
    largest: float = 3.0
    points: int = 200

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            cost=checks.positive("cost", self.cost),
            sigma=checks.positive("sigma", self.sigma),
            arms=checks.whole("arms", self.arms, at_least=2),
            smallest=checks.positive("smallest", self.smallest),
            largest=checks.positive("largest", self.largest),
            points=checks.whole("points", self.points, at_least=2),
        )
        if self.smallest >= self.largest:
            raise InvalidValueError(f"`smallest` must be below `largest`, {self.largest:g}, but got {self.smallest:g}.")

    @property
    def gaps(self) -> Floats:
        """The gaps, in geometric steps."""
        return np.geomspace(self.smallest, self.largest, self.points)

    @property
    def title(self) -> str:
        """The figure's title."""
        kind = "two arms" if self.arms == 2 else f"{self.arms} arms, one better than all others"
        return f"Bounds on the risk: {kind}, cost {self.cost:g} per pull, sigma {self.sigma:g}"


@dataclass(frozen=True)
class Bound:
    """A bound at every gap; `kind` is the policy that it is about, or THEORY if it is about all policies."""

    label: str
    kind: str
    values: Floats


def compute_bounds(setup: Setup, loss: Loss) -> list[Bound]:
    """Compute every bound under one loss."""
    gaps, cost, sigma, arms = setup.gaps, setup.cost, setup.sigma, setup.arms
    others = np.repeat(gaps[:, np.newaxis], arms - 1, axis=1)
    hardness = (arms - 1) / gaps**2
    regret = loss is Loss.SIMPLE_REGRET
    if arms == 2:
        bounds = [
            _upper_bound("dbcare", upper.two_arm_curve(loss, gaps, cost, sigma, bound=setup.largest)),
            _upper_bound("known-gap-oracle", upper.oracle_curve(loss, gaps, cost, sigma)),
            _upper_bound("breakeven-racing", breakeven.two_arm_integral(loss, gaps, cost, sigma)),
        ]
    elif regret:
        guarantee = upper.simple_regret(hardness, gaps, arms, cost, sigma, bound=setup.largest)
        bounds = [_upper_bound("dbcare", guarantee)]
    else:
        bounds = [_upper_bound("dbcare", upper.misidentification(hardness, arms, cost, sigma))]
    guess = POLICIES.entry("guess")
    guess_risk = upper.guess(loss, np.column_stack([np.zeros_like(gaps), others]))
    bounds.append(Bound(guess.label, guess.name, np.asarray(guess_risk, dtype=np.float64)))
    lowest = (
        lower.simple_regret(hardness, gaps, cost, sigma) if regret else lower.misidentification(hardness, cost, sigma)
    )
    bounds.append(Bound("any policy, lower bound", THEORY, np.asarray(lowest, dtype=np.float64)))
    return bounds


def _upper_bound(policy: str, values: object) -> Bound:
    entry = POLICIES.entry(policy)
    return Bound(f"{entry.label}, upper bound", entry.name, np.asarray(values, dtype=np.float64))


def make_plots(setup: Setup) -> list[Plot]:
    """Return one plot per loss."""
    return [
        Plot(
            format_loss(loss).capitalize(),
            setup.gaps,
            AXIS["gap"],
            "risk",
            tuple(PlotLine(bound.label, bound.kind, bound.values) for bound in compute_bounds(setup, loss)),
        )
        for loss in Loss
    ]
