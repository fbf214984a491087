"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def format_number(value: float) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}"


def format_count(value: int) -> str:
    """Return a count with thousands separators."""
    return f"{value:,}"


def format_minute(seconds: float) -> str:
    """Return a time, in seconds since 1970, to the minute."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
