"""The trials of a study as rows, for data frames and files; however many there are, few are in memory at a time."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from dbcare.base import checks
from dbcare.base.files import check_path, defuse_formula, replacing
from dbcare.base.frames import find_types, make_frame
from dbcare.errors import InvalidValueError
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.settings import Settings
from dbcare.studies.trial import read_reason, read_unit

TextFormat = Literal["csv", "json", "jsonl"]

FILE_TYPES = (".csv", ".jsonl", ".parquet")
ROWS_PER_PIECE = 1_000  # of a text
ROWS_PER_GROUP = 5_000  # of a Parquet file
FREE_TEXTS = ("arm", "worker", "unit", "block", "reason", "tag")  # which people choose
TIMES = ("asked", "expires", "answered")


@dataclass
class TrialRow:
    """One trial, as `Study.trials` lists it; times are in UTC, as ISO 8601.

    Parameters
    ----------
    trial : int
        Its number.
    arm : str
        Its arm.
    status : str
        "asked", "told", "failed" or "expired".
    reward : float or None
        The reward as it was told; above a study's cap, it counts as the cap.
    late : float or None
        A reward told after the trial had expired, which is only recorded.
    counted : bool
        Whether its outcome has been processed.
    worker : str or None
        Who asked for it.
    asked, expires, answered : str or None
        When it was asked, when its lease ends, and when its outcome was told.
    unit : str or None
        Who or what it was asked for.
    block : str or None
        The block that it belongs to, if the study has blocks.
    price : float or None
        What it cost as reported, in money, or in units of the loss without a value; None for its arm's price.
    reason : str or None
        Why it failed, if that was told.
    tag : str or None
        The random text by which `Study.tell` recognizes it; None for an observation made elsewhere.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("rows example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> study.tell(study.ask(), 0.5)
    >>> row = next(study.trials())
    >>> row.arm, row.status, row.reward
    ('A', 'told', 0.5)
    """

    trial: int
    arm: str
    status: str
    reward: float | None
    late: float | None
    counted: bool
    worker: str | None
    asked: str
    expires: str | None
    answered: str | None
    unit: str | None = None
    block: str | None = None
    price: float | None = None
    reason: str | None = None
    tag: str | None = None


COLUMNS = tuple(TrialRow.__dataclass_fields__)
get_values = attrgetter(*COLUMNS)
encode_json = json.JSONEncoder(allow_nan=False).encode


def make_rows(settings: Settings, events: Iterable[Event], counted: int) -> Iterator[TrialRow]:
    """Yield one row per trial; events come trial by trial, and `counted` is the last trial that has been processed."""
    row: TrialRow | None = None
    for event in events:
        if event.kind is EventKind.ASKED:
            if row is not None:
                yield row
            row = TrialRow(
                trial=event.trial,
                arm=settings.arms[event.arm],
                status=str(event.kind),
                reward=None,
                late=None,
                counted=event.trial <= counted,
                worker=event.worker,
                asked=format_time(event.at),
                expires=None if event.expires is None else format_time(event.expires),
                answered=None,
                unit=read_unit(event.note),
                block=settings.name_block(event.block),
                tag=event.tag,
            )
        elif row is not None:
            row.answered = format_time(event.at)
            if event.price is not None:
                # Without the last digit, so that the price that was reported comes back.
                row.price = float(f"{event.price * (settings.value or 1.0):.15g}")
            if event.kind is EventKind.SURPLUS:
                row.late = event.reward
            else:
                row.status, row.reward = str(event.kind), event.reward
                row.reason = read_reason(event.note)
    if row is not None:
        yield row


def format_time(at: float) -> str:
    """Return seconds since 1970 as `datetime.isoformat` does, in less than half the time."""
    second = math.floor(at)
    microseconds = round((at - second) * 1e6)
    if 0 < microseconds < 1_000_000:
        return f"{_format_second(second)}.{microseconds:06d}+00:00"
    return datetime.fromtimestamp(at, UTC).isoformat()


@lru_cache(maxsize=1024)
def _format_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).replace(tzinfo=None).isoformat()


def format_trials(rows: Iterable[TrialRow], kind: TextFormat) -> Iterator[str]:
    """Yield the rows as CSV with a header (formulas defused), as a JSON list, or as JSON Lines, in pieces."""
    if kind == "csv":
        yield ",".join(COLUMNS) + "\n"
        for batch in _batches(rows, ROWS_PER_PIECE):
            file = io.StringIO(newline="")
            csv.writer(file, lineterminator="\n").writerows(map(_cells, batch))
            yield file.getvalue()
    elif kind == "jsonl":
        for batch in _batches(rows, ROWS_PER_PIECE):
            yield "".join([f"{encode_json(vars(row))}\n" for row in batch])
    else:
        before = "[\n"
        for batch in _batches(rows, ROWS_PER_PIECE):
            yield before + ",\n".join([encode_json(vars(row)) for row in batch])
            before = ",\n"
        yield "[]\n" if before == "[\n" else "\n]\n"


def _batches(rows: Iterable[TrialRow], size: int) -> Iterator[list[TrialRow]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, size)):
        yield batch


def _cells(row: TrialRow) -> Iterable[Any]:
    texts = {name: defuse_formula(value) for name in FREE_TEXTS if (value := getattr(row, name)) is not None}
    return (vars(row) | texts).values()


def _make_columns(rows: Iterable[TrialRow]) -> dict[str, list[Any]]:
    values = zip(*map(get_values, rows), strict=True)
    return {name: list(next(values, ())) for name in COLUMNS}


def make_data_frame(rows: Iterable[TrialRow], library: str | None) -> Any:
    """Return a data frame of pandas, polars or pyarrow; times are points in time there, not texts."""
    columns = _make_columns(rows)
    for name in TIMES:
        columns[name] = [None if text is None else datetime.fromisoformat(text) for text in columns[name]]
    return make_frame(columns, find_types(TrialRow) | dict.fromkeys(TIMES, datetime), library)


def write_trials(rows: Iterable[TrialRow], path: str | Path) -> Path:
    """Write a .csv, .jsonl or .parquet file (the last requires pyarrow or polars), whole or not at all."""
    path = check_path(path)
    file_type = checks.one_of("path", path.suffix.lower(), FILE_TYPES)
    with replacing(path) as draft:
        if file_type == ".parquet":
            _write_parquet(rows, draft)
        else:
            with draft.open("w", encoding="utf-8", newline="") as file:
                file.writelines(format_trials(rows, "csv" if file_type == ".csv" else "jsonl"))
    return path


def _write_parquet(rows: Iterable[TrialRow], path: Path) -> None:
    """Write row groups with pyarrow; polars, which needs all rows at once, is next best."""
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        try:
            polars = import_module("polars")
        except ModuleNotFoundError:
            raise InvalidValueError("Parquet files require pyarrow or polars; install either one.") from None
        polars.DataFrame(_make_columns(rows)).write_parquet(path)
        return
    numbers = dict.fromkeys(("reward", "late", "price"), arrow.float64())
    types = {"trial": arrow.int64(), "counted": arrow.bool_(), **numbers}
    schema = arrow.schema([(name, types.get(name, arrow.string())) for name in COLUMNS])
    with path.open("wb") as file, parquet.ParquetWriter(file, schema) as writer:
        for batch in _batches(rows, ROWS_PER_GROUP):
            writer.write_batch(arrow.RecordBatch.from_pydict(_make_columns(batch), schema))
