"""When data contradict an assumption: the chance of a false alarm, and how unlikely shares are."""

from __future__ import annotations

import math

FALSE_ALARM_CHANCE = 1e-6  # at one look
MISSING_ALARM_CHANCE = 0.01  # in a study's whole life, however often one looks


def measure_divergence(share: float, other: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli laws."""
    total = 0.0
    for one, two in ((share, other), (1.0 - share, 1.0 - other)):
        if one > 0.0:
            total += one * math.log(one / two) if two > 0.0 else math.inf
    return total


def weigh_shares(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Return the logarithm of the evidence that two shares differ: pairs of how many of how many.

    That is the likelihood with one rate for each, mixed over Jeffreys' priors, over the largest one with the same rate
    for both. If that is the truth, whatever the rate, and however the next one to look at is chosen, the ratio ever
    exceeds 1/alpha with a chance of at most alpha: it is never above a mixture of likelihood ratios to the truth, which
    is a martingale (Ville 1939; Wasserman, Ramdas and Balakrishnan 2020).
    """
    some, of = first[0] + second[0], first[1] + second[1]
    together = sum(part * math.log(part / of) for part in (some, of - some) if part)
    return _mix(*first) + _mix(*second) - together


def _mix(some: int, of: int) -> float:
    """Return the logarithm of the mean chance of a sequence, over rates from a beta law with parameters 1/2."""
    return math.lgamma(some + 0.5) + math.lgamma(of - some + 0.5) - math.lgamma(of + 1.0) - math.log(math.pi)
