"""How long a worker may keep a trial: "90s", "30m", "2h", "1d", a number of seconds, or None for ever."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from dbcare import validation
from dbcare.errors import InvalidValueError

Lease = str | float | timedelta | None
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(lease: Any) -> float | None:
    """The lease in seconds."""
    if lease is None:
        return None
    if isinstance(lease, timedelta):
        return validation.positive("lease", lease.total_seconds())
    if not isinstance(lease, str):
        return validation.positive("lease", lease)
    number, unit = lease[:-1], lease[-1:]
    try:
        seconds = float(number) * UNITS[unit]
    except (ValueError, KeyError):
        raise InvalidValueError(
            f'`lease` must be a duration such as "90s", "30m", "2h" or "1d", or seconds, but got {lease!r}.'
        ) from None
    return validation.positive("lease", seconds)
