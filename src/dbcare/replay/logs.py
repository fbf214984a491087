"""Logs of arms and rewards: files and frames of any columns, and tables of totals, which are no logs.

Read as single observations, such a table gives a confident wrong answer, so it is refused. It is recognized by either:

- it has two arms or more, and one row for each;
- it has a column that the caller has not named, is called like a count (`COUNT_NAME`), and holds only whole numbers,
  some above 1. Exempt are row numbers (1, 2, 3 and so on, in the whole log or starting over within an arm) and ids: in
  100 rows or more, no number belongs to two arms, and at most half of the rewards differ from each other.
"""

from __future__ import annotations

import csv
import io
import json
import math
import numbers
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.base.files import restore_formula
from dbcare.base.frames import open_frame, show_columns
from dbcare.errors import InvalidValueError

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


COUNTED = (
    "customer|exposure|impression|observation|participant|patient|pageview|recipient|sample|session|subject|trial|user|"
    "view|visitor|visit"
)
COUNT_NAME = re.compile(
    rf"n|n_?obs|counts?|sample_size|((n|num|number_of|total|unique)_)*({COUNTED})s|({COUNTED})s?_count"
)
THOUSANDS = re.compile(r"(?<=\d)[,' \u00a0\u202f](?=\d{3}(?!\d))")  # what separates them, such as in 20,000
MIN_ROWS_WITH_IDS = 100
WHAT_TO_DO = (
    "but each row must be one observation. Expand counts: 800 sales among 20,000 visitors are 800 rows with reward 1 "
    "and 19,200 rows with reward 0, in random order. Sums of amounts, such as revenue, cannot be expanded: export one "
    "row per visitor"
)


def is_count_name(column: str) -> bool:
    """Return whether a column is called like a count: "n", "Visitors", "user_count" or "Number of users"."""
    return COUNT_NAME.fullmatch(re.sub(r"[\s_.-]+", "_", column.strip().lower())) is not None


def refuse_totals(
    where: str,
    arms: Sequence[str],
    rewards: Sequence[float],
    cells: Mapping[str, Sequence[Any]],
    named: Collection[str],
) -> None:
    """Refuse a table of totals, by its cells and the columns that the caller has named."""
    if len(arms) > 1 and len(set(arms)) == len(arms):
        raise InvalidValueError(f"{where} has one row per arm, like a table of totals, {WHAT_TO_DO}.")
    for column in (name for name in cells if name not in named and is_count_name(name)):
        numbers = [parse_number(THOUSANDS.sub("", cell) if isinstance(cell, str) else cell) for cell in cells[column]]
        if (
            all(number >= 0.0 and number.is_integer() for number in numbers)
            and max(numbers) > 1.0
            and not _are_row_numbers(numbers, arms)
            and not _are_ids(numbers, arms, rewards)
        ):
            raise InvalidValueError(
                f"{where} looks like a table of totals, as its column {column!r} has counts such as "
                f"{max(numbers):,.0f}, {WHAT_TO_DO}. If each row is one observation already, remove or rename that "
                "column."
            )


def _are_row_numbers(numbers: Sequence[float], arms: Sequence[str]) -> bool:
    """Return whether numbers count rows, in any order; within an arm in order, and they may start over."""
    if sorted(numbers) == [min(numbers) + step for step in range(len(numbers))]:
        return True
    latest: dict[str, float] = {}
    for arm, number in zip(arms, numbers, strict=True):
        if number > 1.0 and number != latest.get(arm, 0.0) + 1.0:
            return False
        latest[arm] = number
    return True


def _are_ids(numbers: Sequence[float], arms: Sequence[str], rewards: Sequence[float]) -> bool:
    """Return whether numbers tell units apart, each of which has one arm.

    Counts that large that no two arms share one are sums over many observations, and so are their rewards, few of which
    are then equal.
    """
    if len(numbers) < MIN_ROWS_WITH_IDS or 2 * len(set(rewards)) > len(rewards):
        return False
    owner: dict[float, str] = {}
    return all(owner.setdefault(number, arm) == arm for number, arm in zip(numbers, arms, strict=True))


SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


@dataclass(frozen=True)
class LogTable:
    """Cells by column, and where each row stands: the line of a file, or the row of a data frame from 0.

    The columns are those asked for, then others that are called like a count, by which a table of totals is recognized.
    """

    source: str
    noun: str
    cells: dict[str, list[Any]]
    numbers: Sequence[int]

    def name_row(self, row: int) -> str:
        """Return where a row stands, for messages."""
        return f"{self.source}, {self.noun} {self.numbers[row]}"


def read_table(source: Any, columns: Mapping[str, str]) -> LogTable:
    """Return the columns of a file or a data frame; `columns` maps the options that name them to their names."""
    if isinstance(source, str | os.PathLike):
        read = FILE_READERS.get(os.path.splitext(os.fsdecode(source))[1].lower(), _read_csv)
        table = read(source, columns)
    else:
        table = _read_frame(source, columns)
    if not table.numbers:
        raise InvalidValueError(f"{table.source} has no observations.")
    return table


def _read_csv(path: str | os.PathLike[str], columns: Mapping[str, str]) -> LogTable:
    reader = csv.reader(io.StringIO(_read_text(path), newline=""), strict=True)
    lines: list[int] = []
    table = LogTable(str(path), "line", {}, lines)
    places: dict[str, int] | None = None
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if places is None:
                header = [name.strip() for name in row]
                _check_separator(f"{path}, line {reader.line_num},", header, columns)
                _check_columns(f"{path}, line {reader.line_num},", header, columns)
                places = {name: header.index(name) for name in _list_wanted(header, columns)}
                table.cells.update({name: [] for name in places})
                continue
            lines.append(reader.line_num)
            for name, place in places.items():
                if place >= len(row) and name in columns.values():
                    raise InvalidValueError(f"{table.name_row(-1)}, ends before column {name!r}: {','.join(row)!r}.")
                table.cells[name].append(restore_formula(row[place].strip()) if place < len(row) else "")
    except csv.Error as problem:
        raise InvalidValueError(f"{path}, line {reader.line_num}, is not valid CSV: {problem}.") from None
    return table


def _check_separator(where: str, header: list[str], columns: Mapping[str, str]) -> None:
    """Refuse a header whose names are separated by something else, as spreadsheets do in many countries."""
    if len(header) > 1 or header[0] in columns.values():
        return
    for separator, noun in SEPARATORS.items():
        if separator in header[0]:
            raise InvalidValueError(f"{where} separates columns by {noun}; use commas, and decimal points in numbers.")


def _read_json_table(path: str | os.PathLike[str], columns: Mapping[str, str]) -> LogTable:
    rows = list(read_json_lines(path))
    names = {name: None for _, row in rows for name in row}
    _check_columns(f"{path}", list(names) if rows else list(columns.values()), columns)
    cells = {name: [row.get(name) for _, row in rows] for name in _list_wanted(list(names), columns)}
    return LogTable(str(path), "line", cells, [line for line, _ in rows])


def read_json_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each line that is not blank, and the object in it."""
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise InvalidValueError(f"{path}, line {number}, is not valid JSON: {problem}.") from None
        if not isinstance(row, dict):
            raise InvalidValueError(f"{path}, line {number}, must be a JSON object but got {show(row)}.")
        yield number, row


def _read_parquet(path: str | os.PathLike[str], columns: Mapping[str, str]) -> LogTable:
    if not Path(path).is_file():
        raise InvalidValueError(f"{path} cannot be read: there is no such file.")
    try:
        frame = import_module("pyarrow.parquet").read_table(path)
    except ModuleNotFoundError:
        try:
            frame = import_module("polars").read_parquet(path)
        except ModuleNotFoundError:
            raise InvalidValueError("Parquet files require pyarrow or polars; install either one.") from None
    except (OSError, ValueError) as problem:  # pyarrow's own errors are among these
        raise InvalidValueError(f"{path} is not a valid Parquet file: {problem}.") from None
    table = _read_frame(frame, columns)
    return LogTable(str(path), "row", table.cells, table.numbers)


def _read_text(path: str | os.PathLike[str]) -> str:
    try:
        raw = Path(path).read_bytes()
    except (TypeError, ValueError):  # not a path at all
        raise InvalidValueError(f"`source` must be the path of a file but got {show(path)}.") from None
    except OSError as problem:
        raise InvalidValueError(f"{path} cannot be read: {problem.strerror}.") from None
    try:
        return raw.decode("utf-8-sig")  # spreadsheets put a byte order mark before the header
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise InvalidValueError(
            f"{path}, line {line}, is not UTF-8: it has the byte 0x{raw[problem.start]:02x}."
        ) from None


def _read_frame(frame: Any, columns: Mapping[str, str]) -> LogTable:
    """Read a data frame of any library, or a mapping of columns."""
    opened = open_frame(frame)
    if opened is not None:
        _check_columns("The data frame", opened.names, columns)
        cells = opened.read(_list_wanted(opened.names, columns))
    elif isinstance(frame, Mapping):
        names = [name if isinstance(name, str) else show(name) for name in frame]
        _check_columns("The data frame", names, columns)
        cells = {name: _list_cells(frame, name) for name in _list_wanted(names, columns)}
    else:
        raise _refuse(frame)
    lengths = {name: len(column) for name, column in cells.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{length:,} in {name!r}" for name, length in lengths.items())
        raise InvalidValueError(f"`source` must have columns of equal length but got {listed}.")
    return LogTable("The data frame", "row", cells, range(min(lengths.values())))


def _list_cells(columns: Mapping[Any, Any], name: str) -> list[Any]:
    column = columns[name]
    try:
        if not isinstance(column, str | bytes):
            return list(column)
    except TypeError:  # a number
        pass
    raise _refuse(columns)


def _refuse(source: Any) -> InvalidValueError:
    return InvalidValueError(
        f"`source` must be the path of a CSV file, a data frame, or a mapping of columns but got {show(source)}."
    )


FILE_READERS = {".jsonl": _read_json_table, ".ndjson": _read_json_table, ".parquet": _read_parquet}


def _list_wanted(available: list[str], columns: Mapping[str, str]) -> list[str]:
    counts = [name for name in available if is_count_name(name) and available.count(name) == 1]
    return list(dict.fromkeys([*columns.values(), *counts]))


def _check_columns(where: str, available: list[str], columns: Mapping[str, str]) -> None:
    for option, name in columns.items():
        if (found := available.count(name)) != 1:
            problem = f"has {found} columns {name!r}" if found else f"has no column {name!r}"
            raise InvalidValueError(
                f"{where} {problem}; pass `{option}` to name another one of its columns: {show_columns(available)}."
            )


REQUIRED = ("arm_column", "block_column", "reward_column")


def read_log(
    source: str | PathLike[str] | Any,
    *,
    arm_column: str = "arm",
    reward_column: str = "reward",
    unit_column: str | None = None,
    time_column: str | None = None,
) -> list[tuple[str, float]]:
    """Read observations from a file or a data frame.

    Parameters
    ----------
    source : str, Path or data frame
        A .jsonl or .parquet file, any other file as CSV in UTF-8 with a header, a data frame or table (pandas, polars,
        pyarrow), or a mapping of names to columns. In CSV, an apostrophe that marks a text as no formula is removed:
        `Study.export` puts it there.
    arm_column, reward_column : str
        The columns with the arm and the reward. Other columns are ignored.
    unit_column : str, optional
        What was assigned to an arm, such as a user: rewards are summed by unit, so that each unit is one observation.
        Its place in the order is that of its first row. Default: each row is an observation.
    time_column : str, optional
        Sort rows by this column first: times in ISO 8601, numbers, or dates; rows of equal times keep their order.
        Default: rows are in the order of time.

    Returns
    -------
    list of tuple
        Arm and reward of each observation, in order.

    Raises
    ------
    InvalidValueError
        If the source cannot be read, a column is missing, a cell is not what its column needs, or a unit has two arms:
        the message names the line of a file, or the row of a data frame, counted from 0. Also if the source is a table
        of totals instead of a log.

    Notes
    -----
    A table of totals has one row per arm, or a column with counts. A column has counts if no option names it, it is
    called like one ("n", "count", "visitors", "users", "impressions", "trials", "sample_size", "n_users",
    "user_count"), and it holds only whole numbers, some above 1. With a `unit_column`, no column is taken for counts.
    Row numbers and ids are not counts either. Row numbers are 1, 2, 3 and so on, in the whole log or starting over
    within an arm. Ids are recognized in logs of 100 rows or more: no id belongs to two arms, and at most half of the
    rewards differ from each other.

    Examples
    --------
    >>> from dbcare import read_log
    >>> visits = {"user": [7, 8, 7], "variant": ["A", "B", "A"], "revenue": [20.0, 0.0, 5.0]}
    >>> read_log(visits, arm_column="variant", reward_column="revenue", unit_column="user")
    [('A', 25.0), ('B', 0.0)]
    """
    columns = check_columns(
        arm_column=arm_column, reward_column=reward_column, unit_column=unit_column, time_column=time_column
    )
    table = read_table(source, columns)
    arms, rewards = read_arms(table, arm_column), read_rewards(table, reward_column)
    if unit_column is None:
        refuse_totals(table.source, arms, rewards, table.cells, columns.values())
    order: Sequence[int] = range(len(arms))
    if time_column is not None:
        order = sorted(order, key=read_times(table, time_column).__getitem__)
    if unit_column is None:
        return [(arms[row], rewards[row]) for row in order]
    return _sum_by_unit(table, read_units(table, unit_column), arms, rewards, order)


def check_columns(**options: str | None) -> dict[str, str]:
    """Return the columns that are named, by their options; each must be named once."""
    columns: dict[str, str] = {}
    for option, given in options.items():
        if given is not None or option in REQUIRED:
            column = checks.text(option, given)
            if column in columns.values():
                raise InvalidValueError(f"`{option}` must be a column of its own but got {show(column)}.")
            columns[option] = column
    return columns


def _sum_by_unit(
    table: LogTable, units: Sequence[Any], arms: Sequence[str], rewards: Sequence[float], order: Sequence[int]
) -> list[tuple[str, float]]:
    rows: dict[Any, list[int]] = {}
    for row in order:
        seen = rows.setdefault(units[row], [])
        seen.append(row)
        if arms[row] != arms[seen[0]]:
            raise InvalidValueError(
                f"{table.name_row(row)}: unit {show(units[row])} must have one arm but has {show(arms[row])} here and "
                f"{show(arms[seen[0]])} in {table.noun} {table.numbers[seen[0]]}; leave such units out."
            )
    return [(arms[seen[0]], math.fsum(rewards[row] for row in seen)) for seen in rows.values()]
