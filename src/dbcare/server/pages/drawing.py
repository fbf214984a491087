"""Coordinates of sparklines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, EDGE = 120.0, 30.0, 2.0  # of a sparkline


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
