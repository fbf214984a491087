"""Data frames in and out: the same cells whichever library they are of, and none is loaded without need."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # has no stubs here
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pytest

import dbcare
from dbcare.base.frames import find_types, list_rows, make_frame, open_frame

CELLS: dict[str, list[Any]] = {
    "trial": [1, 2],
    "reward": [None, 0.5],
    "counted": [True, False],
    "arm": ["A", None],
    "asked": [datetime(2026, 1, 31, 12, 30, 59, 123456, UTC), None],
    "late": [None, None],
}
TYPES = {"trial": int, "reward": float, "counted": bool, "arm": str, "asked": datetime, "late": float}
FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "a batch of pyarrow": pa.RecordBatch.from_pydict,
}


def test_types_do_not_depend_on_the_cells() -> None:
    """Columns without a single cell, or with missing ones only, have the types of the others; the library's own say."""
    empty: dict[str, list[Any]] = {name: [] for name in CELLS}
    for cells in (CELLS, empty):
        frame = make_frame(cells, TYPES, "pandas")
        kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
        assert kinds.pop("arm") in ("str", "object", "string")
        assert kinds == {
            "trial": "int64",
            "reward": "float64",
            "counted": "bool",
            "asked": "datetime64[us, UTC]",
            "late": "float64",
        }
        polars = make_frame(cells, TYPES, "polars")
        assert polars.schema == {
            "trial": pl.Int64,
            "reward": pl.Float64,
            "counted": pl.Boolean,
            "arm": pl.String,
            "asked": pl.Datetime("us", "UTC"),
            "late": pl.Float64,
        }
        assert polars.to_dict(as_series=False) == cells
        arrow = make_frame(cells, TYPES, "pyarrow")
        assert arrow.to_pydict() == cells
        assert arrow.schema.field("late").type == pa.float64()


@pytest.mark.parametrize("library", FRAMES)
def test_cells_come_back(library: str) -> None:
    cells = {"b": [1.5, 2.5], "a": ["x", "y"], "n": [3, 4]}
    columns = open_frame(FRAMES[library](cells))
    assert columns is not None
    assert columns.names == ["b", "a", "n"]
    assert columns.read(["n", "a"]) == {"n": [3, 4], "a": ["x", "y"]}
    assert columns.list_records() == [{"b": 1.5, "a": "x", "n": 3}, {"b": 2.5, "a": "y", "n": 4}]
    assert all(type(cell) in (int, float, str) for column in columns.read(columns.names).values() for cell in column)


@pytest.mark.parametrize("other", [[("A", 0.5)], {"arm": ["A"]}, 3, None, "frame", pd.DataFrame, iter([1])])
def test_other_things_are_not_data_frames(other: Any) -> None:
    assert open_frame(other) is None
    assert list_rows("observations", other, ("arm", "reward")) is other


@pytest.mark.parametrize("library", FRAMES)
def test_logs_questions_and_observations_are_taken_alike(library: str) -> None:
    rows = [("A", 1.0), ("B", 0.0)] * 30
    log = FRAMES[library]({"arm": [arm for arm, _ in rows], "reward": [reward for _, reward in rows]})
    assert dbcare.read_log(log) == rows
    plain, framed = (dbcare.replay_log(source, cost=0.01, sigma=0.5) for source in (rows, log))
    assert framed.sentences() == plain.sentences()
    blocks = FRAMES[library]({"arm": ["A", "B"] * 3, "question": list("xxyyzz"), "score": [1.0, 0.5] * 3})
    assert dbcare.read_block_log(blocks).blocks == ("x", "y", "z")
    questions = FRAMES[library]({"text": [f"What is {number}?" for number in range(40)], "right": list(range(40))})
    comparison = dbcare.compare(
        {"good": lambda question: question["right"], "bad": lambda _question: -1},
        questions,
        lambda question, answer: float(answer == question["right"]),
        price=0.01,
        value=1_000,
        progress=False,
    )
    assert comparison.recommendation.arm == "good"
    frame = comparison.to_dataframe("polars")
    assert frame.schema == {"question": pl.String, "arm": pl.String, "score": pl.Float64, "price": pl.Float64}


def test_a_stream_is_read_once() -> None:
    """Whatever has Arrow's interface is a data frame."""
    rows = [("A", 1.0), ("B", 0.5)] * 30
    table = pa.table({"arm": [arm for arm, _ in rows], "reward": [reward for _, reward in rows]})
    assert dbcare.read_log(table.to_reader()) == rows
    assert dbcare.replay_log(table.to_reader(), cost=0.01, sigma=0.5).logged == 60


def test_plans_as_data_frames() -> None:
    plan = dbcare.plan(arms=2, cost=0.01, sigma=1.0, gaps=[0.5, 1.0], runs=200)
    frame = plan.to_dataframe("polars")
    assert frame.select("policy", "gap", "total_loss").rows(named=True) == [
        {name: record[name] for name in ("policy", "gap", "total_loss")} for record in plan.records()
    ]
    assert frame.schema["runs"] == pl.Int64
    assert list(plan.to_dataframe("pandas").columns) == frame.columns == list(plan.records()[0])


def test_optional_types_are_found() -> None:
    assert find_types(dbcare.comparing.ComparedAnswer) == {"question": str, "arm": str, "score": float, "price": float}
    assert find_types(dbcare.studies.TrialRow)["counted"] is bool


def test_nothing_is_loaded_without_a_frame() -> None:
    """A study works, and refuses nothing, where neither narwhals nor any library of frames can be imported."""
    code = """
import sys
for name in ("narwhals", "pandas", "polars", "pyarrow"):
    sys.modules[name] = None
import dbcare
study = dbcare.create_study("s", ["A", "B"], cost=0.1, sigma=1.0)
study.add([("A", 1.0), ("B", 0.0)])
print(dbcare.read_log({"arm": ["A"], "reward": [1.0]}), study.status().rewards)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[('A', 1.0)] 2\n"
