"""Numbers as sentences state them: with no more digits, and no more certainty, than they have."""

from __future__ import annotations

import math

LEAST_WIDTH, MOST_WIDTH = 1e-6, 1e9  # beyond, numbers are written with exponents
MOST_STATED = 0.9  # a probability above it is too high on average, so none above is stated


def format_chance(chance: float) -> str:
    """Return a probability in percent; above 90%, that is all that is said."""
    if chance > MOST_STATED:
        return "over 90%"
    return "under 1%" if chance < 0.01 else f"{100.0 * chance:.0f}%"


def round_together(value: float, low: float, high: float, digits: int = 2) -> tuple[str, str, str]:
    """Return a number and the ends of its interval, rounded alike: to as many digits of the interval's width."""
    width = high - low
    if not LEAST_WIDTH < width < MOST_WIDTH:
        return f"{value:.4g}", f"{low:.4g}", f"{high:.4g}"
    decimals = min(12, max(0, digits - 1 - math.floor(math.log10(width))))
    rounded = (round(number, decimals) + 0.0 for number in (value, low, high))  # adding 0 makes -0 a 0
    middle, bottom, top = (f"{number:,.{decimals}f}" for number in rounded)
    return middle, bottom, top
