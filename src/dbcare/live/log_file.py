"""A log of observations made elsewhere: a CSV file with the columns `arm` and `reward`."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.live.export import restore_formula

COLUMNS = ("arm", "reward")


def read_log(path: str | Path) -> list[tuple[str, float]]:
    r"""Read observations from a CSV file.

    Parameters
    ----------
    path : str or Path
        A CSV file in UTF-8 with a header that has the columns `arm` and `reward`; other columns are ignored. An
        apostrophe that marks an arm as text, not a formula, is removed: `Study.export` puts it there.

    Returns
    -------
    list of tuple
        Arm and reward of each observation, in the file's order.

    Raises
    ------
    InvalidValueError
        If the file cannot be read, a column is missing, a reward is not a finite number, or an arm has no name: the
        message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dbcare import read_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "log.csv"
    ...     _ = path.write_text("arm,reward,day\nA,1,Mon\nB,0,Mon\n")
    ...     read_log(path)
    [('A', 1.0), ('B', 0.0)]
    """
    reader = csv.reader(io.StringIO(_read_text(path), newline=""), strict=True)
    observations: list[tuple[str, float]] = []
    places: list[int] | None = None
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if places is None:
                places = _find_columns(path, reader.line_num, row)
            else:
                observations.append(_parse_observation(path, reader.line_num, row, places))
    except csv.Error as problem:
        raise InvalidValueError(f"{path}, line {reader.line_num}, is not valid CSV: {problem}.") from None
    if not observations:
        raise InvalidValueError(f"{path} has no observations below its header.")
    return observations


def _read_text(path: str | Path) -> str:
    try:
        raw = Path(path).read_bytes()
    except (TypeError, ValueError):  # not a path at all
        raise InvalidValueError(f"`path` must be the path of a file but got {validation.show(path)}.") from None
    except OSError as problem:
        raise InvalidValueError(f"{path} cannot be read: {problem.strerror}.") from None
    try:
        return raw.decode("utf-8-sig")  # spreadsheets put a byte order mark before the header
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise InvalidValueError(
            f"{path}, line {line}, is not UTF-8: it has the byte 0x{raw[problem.start]:02x}."
        ) from None


def _find_columns(path: str | Path, line: int, header: list[str]) -> list[int]:
    names = [name.strip() for name in header]
    for column in COLUMNS:
        if names.count(column) != 1:
            raise InvalidValueError(
                f"{path}, line {line}, must be a header with exactly one column {column!r} but got {','.join(names)!r}."
            )
    return [names.index(column) for column in COLUMNS]


def _parse_observation(path: str | Path, line: int, row: list[str], places: list[int]) -> tuple[str, float]:
    if len(row) <= max(places):
        raise InvalidValueError(f"{path}, line {line}, must have an arm and a reward but got {','.join(row)!r}.")
    arm, text = (row[place].strip() for place in places)
    if not arm:
        raise InvalidValueError(f"{path}, line {line}: `arm` must not be empty.")
    try:
        reward = float(text)
    except ValueError:
        raise InvalidValueError(f"{path}, line {line}: `reward` must be a number but got {text!r}.") from None
    if not math.isfinite(reward):
        raise InvalidValueError(f"{path}, line {line}: `reward` must be finite but got {text}.")
    return restore_formula(arm), reward
