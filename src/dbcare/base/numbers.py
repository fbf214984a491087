"""Numbers and money as people read them."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbcare.base import checks
from dbcare.errors import InvalidValueError

LEAST_WIDTH, MOST_WIDTH = 1e-6, 1e9  # beyond, numbers are written with exponents
MOST_DECIMALS = 12
MOST_STATED = 0.9  # how close arms can be is not observable, and larger probabilities depend on it most: none is stated


def format_chance(chance: float) -> str:
    """Return the probability of being better in percent; above 90%, say only that the arm is ahead."""
    if chance > MOST_STATED:
        return "ahead"
    return "under 1%" if chance < 0.01 else f"{100.0 * chance:.0f}%"


def round_together(value: float, low: float, high: float, digits: int = 2) -> tuple[str, str, str]:
    """Return a number and the ends of its interval, rounded alike: to as many digits of the interval's width.

    An end that would be rounded to 0 keeps its first digit, since its sign says on which side of 0 the interval lies.
    """
    width = high - low
    if not LEAST_WIDTH < width < MOST_WIDTH:
        return f"{value:.4g}", f"{low:.4g}", f"{high:.4g}"
    decimals = min(MOST_DECIMALS, max(0, digits - 1 - math.floor(math.log10(width))))
    middle, bottom, top = (f"{round(number, decimals) + 0.0:,.{decimals}f}" for number in (value, low, high))  # no -0
    return middle, _keep_sign(low, bottom, decimals), _keep_sign(high, top, decimals)


def _keep_sign(end: float, text: str, decimals: int) -> str:
    """Return the text of an end, or its first digit if the text is 0 and the end is not."""
    if end == 0.0 or round(end, decimals) != 0.0:
        return text
    needed = -math.floor(math.log10(abs(end)))
    return f"{end:.{needed}f}" if needed <= MOST_DECIMALS else f"{end:.0e}"


def format_number(value: float) -> str:
    """Return a number with four significant digits."""
    return f"{value:.4g}"


def format_count(value: int) -> str:
    """Return a count with thousands separators."""
    return f"{value:,}"


DEFAULT_CURRENCY = "USD"
NEGLIGIBLE = 1e-9  # of money: what rounding leaves of nothing
MOST_SPELLED_OUT = 1e18


@dataclass(frozen=True)
class Money:
    """An amount to show people: money, or units of the loss where nobody said what a unit is worth.

    Written with thousands separators, cents below a thousand, and three digits below one: "12,340 USD", "8.40",
    "0.052". Amounts in units of the loss have three digits.

    Parameters
    ----------
    amount : float
        How much.
    currency : str or None
        The currency's name, which follows the amount; empty for money without a name. None: units of the loss.

    Examples
    --------
    >>> from dbcare.base.numbers import Money
    >>> str(Money(12_340.4, "USD")), str(Money(8.4, "")), str(Money(0.000123456, None))
    ('12,340 USD', '8.40', '0.000123')
    """

    amount: float
    currency: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "amount", check_amount(self.amount))
        if not isinstance(self.currency, str | None):
            raise InvalidValueError(f"`currency` must be a string or None but got {checks.show(self.currency)}.")

    def __str__(self) -> str:
        if self.currency is None:
            return self._three_digits()
        return f"{self._number()} {self.currency}".rstrip()

    def _number(self) -> str:
        size = abs(self.amount)
        if size < 0.9995:
            return self._three_digits() if size >= NEGLIGIBLE else "0"
        return f"{self.amount:,.0f}" if size >= 999.995 else f"{self.amount:,.2f}"

    def _three_digits(self) -> str:
        return _spell_out(f"{self.amount:.3g}", self.currency)

    def rough(self) -> str:
        """Return the amount with three digits, for an estimate: "150 USD", "12,300 USD"."""
        if self.currency is None:
            return str(self)
        return f"{self._three_digits()} {self.currency}".rstrip()

    def stated(self) -> str:
        """Return the amount with all its digits, for one that somebody stated: "0.4 USD", "109,500,000 USD"."""
        return f"{_spell_out(f'{self.amount:.10g}', self.currency)} {self.currency or ''}".rstrip()

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def _spell_out(digits: str, currency: str | None) -> str:
    """Return a number without an exponent, unless it is of the loss and small, or of no amount that anybody has."""
    least = 1e-4 if currency is None else NEGLIGIBLE
    number = float(digits)
    return f"{Decimal(digits):,f}" if number == 0.0 or least <= abs(number) < MOST_SPELLED_OUT else digits


def check_amount(amount: Any) -> float:
    """Return an amount if it is a number; results may also be infinite."""
    try:
        if isinstance(amount, numbers.Real):
            return float(amount)
    except OverflowError:  # an integer beyond floating point
        pass
    raise InvalidValueError(f"`amount` must be a real number but got {checks.show(amount)}.")
