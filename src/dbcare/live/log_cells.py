"""Cells of a log: what names an arm, a unit, a reward or a time."""

from __future__ import annotations

import math
import numbers
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError

if TYPE_CHECKING:
    from dbcare.live.log_table import LogTable

NUMBER = "a number"
WITH_OFFSET = "a time with a UTC offset"
WITHOUT_OFFSET = "a time without a UTC offset"


def is_missing(cell: Any) -> bool:
    """Return whether a cell is empty: blank, None, or one of the values that differ from themselves."""
    try:
        if bool(cell != cell):  # noqa: PLR0124  # as NaN and NaT do
            return True
    except (TypeError, ValueError, ArithmeticError):  # pandas.NA, an array, or a signaling NaN
        return True
    return cell is None or (isinstance(cell, str) and not cell.strip())


def read_arms(table: LogTable, column: str) -> list[str]:
    """Return the names in a column; whole numbers and booleans are names too."""
    arms = []
    for row, cell in enumerate(table.cells[column]):
        try:
            name = str(cell) if isinstance(cell, str | numbers.Integral | np.bool_) else ""
        except ValueError:  # an integer with too many digits
            name = ""
        if not name.strip():
            raise InvalidValueError(
                f"{table.name_row(row)}: column {column!r} must have the name of an arm but got {show(cell)}."
            )
        arms.append(name)
    return arms


def read_rewards(table: LogTable, column: str) -> list[float]:
    """Return the numbers in a column."""
    rewards = []
    for row, cell in enumerate(table.cells[column]):
        reward = parse_number(cell)
        if not abs(reward) <= checks.MAX_MAGNITUDE:
            limit = "finite number" if not math.isfinite(reward) else f"number of at most {checks.MAX_MAGNITUDE:g}"
            raise InvalidValueError(f"{table.name_row(row)}: column {column!r} must be a {limit} but got {show(cell)}.")
        rewards.append(reward)
    return rewards


def parse_number(cell: Any) -> float:
    """Return a cell as a number; NaN if it is none."""
    if not isinstance(cell, str | Decimal | numbers.Real | np.bool_):
        return math.nan
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return math.nan


def read_units(table: LogTable, column: str) -> list[Any]:
    """Return what tells units apart in a column."""
    for row, cell in enumerate(table.cells[column]):
        if is_missing(cell):
            raise InvalidValueError(f"{table.name_row(row)}: column {column!r} must name a unit but got {show(cell)}.")
        try:
            hash(cell)
        except TypeError:
            raise InvalidValueError(
                f"{table.name_row(row)}: column {column!r} must have texts or numbers but got {show(cell)}."
            ) from None
    return table.cells[column]


def read_times(table: LogTable, column: str) -> list[Any]:
    """Return the times in a column as values that compare, all of one kind."""
    times, expected = [], None
    for row, cell in enumerate(table.cells[column]):
        time = _parse_time(cell)
        if time is None:
            raise InvalidValueError(
                f"{table.name_row(row)}: column {column!r} must be a number or a time in ISO 8601, such as "
                f"2026-01-31T12:30, but got {show(cell)}."
            )
        kind = NUMBER
        if isinstance(time, datetime):
            kind = WITHOUT_OFFSET if time.utcoffset() is None else WITH_OFFSET
        expected = expected or kind
        if kind != expected:
            raise InvalidValueError(
                f"{table.name_row(row)}: column {column!r} must be {expected}, as before, but got {show(cell)}."
            )
        times.append(time)
    return times


def _parse_time(cell: Any) -> Any:
    """Return a number or a datetime; None if a cell is neither."""
    if isinstance(cell, str):
        cell = _parse_time_text(cell.strip())
    elif isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if is_missing(cell) or isinstance(cell, bool | np.bool_):
        return None
    if isinstance(cell, datetime):
        return cell
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    return cell if math.isfinite(parse_number(cell)) else None


def _parse_time_text(text: str) -> int | float | datetime | None:
    for parse in (int, float, datetime.fromisoformat):
        try:
            return parse(text)
        except ValueError:
            continue
    return None
