"""Coordinates of small pictures: an axis for intervals, and sparklines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

AXIS_MARGIN = 0.04  # share of an axis, on both sides
TARGET_TICKS = 4
WIDTH, HEIGHT, EDGE = 120.0, 30.0, 2.0  # of a sparkline


@dataclass(frozen=True)
class Axis:
    """A range of rewards, drawn across a picture's width."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> Axis | None:
        """Return an axis with room for all values; None if there are none."""
        if not values:
            return None
        low, high = min(values), max(values)
        margin = AXIS_MARGIN * (high - low) or abs(high) * 0.1 or 1.0
        return cls(low - margin, high + margin)

    def percent(self, value: float) -> str:
        """Return the position of a value on the axis."""
        return f"{100.0 * (value - self.low) / (self.high - self.low):.2f}%"

    def text(self, value: float) -> str:
        """Return a value with as many decimals as the axis can resolve, the same for all values."""
        decimals = 2 - math.floor(math.log10(self.high - self.low))
        return f"{value:,.{min(12, max(0, decimals))}f}"

    @property
    def ticks(self) -> list[float]:
        """Round numbers along the axis."""
        rough = (self.high - self.low) / TARGET_TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(size * power for size in (1.0, 2.0, 5.0, 10.0) if size * power >= rough)
        first = math.ceil(self.low / step)
        return [float(f"{step * multiple:.12g}") for multiple in range(first, math.floor(self.high / step) + 1)]


@dataclass(frozen=True)
class Sparkline:
    """Spending, and the expected loss if there is one, as points of SVG lines on one logarithmic scale."""

    spent: str
    loss: str


def draw_sparkline(curve: str) -> Sparkline | None:
    """Return the sparkline of a study, from its standing's curve; None if there is too little to draw."""
    points = [[float(number) for number in point.split()] for point in curve.split(",") if point]
    spent = [(place, math.log(point[0])) for place, point in enumerate(points) if point[0] > 0.0]
    loss = [(place, math.log(point[1])) for place, point in enumerate(points) if point[0] > 0.0 and point[1:] > [0.0]]
    if len(spent) < 2:
        return None
    heights = [height for _, height in (*spent, *loss)]
    left, right, low, high = spent[0][0], spent[-1][0], min(heights), max(heights)

    def coordinates(line: Sequence[tuple[int, float]]) -> str:
        return " ".join(
            f"{WIDTH * (x - left) / (right - left):.1f},"
            f"{HEIGHT - EDGE - (HEIGHT - 2.0 * EDGE) * (y - low) / ((high - low) or 1.0):.1f}"
            for x, y in line
        )

    return Sparkline(coordinates(spent), coordinates(loss))
