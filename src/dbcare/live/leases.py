"""How long a worker may keep a trial: "90s", "30m", "2h", "1d", a number of seconds, or None for no limit."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.validation import show

Lease = str | float | timedelta | None
DEFAULT_LEASE = "30m"
SECONDS_PER_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MAX_LEASE_SECONDS = 3650 * 86400.0
LONG_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?)([smhd])")


def parse_lease(lease: Any, name: str = "lease") -> float | None:
    """Return a lease, or another duration called `name`, in seconds; None for no limit."""
    if lease is None:
        return None
    if isinstance(lease, str):
        match = DURATION.fullmatch(lease)
        if match is None:
            raise InvalidValueError(
                f'`{name}` must be a duration such as "90s", "30m", "2h" or "1d", or seconds, but got {show(lease)}.'
            )
        duration: Any = float(match[1]) * SECONDS_PER_UNIT[match[2]]
    else:
        duration = lease.total_seconds() if isinstance(lease, timedelta) else lease
    seconds = validation.positive(name, duration)
    if seconds > MAX_LEASE_SECONDS:
        raise InvalidValueError(f"`{name}` must be at most ten years, or None for no limit, but got {show(lease)}.")
    return seconds


def format_duration(seconds: float) -> str:
    """Return a duration in the largest unit that fits, such as "29 min"."""
    for size, unit in LONG_UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
