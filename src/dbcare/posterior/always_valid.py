"""Intervals that hold however often one looks, and whenever one stops, for rewards whose spread is known.

Studies use them for rewards without a known range, with an estimated spread: they are then approximate. For bounded
rewards, `posterior.bounded` has intervals that need no spread.

Half-widths follow from mixing the exponential martingale of a sum of sub-Gaussian rewards over a normal law (Robbins
1970; Howard, Ramdas, McAuliffe and Sekhon 2021, equation 14): with probability at least 1 - alpha, the sum of n rewards
is never further than sigma sqrt((n + r)(2 ln(1/alpha) + ln((n + r)/r))) from its mean, whatever the constant r > 0. It
only tells at which n the interval is narrowest. For a difference of two means, the martingales are multiplied, and the
Cauchy-Schwarz inequality bounds the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dbcare.problem.risk import Loss

REGRET_LENGTH = 0.43  # rewards of the chosen arm when Breakeven stops, over (sigma/c)^(2/3)
ERROR_LENGTH = 0.05  # for misidentification, over 1/c: between what easy and what hard problems take


def expect_rewards(loss: Loss, cost: float, sigma: float) -> float:
    """Return about how many rewards a chosen arm has in the end, for a cost in units of the loss."""
    return REGRET_LENGTH * (sigma / cost) ** (2.0 / 3.0) if loss is Loss.SIMPLE_REGRET else ERROR_LENGTH / cost


@dataclass(frozen=True)
class AlwaysValid:
    """Always-valid intervals with error chance `alpha`, narrowest at about `rewards` rewards.

    They hold if no reward varies by more than the `deviation` they are given, in the sub-Gaussian sense.

    Parameters
    ----------
    alpha : float
        Chance that the interval ever misses.
    rewards : float
        Number of rewards at which it is narrowest.

    Examples
    --------
    >>> from dbcare.posterior import AlwaysValid
    >>> round(AlwaysValid(alpha=0.05, rewards=100).margin(1.0, 100), 3)
    0.302
    """

    alpha: float
    rewards: float

    @property
    def r(self) -> float:
        """The constant of the mixture, in rewards."""
        x = 2.0 * math.log(1.0 / self.alpha)
        return self.rewards / (x + math.log1p(x))

    def margin(self, deviation: float, count: int) -> float:
        """Return the half-width for the mean of `count` rewards."""
        r = self.r
        spread = 2.0 * math.log(1.0 / self.alpha) + math.log((count + r) / r)
        return deviation * math.sqrt((count + r) * spread) / count

    def lead_margin(self, deviations: tuple[float, float], counts: tuple[int, int]) -> float:
        """Return the half-width for the difference of two means."""
        r = self.r
        spread = 2.0 * math.log(1.0 / self.alpha) + sum(math.log((count + r) / r) for count in counts)
        scale = sum(deviation**2 * (count + r) / count**2 for deviation, count in zip(deviations, counts, strict=True))
        return math.sqrt(scale * spread)
