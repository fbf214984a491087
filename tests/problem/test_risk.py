"""Risks: from one cost, one per arm, or a price and a value."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from dbcare.errors import DbcareError, InvalidValueError
from dbcare.problem.risk import Loss, Risk


def test_losses() -> None:
    assert Risk.misidentification(1e-4).loss is Loss.MISIDENTIFICATION
    assert Risk.simple_regret(1e-4).loss is Loss.SIMPLE_REGRET
    assert Risk(Loss("simple_regret"), 1e-4) == Risk.simple_regret(cost=1e-4) != Risk.misidentification(1e-4)


def test_one_cost_for_all_arms() -> None:
    risk = Risk.simple_regret(1)
    assert risk.single_cost == 1.0
    assert risk.costs(3) == (1.0, 1.0, 1.0)


def test_one_cost_per_arm() -> None:
    risk = Risk.simple_regret([1e-4, 2e-4])
    assert risk.costs(2) == (1e-4, 2e-4)
    assert Risk.simple_regret([1e-4, 1e-4]).single_cost == 1e-4
    with pytest.raises(
        InvalidValueError, match=r"`cost` must be the same for all arms here but got \(0.0001, 0.0002\)"
    ):
        _ = risk.single_cost
    with pytest.raises(InvalidValueError, match=r"one entry per arm \(3\) but got 2\."):
        risk.costs(3)


def test_money() -> None:
    """A click costs 0.40, one unit of reward is worth 20,000: c = 0.40 / 20,000 = 2e-5."""
    risk = Risk.simple_regret(price=0.40, value=20_000)
    assert risk.single_cost == pytest.approx(2e-5, rel=1e-15)
    assert risk.in_money(0.01) == pytest.approx(200.0)
    assert Risk.misidentification(price=[1.0, 3.0], value=100.0).costs(2) == pytest.approx((0.01, 0.03))
    with pytest.raises(InvalidValueError, match="`value` is required to convert amounts to money"):
        Risk.simple_regret(1e-4).in_money(1.0)


@pytest.mark.parametrize("make", [Risk.misidentification, Risk.simple_regret])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cost": 0.0}, "`cost` must be positive but got 0.0."),
        ({"cost": -1.0}, "`cost` must be positive but got -1.0."),
        ({"cost": math.nan}, "`cost` must be finite but got nan."),
        ({"cost": math.inf}, "`cost` must be finite but got inf."),
        ({"cost": "1"}, "`cost` must be a real number but got '1'."),
        ({"cost": True}, "`cost` must be a real number but got True."),
        ({"cost": [1e-4, -1e-4]}, "`cost[1]` must be positive but got -0.0001."),
        ({"cost": [1e-4]}, "`cost` must be one number, or one per arm for 2 or more, but got (0.0001,)."),
        ({"price": 0.0, "value": 1.0}, "`price` must be positive but got 0.0."),
        ({"price": 1.0, "value": -2.0}, "`value` must be positive but got -2.0."),
        ({"cost": 1.0, "price": 1.0}, "Pass `cost`, or `price` and `value`, not both."),
        ({}, "Pass `cost`, or both `price` and `value`, but got price=None, value=None."),
        ({"price": 1.0}, "Pass `cost`, or both `price` and `value`, but got price=1.0, value=None."),
    ],
)
def test_bad_input(make: Callable[..., Risk], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        make(**arguments)
    assert str(caught.value) == message
    assert isinstance(caught.value, DbcareError)
    assert isinstance(caught.value, ValueError)


def test_an_unknown_loss_is_refused() -> None:
    with pytest.raises(
        InvalidValueError, match="`loss` must be one of misidentification, simple_regret but got 'regret'"
    ):
        Risk("regret", 1e-4)  # type: ignore[arg-type]  # wrong on purpose


def test_a_ratio_beyond_the_limits_is_refused() -> None:
    """price / value may be beyond the limits of magnitude even if both are within them."""
    for price, value, limit in ((1e-30, 1e30, "at least 1e-50"), (1e30, 1e-30, "at most 1e\\+50")):
        with pytest.raises(InvalidValueError, match=f"`price / value` must be {limit}"):
            Risk.simple_regret(price=price, value=value)
