"""Statistics of an arm's rewards, and the history of a study, in little space however long it runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from dbcare.live.tail import Tail
from dbcare.live.variety import Variety

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
