"""The paper's figure of bounds (Section 2): what theory says of two arms, against the gap.

The paper does not state the cost or sigma of this figure; ours are those of its two-arm experiments. The upper curve
of DBCARE is the piecewise one behind the corollaries, which shows the transition that the text describes.
"""

from pathlib import Path

import numpy as np

from dbcare.lab.figures import BLACK, BLUE, PURPLE, RED, Line, Panel, draw
from dbcare.risk import Loss
from dbcare.theory import lower, upper

COST = 1e-4
SIGMA = 1.0
GAPS = np.geomspace(3e-3, 3.0, 400)
BOUND = 3.0  # the largest gap shown; it enters a logarithm only


def panel(loss: Loss) -> Panel:
    """Every bound for one loss."""
    known = np.asarray(upper.oracle(loss, GAPS, COST, SIGMA))
    curve = np.asarray(upper.two_arm_curve(loss, GAPS, COST, SIGMA, bound=BOUND))
    return Panel(
        str(loss).replace("_", " "),
        (
            Line("guess", PURPLE, "--", GAPS, np.asarray(upper.two_arm_guess(loss, GAPS))),
            Line("DBCARE, upper bound", BLUE, "-", GAPS, curve),
            Line("known-gap oracle, upper bound", RED, "-.", GAPS, known),
            Line("any policy, lower bound", BLACK, "-", GAPS, np.asarray(lower.two_arm(loss, GAPS, COST, SIGMA))),
        ),
    )


def draw_bounds(folder: Path) -> list[Path]:
    """Write the figure and its numbers."""
    title = f"Bounds for two arms, cost {COST:g} a pull, sigma {SIGMA:g}"
    return draw(folder, "bounds", title, [panel(loss) for loss in Loss])
