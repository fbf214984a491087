"""How often arms may be called: evenly spaced, so that no minute has more calls than allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError

SECONDS_PER_MINUTE = 60.0


class RateLimit:
    """Lets at most so many calls begin per minute, in the order in which they come."""

    def __init__(self, per_minute: float) -> None:
        self._interval = SECONDS_PER_MINUTE / per_minute
        self._free_at = 0.0

    async def wait(self) -> None:
        """Wait for the turn of a call."""
        now = asyncio.get_running_loop().time()
        turn = max(now, self._free_at)
        self._free_at = turn + self._interval
        if turn > now:
            await asyncio.sleep(turn - now)


def make_rate_limits(rate_limit: float | Mapping[str, float] | None, arms: Sequence[str]) -> dict[str, RateLimit]:
    """Return the limit of each arm that has one: a single one that all share, or one each."""
    if rate_limit is None:
        return {}
    if isinstance(rate_limit, Mapping):
        for name in rate_limit:
            if name not in arms:
                raise InvalidValueError(f"`rate_limit` must name arms ({', '.join(arms)}) but got {show(name)}.")
        return {name: RateLimit(_check_rate(f"rate_limit of {name}", rate)) for name, rate in rate_limit.items()}
    return dict.fromkeys(arms, RateLimit(_check_rate("rate_limit", rate_limit)))


def _check_rate(name: str, rate: Any) -> float:
    return checks.positive(name, rate)
