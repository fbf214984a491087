"""The rows of a log, from a file or a data frame: the cells of the columns that are read."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dbcare.base.checks import show
from dbcare.base.files import restore_formula
from dbcare.base.frames import open_frame, show_columns
from dbcare.errors import InvalidValueError
from dbcare.live.log_totals import is_count_name

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
