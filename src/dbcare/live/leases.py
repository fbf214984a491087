"""How long a worker may keep a trial: "90s", "30m", "2h", "1d", a number of seconds, or None for ever."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from dbcare import validation
from dbcare.errors import InvalidValueError

Lease = str | float | timedelta | None
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


LONGEST = 3650 * 86400.0  # ten years; None is for ever
WRITTEN = re.compile(r"([0-9]+(?:\.[0-9]*)?)([smhd])")


def seconds_of(lease: Any) -> float | None:
    """The lease in seconds."""
    if lease is None:
        return None
    if isinstance(lease, str):
        found = WRITTEN.fullmatch(lease)
        if found is None:
            raise InvalidValueError(
                f'`lease` must be a duration such as "90s", "30m", "2h" or "1d", or seconds, but got {lease!r}.'
            )
        given: Any = float(found[1]) * UNITS[found[2]]
    else:
        given = lease.total_seconds() if isinstance(lease, timedelta) else lease
    seconds = validation.positive("lease", given)
    if seconds > LONGEST:
        raise InvalidValueError(f"`lease` must be at most ten years, or None for ever, but got {lease!r}.")
    return seconds
