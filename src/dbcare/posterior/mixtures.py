"""Quantiles of a mixture of normal distributions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

REACH = 6.0  # standard deviations from a component's center to the ends of the search
STEPS = 12  # of Newton's method with bisection where it would leave the bracket
TOLERANCE = 1e-9  # of the probability


def find_quantiles(centers: Floats, spreads: Floats, weights: Floats, shares: Sequence[float]) -> tuple[float, ...]:
    """Return the values below which the mixture has these shares of its mass."""
    return tuple(_find_quantile(centers, spreads, weights, share) for share in shares)


def _find_quantile(centers: Floats, spreads: Floats, weights: Floats, share: float) -> float:
    from scipy.special import ndtr, ndtri  # noqa: PLC0415  # takes a while to import, and few need it

    low, high = float((centers - REACH * spreads).min()), float((centers + REACH * spreads).max())
    mean = float(weights @ centers)
    deviation = float(np.sqrt(weights @ (np.square(spreads) + np.square(centers - mean))))
    x = min(high, max(low, mean + deviation * float(ndtri(share))))
    for _ in range(4 * STEPS):
        z = (x - centers) / spreads
        excess = float(weights @ ndtr(z)) - share
        if abs(excess) < TOLERANCE:
            break
        low, high = (low, x) if excess > 0.0 else (x, high)
        density = float(weights @ (np.exp(-0.5 * np.square(z)) / spreads)) / np.sqrt(2.0 * np.pi)
        step = x - excess / density if density > 0.0 else low
        x = float(step) if low < step < high else 0.5 * (low + high)
    return x
