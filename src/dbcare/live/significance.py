"""When data contradict an assumption: the chance of a false alarm, and how unlikely shares are."""

from __future__ import annotations

import math
from typing import NamedTuple

FALSE_ALARM_CHANCE = 1e-6  # at one look
MISSING_ALARM_CHANCE = 0.01  # in a study's whole life, however often one looks


def measure_divergence(share: float, other: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli laws."""
    total = 0.0
    for one, two in ((share, other), (1.0 - share, 1.0 - other)):
        if one > 0.0:
            total += one * math.log(one / two) if two > 0.0 else math.inf
    return total


class Shares(NamedTuple):
    """How many trials had no answer, of how many: those in the wake of a trial without one, and all others."""

    missing: int
    trials: int
    missing_in_wake: int = 0
    wake: int = 0


def weigh_shares(first: Shares, second: Shares) -> float:
    """Return the logarithm of the evidence that two groups of trials differ in missing answers.

    That is the likelihood with rates of their own, mixed over Jeffreys' priors, over the largest one with the same
    rates for both, where the rate in the wake of a missing answer is at least the other one, as in outages. If that is
    the truth, whatever the rates, and however the next one to look at is chosen, the ratio ever exceeds 1/alpha with a
    chance of at most alpha: it is never above a mixture of likelihood ratios to the truth, which is a martingale (Ville
    1939; Wasserman, Ramdas and Balakrishnan 2020).
    """
    both = Shares(*map(sum, zip(first, second, strict=True)))
    mixed = sum(_mix(own.missing, own.trials) + _mix(own.missing_in_wake, own.wake) for own in (first, second))
    if both.missing * both.wake > both.missing_in_wake * both.trials:
        return mixed - _fit(both.missing + both.missing_in_wake, both.trials + both.wake)
    return mixed - _fit(both.missing, both.trials) - _fit(both.missing_in_wake, both.wake)


def _fit(some: int, of: int) -> float:
    """Return the logarithm of the largest chance of a sequence, over all rates."""
    return sum(part * math.log(part / of) for part in (some, of - some) if part)


def _mix(some: int, of: int) -> float:
    """Return the logarithm of the mean chance of a sequence, over rates from a beta law with parameters 1/2."""
    return math.lgamma(some + 0.5) + math.lgamma(of - some + 0.5) - math.lgamma(of + 1.0) - math.log(math.pi)
