"""Times and durations as people write and read them: "90s", "30m", "2h", "14d", "2w"; "29 min"; "3 days"."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from dbcare.errors import InvalidValueError
from dbcare.validation import show

SECONDS_PER_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
SECONDS_PER_DAY = SECONDS_PER_UNIT["d"]
SHORT_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))
WORDS = {"d": "day", "h": "hour", "min": "minute", "s": "second"}
DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?)([smhdw])")


def parse_duration(name: str, text: Any, or_else: str = "") -> float:
    """Return a duration in seconds; `or_else` says what else an option called `name` may be, such as ", or seconds"."""
    match = DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidValueError(
            f'`{name}` must be a duration such as "90s", "30m", "2h", "1d" or "2w"{or_else}, but got {show(text)}.'
        )
    return float(match[1]) * SECONDS_PER_UNIT[match[2]]


def format_duration(seconds: float) -> str:
    """Return a duration in the largest unit that fits, such as "29 min"."""
    size, unit = _find_unit(seconds)
    return f"{max(0.0, seconds) / size:.0f} {unit}"


def spell_duration(seconds: float) -> str:
    """Return a duration in words, with two digits if it is short, such as "2.5 days"."""
    size, unit = _find_unit(seconds)
    number = f"{seconds / size:.2g}" if seconds < 9.95 * size else f"{seconds / size:,.0f}"
    return f"{number} {WORDS[unit]}{'' if number == '1' else 's'}"


def _find_unit(seconds: float) -> tuple[float, str]:
    return next(((size, unit) for size, unit in SHORT_UNITS if seconds >= size), SHORT_UNITS[-1])


def format_minute(seconds: float) -> str:
    """Return a time, in seconds since 1970, to the minute."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
