"""What a call returned, taken apart: a value and its price, and a score that must be a number within bounds."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError
from dbcare.studies.trial import Priced


class MissingScoreError(ValueError):
    """A score is NaN or infinite: the call counts as failed."""


@dataclass(frozen=True)
class ScoreCheck:
    """Which scores are accepted.

    Parameters
    ----------
    bounds : tuple of float or None
        The range that was stated.
    binary : bool
        Whether scores are 0 or 1.
    """

    bounds: tuple[float, float] | None
    binary: bool

    def read_score(self, value: Any) -> float:
        """Return a score as a number; raise MissingScoreError if it is not finite, and InvalidValueError if invalid."""
        if isinstance(value, bool | np.bool_):
            return float(value)
        if not isinstance(value, numbers.Real):
            raise InvalidValueError(f"a score must be a number but got {show(value)}")
        try:
            finite = math.isfinite(value)
        except OverflowError:  # an integer beyond floating point
            finite = False
        if not finite:
            raise MissingScoreError(f"a score must be finite but got {show(value)}")
        score = checks.real("score", value)
        if self.binary and score not in (0.0, 1.0):
            raise InvalidValueError(f"a score must be 0 or 1 but got {score:g}")
        if self.bounds is not None and not self.bounds[0] <= score <= self.bounds[1]:
            low, high = self.bounds
            raise InvalidValueError(f"a score must lie within the bounds {low:g} and {high:g} but got {score:g}")
        return score


def split_price(returned: Any) -> tuple[Any, float | None]:
    """Return a call's value, and the price that it reports, if it does."""
    if isinstance(returned, Priced):
        return returned.value, check_price(returned.price)
    return returned, None


def check_price(price: Any) -> float:
    """Return a price that a call reports; raise InvalidValueError if it is not one."""
    try:
        return checks.non_negative("price", price)
    except InvalidValueError as refused:
        raise InvalidValueError(f"a reported {str(refused).removesuffix('.').replace('`', '')}") from None
