"""The same number of pulls of every arm, one of which is better than all others, which are alike: exactly.

The largest mean is chosen, and ties are broken at random. With K arms and n pulls of each, a wrong choice has the
chance

    Gaussian:  integral of phi(z) (1 - Phi(z + gap sqrt(n) / sigma)^(K - 1)) dz
    rates:     sum over x of f_q(x) (1 - (F(x)^K - F(x - 1)^K) / (K f_p(x)))

where q is the best rate, p all others, and f and F are the binomial law of n pulls, F of the rate p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import bdtrc, gammaln, log_ndtr, xlog1py, xlogy

from dbcare.engines.exact.law import Floats

Z = np.linspace(-14.0, 14.0, 801)  # the trapezoidal rule is exact to rounding for such integrands
PHI = np.exp(-0.5 * Z**2) * (Z[1] - Z[0]) / math.sqrt(2.0 * math.pi)
STEPS_PER_DEVIATION = 100  # of the binomial law, where it is wider: relative error below 2e-5
REACH = 12.0  # standard deviations
FEW_SIZES = 24  # all of which are tried
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True)
class OneBest:
    """Arms of which one has the mean `best` and all others `other`; rates, unless a `sigma` is given."""

    arms: int
    best: float
    other: float
    sigma: float | None = None

    def chance_wrong(self, pulls: int) -> float:
        """Return the chance of a wrong choice after this many pulls of each arm."""
        if pulls == 0:
            return 1.0 - 1.0 / self.arms
        if self.sigma is not None:
            lead = (self.best - self.other) * math.sqrt(pulls) / self.sigma
            return float(PHI @ -np.expm1((self.arms - 1) * log_ndtr(Z + lead)))
        if self.other == 0.0:  # a tie at no success
            return (1.0 - self.best) ** pulls * (1.0 - 1.0 / self.arms)
        return self._chance_of_rates(pulls)

    def _chance_of_rates(self, pulls: int) -> float:
        deviation = math.sqrt(pulls * self.best * (1.0 - self.best))
        step = max(1, math.floor(deviation / STEPS_PER_DEVIATION))
        first = max(0, math.floor(pulls * self.best - REACH * deviation - 30.0))
        x = np.arange(first, min(pulls, math.ceil(pulls * self.best + REACH * deviation + 30.0)) + 1, step, dtype=float)
        weights = np.exp(_log_binomial(x, pulls, self.best))
        above = bdtrc(x, pulls, self.other)
        log_below = np.log1p(-np.minimum(above, 1.0 - 1e-16))  # ln F(x)
        tied = np.exp(np.minimum(_log_binomial(x, pulls, self.other) - log_below, 0.0))  # f(x) / F(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            # (F(x)^K - F(x-1)^K) / (K f(x)) = F(x)^(K-1) (1 - (1 - tied)^K) / (K tied)
            share = np.where(tied > 0.0, -np.expm1(self.arms * np.log1p(-tied)) / (self.arms * tied), 1.0)
        wrong = -np.expm1((self.arms - 1) * log_below + np.log(share))
        return float(weights @ wrong / weights.sum())

    @cached_property
    def like_gaussian(self) -> OneBest:
        """Gaussian arms of the same means and about the same spread."""
        if self.sigma is not None:
            return self
        variance = (self.best * (1.0 - self.best) + self.other * (1.0 - self.other)) / 2.0
        return OneBest(self.arms, self.best, self.other, math.sqrt(max(variance, 1e-12)))

    def best_size(self, loss: float, cost: float, least: int = 0) -> int:
        """Return the pulls of each arm that minimize the loss of a wrong choice, times its chance, plus their cost."""
        largest = max(least, 1, math.ceil(loss / (self.arms * cost)))

        def total(one_best: OneBest, size: int) -> float:
            return loss * one_best.chance_wrong(size) + self.arms * size * cost

        series = np.geomspace(max(1, least), largest, 32).round().astype(np.int64)
        grid: list[int] = np.unique(series).tolist()
        near = min(range(len(grid)), key=lambda place: total(self.like_gaussian, grid[place]))
        low, high = grid[max(0, near - 1)], grid[min(len(grid) - 1, near + 1)]
        while high - low > max(FEW_SIZES, high // 1_000):  # golden section
            width = round(GOLDEN * (high - low))
            one, other = high - width, low + width
            if total(self, one) <= total(self, other):
                high = other
            else:
                low = one
        sizes = range(low, high + 1) if high - low <= FEW_SIZES else [(low + high) // 2]
        return int(min([least, *sizes], key=lambda size: total(self, size)))


def _log_binomial(x: Floats, trials: int, chance: float) -> Floats:
    """Return the logarithm of the binomial law."""
    ways = gammaln(trials + 1.0) - gammaln(x + 1.0) - gammaln(trials - x + 1.0)
    return np.asarray(ways + xlogy(x, chance) + xlog1py(trials - x, -chance))
