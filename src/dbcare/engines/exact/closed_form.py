"""Closed forms for two arms that are each pulled a fixed number of times: halving, uniform, oracle, and the guess."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dbcare.engines.exact.accumulator import Floats


def gaussian_error(pulls: npt.ArrayLike, gaps: npt.ArrayLike, sigma: float) -> Floats:
    """P(the worse of two Gaussian arms has the larger mean after `pulls` of each) = Q(gap sqrt(pulls / (2 sigma^2))).

    Q is the upper tail of the standard normal law, so 0 pulls give 1/2. `pulls` is one number or one per gap.
    """
    separations = np.atleast_1d(np.asarray(gaps, dtype=np.float64) * np.sqrt(np.asarray(pulls, dtype=np.float64)))
    return np.array([0.5 * math.erfc(separation / (2.0 * sigma)) for separation in separations])


def bernoulli_error(pulls: int, best: float, other: float) -> float:
    """P(the worse of two Bernoulli arms has more successes in `pulls` of each), counting half of the ties.

    The sum over k of P(best = k) (P(other > k) + P(other = k)/2), both binomial.
    """
    first = min(window(pulls, best)[0], window(pulls, other)[0])
    last = max(window(pulls, best)[1], window(pulls, other)[1])
    if window(pulls, other)[1] < window(pulls, best)[0]:
        return 0.0
    best_law, other_law = binomial(pulls, best, first, last), binomial(pulls, other, first, last)
    above = np.cumsum(other_law[::-1])[::-1] - other_law
    return float(best_law @ (above + 0.5 * other_law))


def window(trials: int, chance: float) -> tuple[int, int]:
    """Return the range of successes that matter: within 40 standard deviations plus 1,000 of the mean."""
    mean, reach = trials * chance, 40.0 * math.sqrt(trials * chance * (1.0 - chance)) + 1_000.0
    return max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))


def binomial(trials: int, chance: float, first: int, last: int) -> Floats:
    """Return the binomial law from `first` to `last`, a range that contains its mode.

    It multiplies ratios of neighbors from the mode outward, so every term is accurate.
    """
    law = np.zeros(last - first + 1)
    mode = min(int((trials + 1) * chance), trials) - first
    law[mode] = 1.0
    if 0.0 < chance < 1.0:
        k = np.arange(first + 1, last + 1)
        ratios = (trials - k + 1) / k * (chance / (1.0 - chance))
        law[mode + 1 :] = np.cumprod(ratios[mode:])
        law[:mode] = np.cumprod(1.0 / ratios[:mode][::-1])[::-1]
    return np.asarray(law / law.sum())
