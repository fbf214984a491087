"""How much rewards vary, stated once for studies, plans and policies.

People state the spread in one way: a standard deviation, the usual rate of rewards that are 0 or 1, a range, or nothing
at all. Policies that learn take it as a guess worth a few rewards; the others rely on a value that is never too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidRewardError, InvalidValueError

BINARY = (0.0, 1.0)
MIN_WIDTH = 2.0 * checks.MIN_MAGNITUDE  # half the width of the bounds is a standard deviation
DEFAULT_SIGMA_PULLS = 6.0


@dataclass(frozen=True)
class Spread:
    """A statement about the spread of rewards; at most one of its ways, except that `bounds` may come with `sigma`.

    Parameters
    ----------
    sigma : float, optional
        Standard deviation of a reward.
    baseline : float, optional
        Usual rate of rewards that are 0 or 1; their standard deviation is sqrt(p (1 - p)).
    bounds : tuple of float, optional
        Range of possible rewards, the lower end first.
    binary : bool
        Whether rewards are 0 or 1, with an unknown rate.
    sigma_pulls : float
        How many rewards the statement counts as, for policies that learn; infinite if sigma is known for certain.

    Examples
    --------
    >>> from dbcare.problem.spread import Spread
    >>> spread = Spread(baseline=0.2)
    >>> spread.guess, spread.certain, spread.width
    (0.4, 0.5, 1.0)
    """

    sigma: float | None = None
    baseline: float | None = None
    bounds: tuple[float, float] | None = None
    binary: bool = False
    sigma_pulls: float = DEFAULT_SIGMA_PULLS

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            sigma=None if self.sigma is None else checks.positive("sigma", self.sigma),
            baseline=None if self.baseline is None else checks.open_unit("baseline", self.baseline),
            bounds=_check_interval(self.bounds),
            binary=checks.flag("binary", self.binary),
        )
        stated = self._ways()
        if len(stated) > 1:
            raise InvalidValueError(
                f"State the spread of the rewards in one way but got {' and '.join(stated)}; only `sigma` and `bounds` "
                "go together."
            )
        checks.set_fields(self, sigma_pulls=check_sigma_pulls(self.sigma_pulls, is_stated=bool(stated)))

    def _ways(self) -> list[str]:
        """List the ways in which the spread is stated; sigma and bounds together are one."""
        ways = []
        if self.baseline is not None:
            ways.append(f"baseline={self.baseline:g}")
        if self.binary:
            ways.append("binary=True")
        pair = [] if self.sigma is None else [f"sigma={self.sigma:g}"]
        if self.bounds is not None and not (self.takes_binary and self.bounds == BINARY):
            pair.append(f"bounds={self.bounds[0]:g},{self.bounds[1]:g}")
        return [*pair, *ways] if ways else [" and ".join(pair)][: len(pair)]

    @property
    def is_stated(self) -> bool:
        """Whether anything is said about the spread."""
        return self.guess is not None

    @property
    def takes_binary(self) -> bool:
        """Whether rewards are 0 or 1."""
        return self.binary or self.baseline is not None

    @property
    def range(self) -> tuple[float, float] | None:
        """The range of possible rewards; None if it is unknown."""
        return BINARY if self.takes_binary else self.bounds

    @property
    def width(self) -> float | None:
        """Width of the range, which no difference of two means exceeds; None if it is unknown."""
        return None if self.range is None else self.range[1] - self.range[0]

    @property
    def largest(self) -> float | None:
        """The largest possible standard deviation, half the width; None if rewards have no known range."""
        return None if self.width is None else self.width / 2.0

    @property
    def guess(self) -> float | None:
        """The standard deviation for policies that learn: the likely one; None if nothing is stated."""
        if self.baseline is not None:
            return math.sqrt(self.baseline * (1.0 - self.baseline))
        return self.largest if self.sigma is None else self.sigma

    @property
    def certain(self) -> float | None:
        """The standard deviation for policies that rely on it: the stated one, or half the width; else None."""
        return self.largest if self.sigma is None else self.sigma

    def check_reward(self, name: str, number: float) -> None:
        """Raise InvalidRewardError if a reward is outside the range."""
        if self.takes_binary and number not in BINARY:
            raise InvalidRewardError(f"`{name}` must be 0 or 1 but got {number:g}.")
        if self.bounds is not None and not self.bounds[0] <= number <= self.bounds[1]:
            low, high = self.bounds
            raise InvalidRewardError(f"`{name}` must lie within the bounds {low:g} to {high:g} but got {number:g}.")


def check_sigma_pulls(value: Any, *, is_stated: bool) -> float:
    """Return how many rewards a stated sigma counts as, perhaps infinitely many; if none is stated, the default."""
    number = math.inf if isinstance(value, float) and value == math.inf else checks.positive("sigma_pulls", value)
    if not is_stated and number != DEFAULT_SIGMA_PULLS:
        raise InvalidValueError(
            "`sigma_pulls` is the weight of a stated spread, and none is stated: state one, or leave it out; "
            f"got {number:g}."
        )
    return number


def _check_interval(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    if isinstance(bounds, str) or not isinstance(bounds, Sequence) or len(bounds) != 2:
        raise InvalidValueError(f"`bounds` must be two numbers, the lower one first, but got {show(bounds)}.")
    low, high = (checks.real("bounds", end) for end in bounds)
    if not low < high:
        raise InvalidValueError(f"`bounds` must be two numbers, the lower one first, but got {low:g} and {high:g}.")
    if not MIN_WIDTH <= high - low <= checks.MAX_MAGNITUDE:
        raise InvalidValueError(
            f"`bounds` must be {MIN_WIDTH:g} to {checks.MAX_MAGNITUDE:g} apart but got {low:g} and {high:g}."
        )
    return low, high
