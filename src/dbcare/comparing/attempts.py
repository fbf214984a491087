"""A call with retries: every attempt is metered, and failures wait twice as long each time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbcare.comparing.calls import call
from dbcare.comparing.meter import Meter, TrialMeter
from dbcare.comparing.rate_limits import RateLimit
from dbcare.comparing.scoring import MissingScoreError, check_price, split_price
from dbcare.errors import InvalidValueError


class FailedCallError(Exception):
    """The last attempt of a call failed, with `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True)
class Attempts:
    """How calls are made: how often they are tried, and how long each may take.

    Parameters
    ----------
    retries : int
        Attempts after the first one.
    delay : float
        Seconds before the first retry; they double for each further one.
    timeout : float or None
        Seconds that an attempt may take.
    """

    retries: int
    delay: float
    timeout: float | None

    async def make(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        price: float | None,
        read: Callable[[Any], Any],
        meter: Meter,
        trial: TrialMeter,
        rate_limit: RateLimit | None = None,
    ) -> Any:
        """Return what `read` makes of the value that a function returns; raise FailedCallError if all attempts fail.

        An attempt costs what it reports, or else `price`. What is wrong for every question, such as a negative price,
        raises InvalidValueError at once.
        """
        for attempt in range(self.retries + 1):
            if rate_limit is not None:
                await rate_limit.wait()
            try:
                returned = await call(function, *arguments, timeout=self.timeout)
            except Exception as failure:
                problem: Exception = self._describe_timeout(failure)
                reported = getattr(failure, "price", None)
                cost = (price or 0.0) if reported is None else check_price(reported)
            else:
                value, reported = split_price(returned)
                if price is None and reported is None:
                    raise InvalidValueError(
                        "the call reports no price; return dbcare.Priced(value, price), or pass `price`"
                    )
                cost = (price or 0.0) if reported is None else reported
                try:
                    result = read(value)
                except MissingScoreError as missing:
                    problem = missing
                else:
                    meter.add(trial, cost)
                    return result
            meter.add(trial, cost)
            if attempt == self.retries or not meter.reserve_retry(trial, cost):
                break
            await asyncio.sleep(self.delay * 2.0**attempt)
        raise FailedCallError(problem)

    def _describe_timeout(self, failure: Exception) -> Exception:
        if isinstance(failure, TimeoutError) and not str(failure) and self.timeout is not None:
            return TimeoutError(f"no answer within {self.timeout:g} s")
        return failure
