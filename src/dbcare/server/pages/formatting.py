"""Numbers and times as people read them."""

from __future__ import annotations


def format_number(value: float) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}"


def format_count(value: int) -> str:
    """Return a count with thousands separators."""
    return f"{value:,}"
