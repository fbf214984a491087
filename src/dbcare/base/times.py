"""Durations and leases: how long something may take, as people write it.

A clock that jumps ahead while a process runs, as when a wrong clock is corrected, would end all leases early. On
Linux, the process notices, since CLOCK_BOOTTIME does not jump but also runs while the machine sleeps. In the memory of
that process, trials asked before the jump get the remaining time of their leases again.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError

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


Lease = str | float | timedelta | None
DEFAULT_LEASE = "30m"
MAX_LEASE_SECONDS = 3650 * 86400.0
LOG = logging.getLogger("dbcare")
MIN_JUMP_SECONDS = 2.0  # less is a leap second, or how exactly two clocks can be compared


def parse_lease(lease: Any, name: str = "lease") -> float | None:
    """Return a lease, or another duration called `name`, in seconds; None for no limit."""
    if lease is None:
        return None
    if isinstance(lease, str):
        duration: Any = parse_duration(name, lease, ", or seconds")
    else:
        duration = lease.total_seconds() if isinstance(lease, timedelta) else lease
    seconds = checks.positive(name, duration)
    if seconds > MAX_LEASE_SECONDS:
        raise InvalidValueError(f"`{name}` must be at most ten years, or None for no limit, but got {show(lease)}.")
    return seconds


@dataclass(frozen=True)
class ClockJump:
    """A jump of the clock by `seconds`, after which it showed the time `at`."""

    at: float
    seconds: float


class JumpWatch:
    """Notices jumps of the clock by comparing it with one that never jumps."""

    def __init__(self, read_clock: Callable[[], float], read_steady: Callable[[], float]) -> None:
        self._read_clock = read_clock
        self._read_steady = read_steady
        self._lead = self._measure_lead()
        self._ahead: tuple[ClockJump, ...] = ()
        self._lock = threading.Lock()

    def list_jumps(self) -> tuple[ClockJump, ...]:
        """Return the jumps ahead of the clock since this process started, less what it was set back since."""
        if abs(self._measure_lead() - self._lead) >= MIN_JUMP_SECONDS:
            with self._lock:
                lead = self._measure_lead()
                jump, self._lead = lead - self._lead, lead
                self._note(jump)
        return self._ahead

    def _measure_lead(self) -> float:
        """Return by how much the clock is ahead of the steady one, read in the same tenth of a second."""
        while True:
            before, clock, after = self._read_steady(), self._read_clock(), self._read_steady()
            if after - before < 0.1:
                return clock - after

    def _note(self, jump: float) -> None:
        if jump >= MIN_JUMP_SECONDS:
            self._ahead += (ClockJump(self._read_clock(), jump),)
            LOG.warning(
                "The clock jumped ahead by %s: leases of trials asked before get their remaining time again.",
                format_duration(jump),
            )
        elif jump <= -MIN_JUMP_SECONDS:
            LOG.warning("The clock was set back by %s.", format_duration(-jump))
            while self._ahead and jump < 0.0:
                *earlier, last = self._ahead
                left = last.seconds + jump
                jump = min(0.0, left)
                self._ahead = (*earlier, ClockJump(last.at, left)) if left >= MIN_JUMP_SECONDS else tuple(earlier)


def extend_lease(asked_at: float, expires: float, jumps: tuple[ClockJump, ...]) -> float:
    """Return when a lease ends, after these jumps ahead; `asked_at` and `expires` are by the clock of that time.

    A trial counts as asked before a jump up to the middle between the times before and after. Other machines, whose
    clocks did not jump, may have asked it later.
    """
    return (
        expires
        if not jumps
        else expires + sum(jump.seconds for jump in jumps if asked_at < jump.at - 0.5 * jump.seconds)
    )


def _make_watch() -> JumpWatch | None:
    """Return a watch of this machine's clock; None if the machine has no steady clock that runs while it sleeps."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    return JumpWatch(time.time, partial(time.clock_gettime, time.CLOCK_BOOTTIME))


_WATCH = _make_watch()


def list_clock_jumps() -> tuple[ClockJump, ...]:
    """Return by how much this machine's clock has jumped ahead, and when, since this process started."""
    return () if _WATCH is None else _WATCH.list_jumps()
