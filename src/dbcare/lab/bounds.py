"""Theory alone: what the bounds say, against the gap (the paper's Fig. 1 for two arms, and the same for more).

More than two arms are 1-sparse: one better than all others by the gap, so that H = (K-1)/gap^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.lab.curves import Floats, words
from dbcare.lab.figures import AXIS, THEORY, Plot, PlotLine
from dbcare.risk import Loss
from dbcare.theory import breakeven, lower, upper

NAME = "bounds"
TITLE = "Bounds for two arms"
SOURCE = "Section 2, Fig. 1"
DECISIONS = (
    "The paper does not state cost and sigma of this figure: those of its two-arm experiments, 1e-4 and 1.",
    "DBCARE's upper bound is the piecewise curve behind the corollaries, which shows the transition that the text "
    "describes; the printed corollary is a multiple of the lower bound. B = 3, the largest gap shown.",
    "The bound of BreakevenRacing is ours, not the paper's.",
)


@dataclass(frozen=True)
class Setup:
    """Where bounds are looked at."""

    cost: float = 1e-4
    sigma: float = 1.0
    arms: int = 2
    smallest: float = 3e-3
    largest: float = 3.0
    points: int = 200

    def __post_init__(self) -> None:
        validation.settle(
            self,
            cost=validation.positive("cost", self.cost),
            sigma=validation.positive("sigma", self.sigma),
            arms=validation.whole("arms", self.arms, at_least=2),
            smallest=validation.positive("smallest", self.smallest),
            largest=validation.positive("largest", self.largest),
            points=validation.whole("points", self.points, at_least=2),
        )
        if self.smallest >= self.largest:
            raise InvalidValueError(f"`smallest` must be below `largest`, {self.largest:g}, but got {self.smallest:g}.")

    @property
    def gaps(self) -> Floats:
        """The gaps looked at, in geometric steps."""
        return np.geomspace(self.smallest, self.largest, self.points)

    @property
    def title(self) -> str:
        """The figure's title."""
        kind = "two arms" if self.arms == 2 else f"{self.arms} arms, one better than all others"
        return f"Bounds on the risk, {kind}, cost {self.cost:g} a pull, sigma {self.sigma:g}"


def bounds(setup: Setup, loss: Loss) -> dict[str, Floats]:
    """Every bound under one loss, by what it is."""
    gaps, cost, sigma, arms = setup.gaps, setup.cost, setup.sigma, setup.arms
    others = np.repeat(gaps[:, np.newaxis], arms - 1, axis=1)
    hardness = (arms - 1) / gaps**2
    guess = upper.guess(loss, np.column_stack([np.zeros_like(gaps), others]))
    regret = loss is Loss.SIMPLE_REGRET
    least = (
        lower.simple_regret(hardness, gaps, cost, sigma) if regret else lower.misidentification(hardness, cost, sigma)
    )
    found = {}
    if arms == 2:
        found["DBCARE, upper bound"] = upper.two_arm_curve(loss, gaps, cost, sigma, bound=setup.largest)
        found["known-gap oracle, upper bound"] = upper.oracle(loss, gaps, cost, sigma)
        found["BreakevenRacing, upper bound"] = breakeven.two_arm_integral(loss, gaps, cost, sigma)
    elif regret:
        found["DBCARE, upper bound"] = upper.simple_regret(hardness, gaps, arms, cost, sigma, bound=setup.largest)
    else:
        found["DBCARE, upper bound"] = upper.misidentification(hardness, arms, cost, sigma)
    found["guess"] = guess
    found["any policy, lower bound"] = least
    return {name: np.asarray(values, dtype=np.float64) for name, values in found.items()}


LOOKS_OF = {
    "DBCARE, upper bound": "dbcare",
    "known-gap oracle, upper bound": "known-gap-oracle",
    "BreakevenRacing, upper bound": "breakeven-racing",
    "guess": "guess",
    "any policy, lower bound": THEORY,
}


def plots(setup: Setup) -> list[Plot]:
    """One for each loss."""
    return [
        Plot(
            words(loss).capitalize(),
            setup.gaps,
            AXIS["gap"],
            "risk",
            tuple(PlotLine(name, LOOKS_OF[name], values) for name, values in bounds(setup, loss).items()),
        )
        for loss in Loss
    ]
