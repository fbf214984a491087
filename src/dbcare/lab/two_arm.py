"""The paper's two-arm experiments (Section 4): risk against the gap, here without Monte Carlo error.

Gaussian means +-gap/2 with sigma 1, gaps from 0.05 to 2; Bernoulli means 1/2 +- gap/2, sigma 1/2, gaps from 0.01 to
0.95; cost 1e-4. The paper averages 1e5 runs a point; the exact engine needs none.

Left open by the paper, our decisions: 40 gaps in geometric steps; B = 1 for Bernoulli and the largest gap for Gaussian
arms (it enters a logarithm only); the fixed-confidence rule is `TwoArmConfidence` with its default rate, stopped at
10/c pulls.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from dbcare.engines.grid import evaluate_grid
from dbcare.lab.figures import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Line, Panel, draw
from dbcare.policies.dbcare import DBCARE
from dbcare.policies.fixed import KnownGapOracle
from dbcare.policies.halving import SequentialHalving
from dbcare.policies.policy import Policy
from dbcare.policies.racing import TwoArmConfidence
from dbcare.risk import Loss, Risk
from dbcare.theory import lower

COST = 1e-4
MOST_PULLS = round(10 / COST)
FAMILIES = {
    "gaussian": (1.0, 2.0, np.geomspace(0.05, 2.0, 40)),
    "bernoulli": (0.5, 1.0, np.geomspace(0.01, 0.95, 40)),
}


def panel(family: str, loss: Loss) -> Panel:
    """All policies of the experiment on one family, under one loss."""
    sigma, bound, gaps = FAMILIES[family]
    risk = Risk(loss, COST)
    looks: dict[str, tuple[Policy | Callable[[float], Policy], str, str]] = {
        "Sequential Halving, T = 10": (SequentialHalving(2, 10), ORANGE, "--"),
        "Sequential Halving, T = 500": (SequentialHalving(2, 500), RED, "--"),
        "fixed confidence 0.1": (TwoArmConfidence(0.1, sigma, max_pulls=MOST_PULLS), SKY, "-."),
        "fixed confidence 0.01": (TwoArmConfidence(0.01, sigma, max_pulls=MOST_PULLS), GREEN, "-."),
        "known-gap oracle": (lambda gap: KnownGapOracle(risk, gap, sigma), PURPLE, ":"),
        "DBCARE": (DBCARE(risk, 2, sigma, bound), BLUE, "-"),
    }
    lines = [
        Line(label, colour, style, gaps, evaluate_grid(policy, gaps, family, sigma).risk(risk))
        for label, (policy, colour, style) in looks.items()
    ]
    lines.append(Line("lower bound", BLACK, "-", gaps, np.asarray(lower.two_arm(loss, gaps, COST, sigma))))
    return Panel(f"{family.capitalize()}, {str(loss).replace('_', ' ')}", tuple(lines))


def draw_two_arm(folder: Path) -> list[Path]:
    """Write the figure and its numbers."""
    panels = [panel(family, loss) for family in FAMILIES for loss in Loss]
    return draw(folder, "two_arm", f"Two arms, cost {COST:g} a pull, exact", panels)
