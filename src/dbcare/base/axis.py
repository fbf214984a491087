"""An axis for small pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

AXIS_MARGIN = 0.04  # share of an axis, on both sides
TARGET_TICKS = 4


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
