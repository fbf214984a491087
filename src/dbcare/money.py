"""Amounts of money, and how they are written."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbcare import validation
from dbcare.errors import InvalidValueError

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
    >>> from dbcare.money import Money
    >>> str(Money(12_340.4, "USD")), str(Money(8.4, "")), str(Money(0.000123456, None))
    ('12,340 USD', '8.40', '0.000123')
    """

    amount: float
    currency: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "amount", check_amount(self.amount))
        if not isinstance(self.currency, str | None):
            raise InvalidValueError(f"`currency` must be a string or None but got {validation.show(self.currency)}.")

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
    raise InvalidValueError(f"`amount` must be a real number but got {validation.show(amount)}.")
