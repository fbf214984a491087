"""The upper tail of an arm's rewards: whether the mean rests on few of them, and what a cap would do about that."""

from __future__ import annotations

import math
from bisect import insort
from dataclasses import dataclass, field

LARGEST_KEPT = 5  # rewards; the last of them is where a cap is tried
MIN_TRIALS = 100  # with fewer, the shape cannot be as large as MIN_SHAPE, but for rounding
MIN_SHAPE = 15.0
MIN_SHARE = 0.25  # of the variance, that a cap would remove
ROUNDING = 1e-9  # a smaller share counts as nothing


@dataclass
class Tail:
    """The largest of an arm's rewards as they count, higher moments, and how many rewards were above the cap."""

    capped: int = 0
    cubes: float = 0.0  # sum of the third powers of deviations from the mean
    fourths: float = 0.0  # of the fourth powers
    largest: list[float] = field(default_factory=list)  # in ascending order

    def add(self, reward: float, deviation: float, trials: int, squares: float) -> None:
        """Add a reward (Terriberry 2007).

        `deviation` is that from the mean before it, `squares` the sum of squares before it, and `trials` counts it.
        """
        step = deviation / trials
        term = deviation * step * (trials - 1)
        self.fourths += term * step * step * (trials * trials - 3 * trials + 3)
        self.fourths += 6.0 * step * step * squares - 4.0 * step * self.cubes
        self.cubes += term * step * (trials - 2) - 3.0 * step * squares
        if len(self.largest) < LARGEST_KEPT or reward > self.largest[0]:
            insort(self.largest, reward)
            del self.largest[:-LARGEST_KEPT]

    def measure_shape(self, trials: int, squares: float) -> float:
        """Return the kurtosis minus the squared skewness minus 1.

        No distribution has less than 0, which is that of any two values (Pearson 1916), so rare rewards alone don't
        make it large; uneven ones do. It is 0.8 for uniform, 2 for normal and 4 for exponential rewards.
        """
        deviation = math.sqrt(squares / trials)
        if deviation == 0.0:
            return 0.0
        skewness = self.cubes / trials / deviation / deviation / deviation
        kurtosis = self.fourths / trials / deviation / deviation / deviation / deviation
        return kurtosis - skewness * skewness - 1.0


@dataclass(frozen=True)
class CapEffect:
    """What a cap at an arm's fifth largest reward does to its mean and spread."""

    cap: float
    mean: float
    variance: float  # of a reward
    share_removed: float  # of the variance without the cap
    mean_without_largest: float

    @property
    def leaves_spread(self) -> bool:
        """Whether rewards still differ with the cap: it is above the bulk of them."""
        return self.cap > self.mean_without_largest and self.share_removed < 1.0 - ROUNDING


def find_heavy_tail(tail: Tail, trials: int, mean: float, squares: float) -> CapEffect | None:
    """Return what a cap would do about a heavy upper tail; None if there is none.

    A tail is heavy if the shape is at least 15 and a cap at the fifth largest reward removes a quarter of the variance.
    That takes more than 100 rewards, since the shape is at most 4/27 of their number. Of arms with normal, uniform, or
    Bernoulli rewards, none in 100,000 has one at any size; of arms with exponential rewards 2 in 1,000 have at 200 to
    400 rewards, and fewer at other sizes. Of studies with three arms whose rewards are 0 in 96% and log-normal in the
    others (sigma of the logarithm 1 to 2), or Pareto with exponent 2.2, 6 to 7 of 10 show one at 300 rewards per arm
    and 9 of 10 at 500.
    """
    if trials < MIN_TRIALS or not tail.measure_shape(trials, squares) >= MIN_SHAPE:
        return None
    cap = tail.largest[0]
    removed = sum(reward - cap for reward in tail.largest)
    shift = removed / trials
    capped_squares = squares - sum((reward - mean) ** 2 - (cap - mean) ** 2 for reward in tail.largest)
    capped_squares -= trials * shift * shift
    share = 1.0 - capped_squares / squares
    if not share >= MIN_SHARE:
        return None
    others = mean * trials - sum(tail.largest)
    if abs(others) < ROUNDING * abs(mean) * trials:
        others = 0.0
    return CapEffect(
        cap=cap,
        mean=mean - shift,
        variance=max(capped_squares, 0.0) / (trials - 1),
        share_removed=share,
        mean_without_largest=others / (trials - len(tail.largest)),
    )
