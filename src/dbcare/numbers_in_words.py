"""Numbers as sentences state them: with no more digits, and no more certainty, than they have."""

from __future__ import annotations

import math

LEAST_WIDTH, MOST_WIDTH = 1e-6, 1e9  # beyond, numbers are written with exponents
MOST_DECIMALS = 12
MOST_STATED = 0.9  # how close arms can be is not observable, and larger probabilities depend on it most: none is stated


def format_chance(chance: float) -> str:
    """Return the probability of being better in percent; above 90%, say only that the arm is ahead."""
    if chance > MOST_STATED:
        return "ahead"
    return "under 1%" if chance < 0.01 else f"{100.0 * chance:.0f}%"


def round_together(value: float, low: float, high: float, digits: int = 2) -> tuple[str, str, str]:
    """Return a number and the ends of its interval, rounded alike: to as many digits of the interval's width.

    An end that would be rounded to 0 keeps its first digit, since its sign says on which side of 0 the interval lies.
    """
    width = high - low
    if not LEAST_WIDTH < width < MOST_WIDTH:
        return f"{value:.4g}", f"{low:.4g}", f"{high:.4g}"
    decimals = min(MOST_DECIMALS, max(0, digits - 1 - math.floor(math.log10(width))))
    middle, bottom, top = (f"{round(number, decimals) + 0.0:,.{decimals}f}" for number in (value, low, high))  # no -0
    return middle, _keep_sign(low, bottom, decimals), _keep_sign(high, top, decimals)


def _keep_sign(end: float, text: str, decimals: int) -> str:
    """Return the text of an end, or its first digit if the text is 0 and the end is not."""
    if end == 0.0 or round(end, decimals) != 0.0:
        return text
    needed = -math.floor(math.log10(abs(end)))
    return f"{end:.{needed}f}" if needed <= MOST_DECIMALS else f"{end:.0e}"
