"""How long a worker may keep a trial: "90s", "30m", "2h", "1d", "2w", a number of seconds, or None for no limit.

A clock that jumps ahead while a process runs, as when a wrong clock is corrected, would end all leases early. On
Linux, the process notices, since CLOCK_BOOTTIME does not jump but also runs while the machine sleeps. In the memory of
that process, trials asked before the jump get the remaining time of their leases again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from dbcare import validation
from dbcare.durations import format_duration, parse_duration
from dbcare.errors import InvalidValueError
from dbcare.validation import show

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
    seconds = validation.positive(name, duration)
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
