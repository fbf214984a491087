"""Reading logs: CSV files and data frames, sums by unit, and sorting by time."""

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # has no stubs here
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pytest

import dbcare
from dbcare.errors import InvalidValueError

COLUMNS: dict[str, Any] = {"arm_column": "variant", "reward_column": "revenue"}
SOURCES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "mapping": lambda visits: visits,
    "pandas": pd.DataFrame,
    "pandas with an index": lambda visits: pd.DataFrame(visits).set_index(np.arange(len(visits["user"])) * 7 + 3),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "a batch of pyarrow": pa.RecordBatch.from_pydict,
    "numpy": lambda visits: {name: np.array(column) for name, column in visits.items()},
}


def make_visits(number: int = 300) -> dict[str, list[Any]]:
    """Return visits of users, each of whom always sees the same variant, in no order of time."""
    chance = random.Random(2)
    users = [f"u{chance.randrange(number // 3)}" for _ in range(number)]
    variants = {user: chance.choice("ABC") for user in users}
    return {
        "user": users,
        "variant": [variants[user] for user in users],
        "revenue": [float(chance.randrange(50)) for _ in users],
        "at": [datetime(2026, 1, 1) + timedelta(hours=chance.randrange(200)) for _ in users],
        "page": ["home"] * number,
    }


def sum_by_hand(visits: dict[str, list[Any]]) -> list[tuple[str, float]]:
    """Return the sums by user, in the order of first visits; equal times keep their order."""
    rows = sorted(zip(visits["at"], range(len(visits["at"])), strict=True))
    totals: dict[str, float] = {}
    variants: dict[str, str] = {}
    for _, row in rows:
        user = visits["user"][row]
        totals[user] = totals.get(user, 0.0) + visits["revenue"][row]
        variants[user] = visits["variant"][row]
    return [(variants[user], total) for user, total in totals.items()]


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same(source: str) -> None:
    visits = make_visits()
    frame = SOURCES[source](visits)
    assert dbcare.read_log(frame, **COLUMNS) == list(zip(visits["variant"], visits["revenue"], strict=True))
    log = dbcare.read_log(frame, **COLUMNS, unit_column="user", time_column="at")
    assert log == sum_by_hand(visits)
    assert len(log) < len(visits["user"])
    assert log != dbcare.read_log(frame, **COLUMNS, unit_column="user")  # the order of the rows is another one
    assert {type(arm) for arm, _ in log} == {str}


def test_a_file_gives_the_same_as_a_frame(tmp_path: Path) -> None:
    visits = make_visits()
    file = tmp_path / "visits.csv"
    pd.DataFrame(visits).to_csv(file, index=False)
    log = dbcare.read_log(file, **COLUMNS, unit_column="user", time_column="at")
    assert log == sum_by_hand(visits)


@pytest.mark.parametrize(
    "times",
    [
        [3, 1, 2.5],
        [Decimal("0.3"), 0.1, 0.2],
        ["10", "9", "9.5"],  # as numbers, not as texts
        ["2026-01-31", "2026-01-02", "2026-01-30T12:00"],
        ["2026-01-01T12:00+01:00", "2026-01-01T10:30Z", "2026-01-01T10:45+00:00"],
        [date(2026, 2, 1), date(2026, 1, 2), datetime(2026, 1, 2, 1)],
        [
            datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=1))),
            *(datetime(2026, 1, 1, n, tzinfo=UTC) for n in (9, 10)),
        ],
        list(np.array(["2026-03-01", "2026-01-01", "2026-02-01"], dtype="datetime64[D]")),
        [1_767_225_600_000_000_003, 1_767_225_600_000_000_001, 1_767_225_600_000_000_002],
    ],
)
def test_rows_are_sorted_by_time(times: list[Any]) -> None:
    log = {"arm": ["A", "B", "A"], "reward": [1, 2, 3], "at": times}
    assert dbcare.read_log(log, time_column="at") == [("B", 2.0), ("A", 3.0), ("A", 1.0)]
    alike = {"arm": ["A", "B", "A"], "reward": [1, 2, 3], "at": times[:1] * 3}
    assert dbcare.read_log(alike, time_column="at") == [("A", 1.0), ("B", 2.0), ("A", 3.0)]


def test_cells_of_other_types() -> None:
    """Arms may be numbers, rewards booleans, decimals or texts; units anything that tells users apart."""
    log = {"arm": [0, np.int64(1), True, 0], "reward": [True, Decimal("1.5"), " 2 ", 0], "unit": [(1, 2), 3, None, 4]}
    assert dbcare.read_log(log) == [("0", 1.0), ("1", 1.5), ("True", 2.0), ("0", 0.0)]
    assert dbcare.read_log({**log, "unit": [(1, 2), 3, "x", 4]}, unit_column="unit") == dbcare.read_log(log)


NO_FRAME = "`source` must be the path of a CSV file, a data frame, or a mapping of columns but got "
TIMES = "must be a number or a time in ISO 8601, such as 2026-01-31T12:30, but got "


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (
            {"variant": ["A"]},
            {},
            "The data frame has no column 'arm'; pass `arm_column` to name another one of its columns: variant.",
        ),
        ({}, {}, "The data frame has no column 'arm'; pass `arm_column` to name another one of its columns: none."),
        (
            pd.DataFrame([[1, 2, 3]], columns=["arm", "reward", "reward"]),
            {},
            "The data frame has several columns with the same name; rename or drop them.",
        ),
        ({f"c{n}": [] for n in range(30)}, {}, f"columns: {', '.join(f'c{n}' for n in range(20))} and 10 more."),
        (
            {"arm": ["A"], "reward": [1]},
            {"unit_column": "arm"},
            "`unit_column` must be a column of its own but got 'arm'.",
        ),
        ({"arm": ["A"], "reward": [1]}, {"time_column": ""}, "`time_column` must be a string of 1 to 200 printable"),
        ({"arm": ["A"], "reward": [1, 2]}, {}, "columns of equal length but got 1 in 'arm', 2 in 'reward'."),
        ({"arm": [], "reward": []}, {}, "The data frame has no observations."),
        ({"arm": "AB", "reward": [1, 2]}, {}, NO_FRAME),
        ({"arm": 1.0, "reward": 2.0}, {}, NO_FRAME),
        (["arm", "reward"], {}, f"{NO_FRAME}['arm', 'reward']."),
        ({"arm": ["A", None], "reward": [1, 2]}, {}, "row 1: column 'arm' must have the name of an arm but got None."),
        ({"arm": ["A", " "], "reward": [1, 2]}, {}, "row 1: column 'arm' must have the name of an arm but got ' '."),
        ({"arm": ["A", 1.5], "reward": [1, 2]}, {}, "row 1: column 'arm' must have the name of an arm but got 1.5."),
        (
            pd.DataFrame({"arm": ["A", "B"], "reward": [1, None]}),
            {},
            "row 1: column 'reward' must be a finite number but got nan.",
        ),
        (
            {"arm": ["A"], "reward": [1e60]},
            {},
            "row 0: column 'reward' must be a number of at most 1e+50 but got 1e+60.",
        ),
        ({"arm": ["A"], "reward": [10**400]}, {}, "row 0: column 'reward' must be a finite number but got"),
        ({"arm": ["A"], "reward": [1], "t": [pd.NaT]}, {"time_column": "t"}, f"row 0: column 't' {TIMES}NaT."),
        ({"arm": ["A"], "reward": [1], "t": ["noon"]}, {"time_column": "t"}, f"row 0: column 't' {TIMES}'noon'."),
        ({"arm": ["A"], "reward": [1], "t": [True]}, {"time_column": "t"}, f"row 0: column 't' {TIMES}True."),
        ({"arm": ["A"], "reward": [1], "t": ["inf"]}, {"time_column": "t"}, f"row 0: column 't' {TIMES}'inf'."),
        (
            {"arm": ["A"] * 2, "reward": [1] * 2, "t": ["2026-01-01", 5]},
            {"time_column": "t"},
            "row 1: column 't' must be a time without a UTC offset, as before, but got 5.",
        ),
        (
            {"arm": ["A"] * 2, "reward": [1] * 2, "t": ["2026-01-01T00:00Z", "2026-01-01"]},
            {"time_column": "t"},
            "row 1: column 't' must be a time with a UTC offset, as before, but got '2026-01-01'.",
        ),
        (
            {"arm": ["A"], "reward": [1], "u": [None]},
            {"unit_column": "u"},
            "row 0: column 'u' must name a unit but got None.",
        ),
        (
            {"arm": ["A"], "reward": [1], "u": [pd.NA]},
            {"unit_column": "u"},
            "row 0: column 'u' must name a unit but got <NA>.",
        ),
        (
            {"arm": ["A"], "reward": [1], "u": [[1]]},
            {"unit_column": "u"},
            "row 0: column 'u' must have texts or numbers but got [1].",
        ),
        (
            {"arm": ["A", "C", "B"], "reward": [1, 2, 3], "u": [7, 8, 7]},
            {"unit_column": "u"},
            "row 2: unit 7 must have one arm but has 'B' here and 'A' in row 0; leave such units out.",
        ),
    ],
)
def test_frames_that_are_not_logs(source: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        dbcare.read_log(source, **options)
    assert message in str(caught.value)


def test_a_log_is_read_in_its_order(tmp_path: Path) -> None:
    """It may have what spreadsheets write: a byte order mark, quoted names, line breaks, empty lines, spaces."""
    file = tmp_path / "log.csv"
    text = '\ufeffday,reward, arm\r\n1,0.5,"A, the first"\r\n\r\n2,-1e-3, B\u00e4r \r\n,,\r\n3, 2 ,"x\ny"\r\n4,0,"x\ny"'
    file.write_bytes(text.encode())
    assert dbcare.read_log(file) == [("A, the first", 0.5), ("B\u00e4r", -1e-3), ("x\ny", 2.0), ("x\ny", 0.0)]


@pytest.mark.parametrize(
    ("content", "ending"),
    [
        (b"", " has no observations."),
        (b"\n\n", " has no observations."),
        (b"arm,reward\n", " has no observations."),
        (
            b"name,reward\nA,1\n",
            ", line 1, has no column 'arm'; pass `arm_column` to name another one of its columns: name, reward.",
        ),
        (
            b"\narm;reward\nA;1\n",
            ", line 2, separates columns by semicolons; use commas, and decimal points in numbers.",
        ),
        (b"arm\treward\nA\t1\n", ", line 1, separates columns by tabs; use commas, and decimal points in numbers."),
        (
            b"arm,reward,reward\nA,1,2\n",
            ", line 1, has 2 columns 'reward'; pass `reward_column` to name another one of "
            "its columns: arm, reward, reward.",
        ),
        (b"arm,reward\nA,1\nB,much\n", ", line 3: column 'reward' must be a finite number but got 'much'."),
        (b"arm,reward\nA,1\nB,\n", ", line 3: column 'reward' must be a finite number but got ''."),
        (b"arm,reward\nA,nan\n", ", line 2: column 'reward' must be a finite number but got 'nan'."),
        (b"arm,reward\nA,1\n\nB,-inf\n", ", line 4: column 'reward' must be a finite number but got '-inf'."),
        (b"arm,reward\nA\n", ", line 2, ends before column 'reward': 'A'."),
        (b"arm,reward\n ,1\n", ", line 2: column 'arm' must have the name of an arm but got ''."),
        (b'arm,reward\n"A,1\n', ", line 2, is not valid CSV: unexpected end of data."),
        (b"arm,reward\nA,1\nB\xe4r,1\n", ", line 3, is not UTF-8: it has the byte 0xe4."),
        ("arm,reward\nA,1\n".encode("utf-16"), ", line 1, is not UTF-8: it has the byte 0xff."),
    ],
)
def test_files_that_are_not_logs(tmp_path: Path, content: bytes, ending: str) -> None:
    file = tmp_path / "log.csv"
    file.write_bytes(content)
    with pytest.raises(InvalidValueError) as caught:
        dbcare.read_log(file)
    assert str(caught.value).startswith(str(file))
    assert str(caught.value).endswith(ending)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"none\.csv cannot be read: No such file or directory"):
        dbcare.read_log(tmp_path / "none.csv")
    with pytest.raises(InvalidValueError, match="cannot be read: Is a directory"):
        dbcare.read_log(tmp_path)
