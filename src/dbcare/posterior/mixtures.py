"""Quantiles of mixtures of normal distributions."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dbcare.theory import normal

Floats = npt.NDArray[np.float64]

MAX_STEPS = 50  # of Newton's method, with bisection where that would leave the bracket
TOLERANCE = 1e-7  # of the probability


def find_quantiles(centers: Floats, spreads: Floats, weights: Floats, share: float) -> Floats:
    """Return the values below which mixtures have this share of their mass.

    The mixtures are the columns of `centers` and `spreads`; their components have the same weights. A quantile lies
    between the least and the largest of the components.
    """
    target = NormalDist().inv_cdf(share)
    each = centers + spreads * target
    low, high = each.min(axis=0), each.max(axis=0)
    x = weights @ each
    for _ in range(MAX_STEPS):
        z = (x - centers) / spreads
        reached = weights @ normal.cumulative(z)
        is_found = np.abs(reached - share) < TOLERANCE
        if is_found.all():
            break
        low, high = np.where(reached > share, low, x), np.where(reached > share, x, high)
        # Newton's method on the normal quantile of F(x), which is almost a straight line.
        u = normal.quantile(reached)
        slope = weights @ (np.exp(-0.5 * np.square(z)) / spreads) * np.exp(0.5 * np.square(u))
        step = x - (u - target) / slope
        x = np.where(is_found, x, np.where((low < step) & (step < high), step, 0.5 * (low + high)))
    return np.asarray(x)
