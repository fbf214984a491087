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
        The reward it counts with.
    late : float or None
        A reward told after the trial had expired, which is only recorded.
    counted : bool
        Whether its outcome has been processed.
    worker : str or None
        Who asked for it.
    asked, expires, answered : str or None
        When it was asked, when its lease ends, and when its outcome was told.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("rows example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> study.tell(study.ask(), 0.5)
    >>> row = study.trials()[0]
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


def make_rows(settings: Settings, events: Iterable[Event], counted: int) -> list[TrialRow]:
    """Return one row per trial, in the order asked; `counted` is the last trial that has been processed."""
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
                asked=_iso_time(event.at),
                expires=None if event.expires is None else _iso_time(event.expires),
                answered=None,
            )
        elif event.trial:
            row = rows[event.trial]
            row.answered = _iso_time(event.at)
            if event.kind is EventKind.SURPLUS:
                row.late = event.reward
            else:
                row.status, row.reward = str(event.kind), event.reward
    return list(rows.values())


def _iso_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def make_data_frame(rows: list[TrialRow]) -> Any:
    """Return a data frame of pandas or polars, whichever is installed."""
    plain = [asdict(row) for row in rows]
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(plain)
        except ModuleNotFoundError:
            continue
    raise InvalidValueError("Data frames require pandas or polars; install either one.")


def format_csv(rows: list[TrialRow]) -> str:
    """Return the rows as CSV with a header."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(TrialRow.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(vars(row) for row in rows)
    return file.getvalue()


def write_trials(rows: list[TrialRow], path: str | Path) -> Path:
    """Write a .csv, .jsonl or .parquet file (the last requires pandas or polars), whole or not at all."""
    path = Path(path)
    kind = validation.one_of("path", path.suffix.lower(), FORMATS)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if kind == ".parquet":
            frame = make_data_frame(rows)
            (frame.write_parquet if hasattr(frame, "write_parquet") else frame.to_parquet)(draft)
        else:
            with draft.open("w", encoding="utf-8", newline="") as file:
                if kind == ".jsonl":
                    file.writelines(json.dumps(asdict(row), allow_nan=False) + "\n" for row in rows)
                else:
                    file.write(format_csv(rows))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path
