"""Kullback-Leibler divergence of Bernoulli distributions, and confidence bounds for means of rewards in [0, 1].

A mean p of n such rewards is at least q away with a probability of at most exp(-n kl(p, q)), whatever their
distribution on [0, 1]. Plain arithmetic, compiled together with the rules.
"""

import math

SMALLEST = 1e-16  # means and bounds nearer to 0 or 1 count as this far away
MAX_STEPS = 50
PRECISION = 1e-13  # of a bound, relative to its distance from 1


def divergence(p: float, q: float) -> float:
    """Return kl(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q))."""
    near = min(max(q, SMALLEST), 1.0 - SMALLEST)
    value = 0.0
    if p > 0.0:
        value += p * math.log(p / near)
    if p < 1.0:
        value += (1.0 - p) * math.log((1.0 - p) / (1.0 - near))
    return max(value, 0.0)


def upper_bound(p: float, level: float) -> float:
    """Return the largest q with kl(p, q) <= level.

    Newton's method from the right of the root of a convex function, where it never oversteps. It starts at the smaller
    of two points that are not below the root: kl(p, q) >= 2 (q - p)^2, and kl(p, q) >= (1-p) ln(1/(1-q)) - h(p), with
    the entropy h.
    """
    if p >= 1.0 - SMALLEST:
        return 1.0
    if p <= 0.0:
        return 1.0 - math.exp(-level)
    entropy = -p * math.log(p) - (1.0 - p) * math.log(1.0 - p)
    q = min(p + math.sqrt(0.5 * level), 1.0 - math.exp(-(level + entropy) / (1.0 - p)), 1.0 - SMALLEST)
    for _ in range(MAX_STEPS):
        if q <= p:
            break
        step = (divergence(p, q) - level) * q * (1.0 - q) / (q - p)
        q -= step
        if step <= PRECISION * (1.0 - q):
            break
    return max(q, p)


def lower_bound(p: float, level: float) -> float:
    """Return the smallest q with kl(p, q) <= level."""
    return 1.0 - upper_bound(1.0 - p, level)
