"""Tables of totals are refused wherever a log is read; logs with columns of similar names are not."""

import random
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # has no stubs here
import pytest

import dbcare
from dbcare.errors import InvalidValueError
from dbcare.replay.logs import is_count_name

DAYS = {
    "arm": ["old", "new"] * 30,
    "reward": [40 + day % 7 for day in range(60)],
    "visitors": [1_700 + 13 * (day % 11) for day in range(60)],
}


def make_large_days(number: int) -> dict[str, list[Any]]:
    """Return totals of many days, so large that no two arms share a count."""
    chance = random.Random(5)
    visitors = chance.sample(range(80_000, 120_000), number)
    return {
        "arm": ["old", "new"] * (number // 2),
        "reward": [round(0.04 * seen + chance.gauss(0, 60)) for seen in visitors],
        "visitors": visitors,
    }


def make_log(**columns: list[Any]) -> dict[str, list[Any]]:
    """Return a log of 600 visitors with other columns."""
    chance = random.Random(7)
    arms = [chance.choice(["old", "new"]) for _ in range(600)]
    return {"arm": arms, "reward": [int(chance.random() < 0.1) for _ in arms], **columns}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"arm": ["old", "new", "bold"], "reward": [800, 900, 950]}, "has one row per arm, like a table of totals"),
        (DAYS, "looks like a table of totals, as its column 'visitors' has counts such as 1,830, but"),
        (make_large_days(400), "column 'visitors' has counts such as"),
        (  # by outcome
            {"arm": ["A", "A", "B", "B"], "reward": [0, 1, 0, 1], "count": [19_200, 800, 19_100, 900]},
            "column 'count' has counts such as 19,200",
        ),
        ({"arm": ["A", "B"] * 20, "reward": [1.5] * 40, "n": ["8"] * 40}, "column 'n' has counts such as 8"),
        ({"arm": ["A", "B"] * 2, "reward": [1.5] * 4, "users": ["1,920,000"] * 4}, "has counts such as 1,920,000"),
    ],
)
def test_tables_of_totals_are_refused(tmp_path: Path, table: dict[str, list[Any]], message: str) -> None:
    file, lines = tmp_path / "totals.csv", tmp_path / "totals.jsonl"
    pd.DataFrame(table).to_csv(file, index=False)
    pd.DataFrame(table).to_json(lines, orient="records", lines=True)
    for source in (file, lines, table, pd.DataFrame(table)):
        with pytest.raises(InvalidValueError) as caught:
            dbcare.read_log(source)
        assert message in str(caught.value)
        assert "800 sales among 20,000 visitors are 800 rows with reward 1 and 19,200" in str(caught.value)
    with pytest.raises(InvalidValueError, match=r"`observations` (has one row|looks like a table)"):
        dbcare.replay_log(pd.DataFrame(table), cost=0.01, sigma=1.0)
    blocks = {**table, "question": [f"q{row // 2}" for row in range(len(table["arm"]))]}
    with pytest.raises(InvalidValueError, match="totals"):
        dbcare.read_block_log(blocks, reward_column="reward", shared_only=True)


@pytest.mark.parametrize(
    "columns",
    [
        {"trials": list(range(1, 601))},  # row numbers
        {"trials": random.Random(1).sample(range(7, 607), 600)},  # of a log that was shuffled
        {"users": random.Random(2).sample(range(10**9), 600)},  # ids
        {"impressions": [1] * 600},  # of each row
        {"sessions": [0.5] * 600},
        {"users": ["anna", "bert"] * 300},
        {"visits": [5, None] * 300},
        {"user": [5, 6] * 300, "trial": [3] * 600, "discount": [7] * 600, "account": [8] * 600, "items": [9] * 600},
    ],
)
def test_logs_of_single_observations_are_read(columns: dict[str, list[Any]]) -> None:
    log = make_log(**columns)
    rows = list(zip(log["arm"], map(float, log["reward"]), strict=True))
    assert dbcare.read_log(log) == rows
    assert dbcare.replay_log(pd.DataFrame(log), cost=0.01, sigma=0.3).logged == 600


def test_numbers_that_start_over_with_each_arm_are_row_numbers() -> None:
    log = make_log()
    seen = {"old": 0, "new": 0}
    log["n"] = [seen.update({arm: seen[arm] + 1}) or seen[arm] for arm in log["arm"]]
    assert len(dbcare.read_log(log)) == 600
    log["n"][300] += 1
    with pytest.raises(InvalidValueError, match="column 'n' has counts"):
        dbcare.read_log(log)


def test_columns_that_are_named_are_not_counts() -> None:
    """Who names the unit of a row has said what a row is; so has who names the time or the reward."""
    log = make_log(visits=[5] * 600, users=[row // 3 for row in range(600)], views=[0, 2, 4, 6] * 150)
    log["arm"] = ["old" if user % 2 else "new" for user in log["users"]]
    with pytest.raises(InvalidValueError, match="column 'visits'"):
        dbcare.read_log(log)
    assert len(dbcare.read_log(log, unit_column="users")) == 200
    del log["users"], log["visits"]
    with pytest.raises(InvalidValueError, match="column 'views'"):
        dbcare.read_log(log)
    assert len(dbcare.read_log(log, time_column="views")) == 600
    assert len(dbcare.read_log(log, reward_column="views")) == 600


def test_a_single_arm_may_have_a_single_row() -> None:
    assert dbcare.read_log({"arm": ["A"], "reward": [1]}) == [("A", 1.0)]


def test_our_own_export_is_a_log(tmp_path: Path) -> None:
    study = dbcare.create_study("exported", ["A", "B"], cost=0.01, sigma=1.0)
    study.add([("A", 0.5), ("B", 0.25), ("A", 0.75), ("B", 0.0)])
    study.export(tmp_path / "log.csv")
    assert "trial" in (tmp_path / "log.csv").read_text().split(",")
    assert len(dbcare.read_log(tmp_path / "log.csv")) == 4


def test_single_observations_are_added_as_they_are() -> None:
    """`add` takes rows as single observations, whatever they are."""
    study = dbcare.create_study("added", ["A", "B"], cost=0.01, sigma=1.0)
    study.add([("A", 800.0), ("B", 900.0)])
    assert study.status().rewards == 2


def test_names_of_counts() -> None:
    counts = ["n", "N", "count", "Counts", "visitors", " Users", "n_users", "num-trials", "Number of users"]
    counts += ["user_count", "total_impressions", "unique visitors", "sample_size", "nobs", "n_obs", "page.views"]
    assert [name for name in counts if not is_count_name(name)] == ["page.views"]
    others = ["user", "trial", "visitor_id", "discount", "account", "country", "name", "n_items", "word_count", "total"]
    assert not any(map(is_count_name, others))
