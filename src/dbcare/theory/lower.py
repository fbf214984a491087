"""Lower bounds: risks that no policy can beat on every instance of a class."""

import math

import numpy as np
from numpy.typing import ArrayLike

from dbcare.problem.risk import Loss
from dbcare.theory import arguments
from dbcare.theory.arguments import FloatOrFloats


def misidentification(complexity: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Compute the misidentification risk that every policy has on some instance of complexity at most H.

    (sigma^2 c H / 4) ln(e / (sigma^2 c H)) if H <= 1 / (sigma^2 c), else 1/4

    Theorem 1. A risk in [0, 1/4], continuous in H; an infinite complexity stands for all instances.
    """
    complexity = arguments.positive("complexity", complexity, infinite=True)
    cost = arguments.positive("cost", cost)
    sigma = arguments.positive("sigma", sigma)
    return _minimum_share(sigma**2 * cost * complexity) / 4.0


def simple_regret(
    complexity: ArrayLike,
    smallest_gap: ArrayLike,
    cost: ArrayLike,
    sigma: ArrayLike = 1.0,
) -> FloatOrFloats:
    """Compute the simple-regret risk that every policy has on some instance of complexity at most H.

    (sigma^2 c H / 4) ln(e Delta_2 / (sigma^2 c H)) if H / Delta_2 <= 1 / (sigma^2 c), else Delta_2 / 4

    Theorem 3, with Delta_2 the smallest gap. In units of reward, continuous; 0 for a gap of 0.
    """
    complexity = arguments.positive("complexity", complexity, infinite=True)
    gap = arguments.non_negative("smallest_gap", smallest_gap)
    cost = arguments.positive("cost", cost)
    sigma = arguments.positive("sigma", sigma)
    with np.errstate(divide="ignore", over="ignore"):  # infinitely hard at a gap of 0
        hardness = sigma**2 * cost * complexity / gap
    return gap * _minimum_share(hardness) / 4.0


def simple_regret_minimax(arms: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Compute H*_SR, the simple-regret risk that every policy has on some instance of K arms.

    (3/8) ((K-1) sigma^2 c / e)^(1/3)

    Theorem 3, minimax part: the largest `simple_regret` over instances with equal gaps, attained at
    Delta = (sqrt(e) (K-1) sigma^2 c)^(1/3). In units of reward; the means need room for twice that gap.
    """
    arms = arguments.whole("arms", arms, at_least=2)
    cost = arguments.positive("cost", cost)
    sigma = arguments.positive("sigma", sigma)
    return 0.375 * np.cbrt((arms - 1.0) * sigma**2 * cost / math.e)


def two_arm(loss: Loss, gap: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Compute the risk that every policy has on some two-arm instance with the given gap.

    The theorems' bounds with H = Delta^-2, Delta_2 = Delta: a transition at Delta = (sigma^2 c)^(1/2) for
    misidentification, (sigma^2 c)^(1/3) for simple regret.

    Corollaries of Theorems 1 and 3; they hold even for a policy that knows the gap. In units of the loss; a gap of 0
    gives the limit from above.
    """
    gap = arguments.non_negative("gap", gap)
    with np.errstate(divide="ignore", over="ignore"):  # infinitely complex at a gap of 0
        complexity = 1.0 / gap**2
    if arguments.loss(loss) is Loss.MISIDENTIFICATION:
        return misidentification(complexity, cost, sigma)
    return simple_regret(complexity, gap, cost, sigma)


def _minimum_share(hardness: FloatOrFloats) -> FloatOrFloats:
    """Compute x ln(e / x) up to x = 1, then 1: the minimum of exp(-t) + x t over t >= 0."""
    capped = np.clip(hardness, np.finfo(np.float64).tiny, 1.0)
    return capped * (1.0 - np.log(capped))
