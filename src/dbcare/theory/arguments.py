"""Check arguments that may be arrays: the counterpart of `dbcare.base.checks`, with the same messages."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError
from dbcare.problem.risk import Loss

Floats: TypeAlias = NDArray[np.float64]
FloatOrFloats: TypeAlias = np.float64 | NDArray[np.float64]
IntOrInts: TypeAlias = np.int64 | NDArray[np.int64]


def loss(value: Any) -> Loss:
    """Return the loss, given as a `Loss` or by name."""
    return Loss(checks.one_of("loss", value, list(Loss)))


def positive(name: str, value: ArrayLike, *, infinite: bool = False) -> Floats:
    """Check that all numbers are above zero, and finite unless `infinite`."""
    numbers = _real(name, value, infinite)
    _require(numbers > 0.0, name, "be positive", numbers)
    return numbers


def non_negative(name: str, value: ArrayLike) -> Floats:
    """Check that all numbers are finite and at least zero."""
    numbers = _real(name, value, infinite=False)
    _require(numbers >= 0.0, name, "not be negative", numbers)
    return numbers


def whole(name: str, value: ArrayLike, *, at_least: int) -> Floats:
    """Check that all numbers are whole and at least `at_least`; return floats, for use in formulas."""
    numbers = _real(name, value, infinite=False)
    _require(numbers == np.floor(numbers), name, "be a whole number", numbers)
    with np.errstate(invalid="ignore"):  # beyond 64 bits, which only a message would show
        integers = numbers.astype(np.int64)
    _require(numbers >= at_least, name, f"be at least {at_least}", integers)
    return numbers


def positive_log(ratio: FloatOrFloats, cost: Floats) -> FloatOrFloats:
    """Return the logarithm in a bound, which must be positive: the bounds are meaningless at larger costs."""
    bad = np.broadcast_to(cost, np.shape(ratio))[np.asarray(ratio) <= 1.0]
    if bad.size:
        raise InvalidValueError(f"`cost` must be so small that the bound's logarithm is positive but got {bad[0]}.")
    return np.log(ratio)


def _real(name: str, value: ArrayLike, infinite: bool) -> Floats:
    try:
        array = np.asarray(value)
    except ValueError:  # rows of unequal length
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise InvalidValueError(f"`{name}` must be a real number but got {show(value)}.")
    numbers = array.astype(np.float64)
    _require(~np.isnan(numbers) if infinite else np.isfinite(numbers), name, "be finite", numbers)
    return numbers


def _require(holds: Any, name: str, condition: str, numbers: NDArray[Any]) -> None:
    if not np.all(holds):
        raise InvalidValueError(f"`{name}` must {condition} but got {numbers[~np.asarray(holds)][0]}.")
