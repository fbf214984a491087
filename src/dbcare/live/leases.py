"""How long a worker may keep a trial: "90s", "30m", "2h", "1d", "2w", a number of seconds, or None for no limit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from dbcare import validation
from dbcare.durations import parse_duration
from dbcare.errors import InvalidValueError
from dbcare.validation import show

Lease = str | float | timedelta | None
DEFAULT_LEASE = "30m"
MAX_LEASE_SECONDS = 3650 * 86400.0


def parse_lease(lease: Any, name: str = "lease") -> float | None:
    """Return a lease, or another duration called `name`, in seconds; None for no limit."""
    if lease is None:
        return None
    if isinstance(lease, str):
        duration: Any = parse_duration(name, lease, ", or seconds")
    else:
        duration = lease.total_seconds() if isinstance(lease, timedelta) else lease
    seconds = validation.positive(name, duration)
    if seconds > MAX_LEASE_SECONDS:
        raise InvalidValueError(f"`{name}` must be at most ten years, or None for no limit, but got {show(lease)}.")
    return seconds
