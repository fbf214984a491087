"""The risk of a decision: what a wrong choice costs plus what the data cost.

misidentification   R_MI = P(recommended mean < best mean) + E[cost of all pulls]
simple regret       R_SR = E[best mean - recommended mean] + E[cost of all pulls]

(Section 1.1 of the paper.) A cost is in units of the loss: one for all arms, or one per arm, which only `Breakeven`
accepts. In money, a pull has a `price` and one unit of loss has a `value`; the cost is price / value.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.base.numbers import Money, check_amount
from dbcare.errors import InvalidValueError


class Loss(StrEnum):
    """What a wrong recommendation costs: 1 for any error, or the gap in means.

    Examples
    --------
    >>> from dbcare import Loss
    >>> str(Loss.SIMPLE_REGRET)
    'simple_regret'
    """

    MISIDENTIFICATION = "misidentification"
    SIMPLE_REGRET = "simple_regret"


@dataclass(frozen=True, repr=False)
class Risk:
    """A loss and the cost of a pull; create one with `Risk.misidentification` or `Risk.simple_regret`.

    Parameters
    ----------
    loss : Loss
        What a wrong recommendation loses.
    cost : float or tuple of float
        Cost of a pull in units of the loss, or one per arm.
    value : float, optional
        What one unit of loss is worth in money.

    Examples
    --------
    >>> from dbcare import Risk
    >>> risk = Risk.simple_regret(price=0.40, value=4_000)
    >>> risk.cost, str(risk.money(0.5))
    (0.0001, '2,000')
    """

    loss: Loss
    cost: float | tuple[float, ...]
    value: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", Loss(checks.one_of("loss", self.loss, list(Loss))))
        object.__setattr__(self, "cost", _per_pull("cost", self.cost))
        if self.value is not None:
            object.__setattr__(self, "value", checks.positive("value", self.value))

    def __repr__(self) -> str:
        if self.value is None:
            return f"Risk.{self.loss}(cost={self.cost})"
        return f"Risk.{self.loss}(price={self._amounts}, value={self.value})"

    @classmethod
    def misidentification(
        cls,
        cost: float | Sequence[float] | None = None,
        *,
        price: float | Sequence[float] | None = None,
        value: float | None = None,
    ) -> Risk:
        """Charge a loss of 1 for recommending any arm below the best; `value` is what that costs in money."""
        return _make_risk(Loss.MISIDENTIFICATION, cost, price, value)

    @classmethod
    def simple_regret(
        cls,
        cost: float | Sequence[float] | None = None,
        *,
        price: float | Sequence[float] | None = None,
        value: float | None = None,
    ) -> Risk:
        """Charge best mean - recommended mean; `value` is what one unit of reward is worth in money."""
        return _make_risk(Loss.SIMPLE_REGRET, cost, price, value)

    @property
    def _amounts(self) -> float | tuple[float, ...]:
        """The price if there is a value, else the cost."""
        if self.value is None:
            return self.cost
        return self.cost * self.value if isinstance(self.cost, float) else tuple(c * self.value for c in self.cost)

    @property
    def _unit_name(self) -> str:
        """The argument that the user passed: cost or price."""
        return "cost" if self.value is None else "price"

    @property
    def single_cost(self) -> float:
        """The cost of a pull of any arm; an error if costs differ."""
        if not self.costs_differ:
            return self.cost if isinstance(self.cost, float) else self.cost[0]
        raise InvalidValueError(
            f"`{self._unit_name}` must be the same for all arms here but got {self._amounts}; "
            "Breakeven accepts one per arm."
        )

    @property
    def costs_differ(self) -> bool:
        """Whether some arms cost more than others."""
        return not isinstance(self.cost, float) and len(set(self.cost)) > 1

    def costs(self, arms: int) -> tuple[float, ...]:
        """Return the cost of a pull, arm by arm."""
        if isinstance(self.cost, float):
            return (self.cost,) * checks.arms(arms, at_least=1)
        if len(self.cost) != arms:
            raise InvalidValueError(
                f"`{self._unit_name}` must have one entry per arm ({arms}) but got {len(self.cost)}."
            )
        return self.cost

    def in_money(self, amount: float) -> float:
        """Convert a loss or cost to money; requires a risk with a `price` and a `value`."""
        if self.value is None:
            raise InvalidValueError("`value` is required to convert amounts to money.")
        return check_amount(amount) * self.value

    def money(self, amount: float, currency: str = "") -> Money:
        """Return a loss or cost in a form for people: in money if there is a `value`."""
        return Money(amount, None) if self.value is None else Money(check_amount(amount) * self.value, currency)


def check_risk(risk: Any) -> Risk:
    """Return `risk` if it is a Risk."""
    if not isinstance(risk, Risk):
        raise InvalidValueError(f"`risk` must be a Risk but got {show(risk)}.")
    return risk


def _make_risk(loss: Loss, cost: Any, price: Any, value: Any) -> Risk:
    if cost is not None:
        if price is not None or value is not None:
            raise InvalidValueError("Pass `cost`, or `price` and `value`, not both.")
        return Risk(loss, cost)
    if price is None or value is None:
        raise InvalidValueError(
            f"Pass `cost`, or both `price` and `value`, but got price={show(price)}, value={show(value)}."
        )
    if not isinstance(value, numbers.Real | str) and isinstance(value, Iterable):
        raise InvalidValueError(
            f"`value` must be one number but got {show(value)}; if arms differ in value, multiply each arm's rewards "
            "by its own value instead."
        )
    prices = _per_pull("price", price)
    worth = checks.positive("value", value)
    cost = prices / worth if isinstance(prices, float) else tuple(one / worth for one in prices)
    return Risk(loss, _per_pull("price / value", cost), worth)


def _per_pull(name: str, amount: Any) -> float | tuple[float, ...]:
    if isinstance(amount, numbers.Real | str) or not isinstance(amount, Iterable):
        return checks.positive(name, amount)
    listed = checks.items(name, amount, "one number, or one per arm")
    if len(listed) < 2:
        raise InvalidValueError(
            f"`{name}` must be one number, or one per arm for 2 or more, but got {show(tuple(listed))}."
        )
    return tuple(checks.positive(f"{name}[{arm}]", one) for arm, one in enumerate(listed))
