"""What was counted of an arm, and how a study went, in little space however long it takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

BLOCKS = 16  # an arm's rewards are summed in at least half as many stretches of equal length
POINTS = 200  # a history keeps at least half as many points


@dataclass
class ArmStatistics:
    """An arm's rewards, in the order counted, and how often its trials were answered."""

    trials: int = 0
    mean: float = 0.0
    squares: float = 0.0  # of deviations from the mean
    answered: int = 0  # trials that gave a reward, also those behind the stop
    interruptions: int = 0  # trials that failed, or expired without one; several in a row are one
    length: int = 1  # of a block
    blocks: list[float] = field(default_factory=list)  # sums of `length` rewards each, but for the last

    def add(self, reward: float) -> None:
        """One more reward (Welford 1962)."""
        if self.trials % self.length == 0:
            if len(self.blocks) == BLOCKS:
                self.blocks = [sum(self.blocks[place : place + 2]) for place in range(0, BLOCKS, 2)]
                self.length *= 2
            self.blocks.append(0.0)
        self.blocks[-1] += reward
        self.trials += 1
        apart = reward - self.mean
        self.mean += apart / self.trials
        self.squares += apart * (reward - self.mean)

    @property
    def variance(self) -> float:
        """Of a reward; infinite before two."""
        return self.squares / (self.trials - 1) if self.trials > 1 else math.inf

    def halves(self) -> tuple[tuple[int, float], tuple[int, float]] | None:
        """Number and mean of the earlier and of the later rewards; None if there are too few blocks."""
        early = len(self.blocks) // 2
        if early == 0:
            return None
        first = early * self.length
        later = self.trials - first
        return (first, sum(self.blocks[:early]) / first), (later, sum(self.blocks[early:]) / later)


@dataclass
class History:
    """Points of a curve, evenly thinned out as it grows."""

    stride: int = 1
    seen: int = 0
    points: list[list[float | None]] = field(default_factory=list)

    def add(self, point: Callable[[], list[float | None]]) -> None:
        """The curve's next point, made and kept if it is its turn."""
        if self.seen % self.stride == 0:
            if len(self.points) == POINTS:
                self.points = self.points[::2]
                self.stride *= 2
            self.points.append(point())
        self.seen += 1
