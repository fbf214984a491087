"""A log of observations made elsewhere: a CSV file with the columns `arm` and `reward`."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from dbcare.errors import InvalidValueError

COLUMNS = ("arm", "reward")


def read_log(path: str | Path) -> list[tuple[str, float]]:
    """The observations of a CSV file in their order: arm and reward; other columns are ignored.

    An error names the line: a column that is missing, a reward that is no finite number, an arm without a name.
    """
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    found: list[tuple[str, float]] = []
    places: list[int] | None = None
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if places is None:
                places = _places(path, reader.line_num, row)
            else:
                found.append(_observation(path, reader.line_num, row, places))
    except csv.Error as problem:
        raise InvalidValueError(f"{path}, line {reader.line_num}, must be CSV but got: {problem}.") from None
    if not found:
        raise InvalidValueError(f"{path} must have a header and observations below it but got none.")
    return found


def _text(path: str | Path) -> str:
    try:
        raw = Path(path).read_bytes()
    except OSError as problem:
        raise InvalidValueError(f"{path} must be a file that can be read but got: {problem.strerror}.") from None
    try:
        return raw.decode("utf-8-sig")  # spreadsheets put a mark before the header
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise InvalidValueError(
            f"{path}, line {line}, must be text in UTF-8 but got the byte 0x{raw[problem.start]:02x}."
        ) from None


def _places(path: str | Path, line: int, header: list[str]) -> list[int]:
    names = [name.strip() for name in header]
    for column in COLUMNS:
        if names.count(column) != 1:
            raise InvalidValueError(
                f"{path}, line {line}, must be a header with one column {column!r} but got {','.join(names)!r}."
            )
    return [names.index(column) for column in COLUMNS]


def _observation(path: str | Path, line: int, row: list[str], places: list[int]) -> tuple[str, float]:
    if len(row) <= max(places):
        raise InvalidValueError(f"{path}, line {line}, must have an arm and a reward but got {','.join(row)!r}.")
    arm, text = (row[place].strip() for place in places)
    if not arm:
        raise InvalidValueError(f"{path}, line {line}: `arm` must be a name but got an empty one.")
    try:
        reward = float(text)
    except ValueError:
        raise InvalidValueError(f"{path}, line {line}: `reward` must be a number but got {text!r}.") from None
    if not math.isfinite(reward):
        raise InvalidValueError(f"{path}, line {line}: `reward` must be finite but got {text}.")
    return arm, reward
