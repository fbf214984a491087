"""Numbers as people read them."""

from __future__ import annotations

from dbcare.live.settings import Settings
from dbcare.risk import money

DURATIONS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def amount(settings: Settings, number: float) -> str:
    """An amount that a study gives: in money where there is a value, else in units of the loss."""
    return f"{number:.3g}" if settings.value is None else f"{money(number)} {settings.unit}"


def number(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"


def count(value: int) -> str:
    """Thousands apart."""
    return f"{value:,}"


def duration(seconds: float) -> str:
    """In the largest unit of which there is one."""
    for size, name in DURATIONS:
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"
