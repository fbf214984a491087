"""Numbers as people read them."""

from __future__ import annotations

DURATIONS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def format_number(value: float) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}"


def format_count(value: int) -> str:
    """Return a count with thousands separators."""
    return f"{value:,}"


def format_duration(seconds: float) -> str:
    """Return a duration in its largest whole unit."""
    for size, name in DURATIONS:
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"
