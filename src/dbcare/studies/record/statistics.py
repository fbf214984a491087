"""Statistics of rewards and the history of a study, in constant memory.

The moments depend on the number of rewards alone, so everybody sees the same curve, whoever looked before.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

GROWTH = 1.15  # rewards from one moment to the next: 89 moments in a million rewards

Compute = Callable[[], float | None]


@dataclass
class LossCurve:
    """Numbers of rewards counted, and the expected loss of stopping then; `pending` are those not computed yet."""

    points: list[list[float]] = field(default_factory=list)
    seen: int = 0  # rewards at the last moment taken
    pending: list[tuple[int, Compute]] = field(default_factory=list)

    def add(self, rewards: int, prepare: Callable[[], Compute]) -> None:
        """Take a moment, if it is due; `prepare` keeps what the loss is computed from."""
        if rewards >= GROWTH * self.seen:
            self.seen = rewards
            self.pending.append((rewards, prepare()))

    def compute(self) -> list[list[float]]:
        """Return all points, after computing what is pending."""
        for rewards, compute in self.pending:
            loss = compute()
            if loss is not None:
                self.points.append([rewards, loss])
        self.pending.clear()
        return self.points

    def latest(self) -> float | None:
        """Return the loss at the last moment that has one."""
        points = self.compute()
        return points[-1][1] if points else None

    def at(self, rewards: list[int], now: float | None) -> list[float | None]:
        """Return the loss at other moments, the last of which is `now`: None before the first that is known.

        In between, its logarithm is on a line.
        """
        known = list(self.compute())
        if now is not None and rewards and (not known or known[-1][0] < rewards[-1]):
            known.append([rewards[-1], now])
        if not known:
            return [None] * len(rewards)
        counts, losses = np.array(known).T
        logs = np.interp(rewards, counts, np.log(np.maximum(losses, np.finfo(float).tiny)))
        return [None if count < counts[0] else math.exp(log) for count, log in zip(rewards, logs.tolist(), strict=True)]


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


MIN_REWARDS = 5  # of an arm, and as many that differ from its most common reward
MIN_REWARDS_FOR_CHANCE = 25  # of the chosen arm: with fewer, stops with a chance over 90% were right in 61 to 82%


@dataclass
class Variety:
    """How often each reward came, until MIN_REWARDS differ from the most common one.

    From then on they always do: the number of those that differ never falls. Until then there are at most MIN_REWARDS
    different rewards, so this stays small.
    """

    counts: list[list[float]] = field(default_factory=list)  # pairs of a reward and its number
    is_enough: bool = False

    def add(self, reward: float) -> None:
        """Count a reward."""
        if self.is_enough:
            return
        for pair in self.counts:
            if pair[0] == reward:
                pair[1] += 1
                break
        else:
            self.counts.append([reward, 1])
        numbers = [number for _, number in self.counts]
        if sum(numbers) - max(numbers) >= MIN_REWARDS:
            self.is_enough, self.counts = True, []


MAX_BLOCKS = 16  # an arm's rewards are summed in at least half as many blocks of equal length
MAX_POINTS = 200  # a history keeps at least half as many points
MAX_CURVE_POINTS = 40


@dataclass
class ArmStatistics:
    """An arm's rewards, in the order counted, and how often its trials had an outcome."""

    trials: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of deviations from the mean
    variation: float = 0.0  # of squared deviations, of each reward but the first from the mean of those before it
    answered: int = 0  # trials that gave a reward, including those after the stop
    interruptions: int = 0  # trials without a reward, but for those in the wake of another one
    wake: int = 0  # trials in the wake of one without a reward: the next one, or with a lease that ended by then
    missing_in_wake: int = 0  # of these, those without a reward
    length: int = 1  # of a block
    blocks: list[float] = field(default_factory=list)  # sums of `length` rewards each, except the last
    tail: Tail = field(default_factory=Tail)
    variety: Variety = field(default_factory=Variety)

    def add(self, reward: float) -> None:
        """Add a reward as it counts (Welford 1962)."""
        if self.trials % self.length == 0:
            if len(self.blocks) == MAX_BLOCKS:
                self.blocks = [sum(self.blocks[place : place + 2]) for place in range(0, MAX_BLOCKS, 2)]
                self.length *= 2
            self.blocks.append(0.0)
        self.blocks[-1] += reward
        self.trials += 1
        deviation = reward - self.mean
        if self.trials > 1:
            self.variation += deviation * deviation
        self.tail.add(reward, deviation, self.trials, self.squares)
        self.variety.add(reward)
        self.mean += deviation / self.trials
        self.squares += deviation * (reward - self.mean)

    @property
    def late(self) -> int:
        """Rewards that came, or had their turn, after the stop."""
        return self.answered - self.trials

    @property
    def capped(self) -> int:
        """Counted rewards that were above the cap."""
        return self.tail.capped

    @property
    def variance(self) -> float:
        """Variance of a reward; infinite before there are two."""
        return self.squares / (self.trials - 1) if self.trials > 1 else math.inf

    def halves(self) -> tuple[tuple[int, float], tuple[int, float]] | None:
        """Return number and mean of the earlier and of the later rewards; None if there are too few blocks."""
        early = len(self.blocks) // 2
        if early == 0:
            return None
        first = early * self.length
        later = self.trials - first
        return (first, sum(self.blocks[:early]) / first), (later, sum(self.blocks[early:]) / later)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but tail and variety, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if name not in ("tail", "variety")}


@dataclass
class TrialCounts:
    """What became of an arm's trials, beside the rewards that `ArmStatistics` has."""

    missing: int = 0  # failed, or expired without a reward, each of them
    expired: int = 0  # of all trials, those whose lease ended without a reward
    failed: int = 0  # failed, and charged anyway
    surplus: int = 0  # brought a reward after they had expired and been replaced, and were charged
    late_expired: int = 0  # expired after the stop, and counted as the reward stated for that
    added: int = 0  # observations made elsewhere, which are never missing


@dataclass
class Charges:
    """What an arm's trials cost beyond its stated price, as reported: in all, and by what became of them."""

    trials: int = 0  # charged
    excess: float = 0.0
    counted: float = 0.0
    late: float = 0.0
    failed: float = 0.0
    surplus: float = 0.0
    wasted: float = 0.0  # all that failed trials cost, not only the excess, where a policy with blocks counts them


@dataclass
class History:
    """Points of a curve, thinned out evenly as it grows."""

    stride: int = 1
    seen: int = 0
    points: list[list[float | None]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # when each of them was reached
    _drawn = ((0, 0), "")  # the curve, and as of when; no field, since it follows from the points

    def add(self, point: Callable[[], list[float | None]], at: float) -> None:
        """Add the curve's next point, computed and kept only if it is due."""
        if self.seen % self.stride == 0:
            if len(self.points) == MAX_POINTS:
                self.points, self.times = self.points[::2], self.times[::2]
                self.stride *= 2
            self.points.append(point())
            self.times.append(at)
        self.seen += 1

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the times, ready for JSON."""
        return {"stride": self.stride, "seen": self.seen, "points": self.points}

    def curve(self) -> str:
        """Return a few of the points as text, each the numbers of a point but its first, as `Standing.curve` says."""
        version = self.stride, len(self.points)
        if self._drawn[0] != version:
            step = -(-len(self.points) // MAX_CURVE_POINTS) or 1
            chosen = self.points[::-step][::-1]  # with the last one
            texts = (" ".join([f"{number:.4g}" for number in point[1:] if number is not None]) for point in chosen)
            self._drawn = version, ",".join(texts)
        return self._drawn[1]
