"""The trials of a study as rows, for data frames and files."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.live.events import Event, EventKind
from dbcare.live.settings import Settings

FORMATS = (".csv", ".jsonl", ".parquet")


@dataclass
class TrialRow:
    """One trial; times are in UTC, as ISO 8601."""

    trial: int
    arm: str
    status: str  # asked, told, failed or expired
    reward: float | None  # what it counts as
    late: float | None  # told after it had expired: on record only
    counted: bool  # whether its outcome has had its turn
    worker: str | None
    asked: str
    expires: str | None
    answered: str | None


def rows_of(settings: Settings, events: Iterable[Event], counted: int) -> list[TrialRow]:
    """One row for each trial, in the order asked; `counted` is the last trial that has had its turn."""
    rows: dict[int, TrialRow] = {}
    for event in events:
        if event.kind is EventKind.ASKED:
            rows[event.trial] = TrialRow(
                trial=event.trial,
                arm=settings.arms[event.arm],
                status=str(event.kind),
                reward=None,
                late=None,
                counted=event.trial <= counted,
                worker=event.worker,
                asked=_time(event.at),
                expires=None if event.expires is None else _time(event.expires),
                answered=None,
            )
        elif event.trial:
            row = rows[event.trial]
            row.answered = _time(event.at)
            if event.kind is EventKind.SURPLUS:
                row.late = event.reward
            else:
                row.status, row.reward = str(event.kind), event.reward
    return list(rows.values())


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def data_frame(rows: list[TrialRow]) -> Any:
    """A data frame of pandas or polars, whichever is installed."""
    plain = [asdict(row) for row in rows]
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(plain)
        except ModuleNotFoundError:
            continue
    raise InvalidValueError("A data frame must come from pandas or polars but got neither: install one of them.")


def csv_text(rows: list[TrialRow]) -> str:
    """A table with a header."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(TrialRow.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(vars(row) for row in rows)
    return file.getvalue()


def export(rows: list[TrialRow], path: str | Path) -> Path:
    """Write .csv, .jsonl or .parquet (which needs pandas or polars); whole or not at all."""
    path = Path(path)
    kind = validation.one_of("path", path.suffix.lower(), FORMATS)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if kind == ".parquet":
            frame = data_frame(rows)
            (frame.write_parquet if hasattr(frame, "write_parquet") else frame.to_parquet)(draft)
        else:
            with draft.open("w", encoding="utf-8", newline="") as file:
                if kind == ".jsonl":
                    file.writelines(json.dumps(asdict(row), allow_nan=False) + "\n" for row in rows)
                else:
                    file.write(csv_text(rows))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path
