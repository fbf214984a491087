"""When data contradict an assumption: the chance of a false alarm, and how unlikely shares are."""

from __future__ import annotations

import math

FALSE_ALARM_CHANCE = 1e-6


def measure_divergence(share: float, other: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli laws."""
    total = 0.0
    for one, two in ((share, other), (1.0 - share, 1.0 - other)):
        if one > 0.0:
            total += one * math.log(one / two) if two > 0.0 else math.inf
    return total
