"""`dbcare import`: replay logged data, or add them to a study."""

import csv
import io
import json
import os
import random
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dbcare
from dbcare.base.numbers import Money
from dbcare.cli import app
from tests.helpers.terminal import run_at_terminal, strip_codes

COMMAND = Path(sys.executable).with_name("dbcare")
ERASE_LINE = "\x1b[2K"
MONEY = ["--price", "0.5", "--value", "20000"]


def run_import(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run the command, check its exit code, and return its output."""
    address = f"sqlite:///{folder / 'studies.db'}"
    result = CliRunner().invoke(app, ["import", *arguments], env={"DBCARE_STORAGE": address})
    assert result.exit_code == code, result.output
    assert (result.stdout == "") == (code == 2)
    return result.stdout or result.stderr


@pytest.fixture
def log(tmp_path: Path) -> Path:
    chance = random.Random(3)
    lines = ["day,arm,reward", *(f"{day},{arm},{int(chance.random() < rate)}" for day in range(1_500)
                                 for arm, rate in (("A", 0.1), ("B", 0.2)))]  # fmt: skip
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_a_replay_in_sentences_and_for_programs(tmp_path: Path, log: Path) -> None:
    expected = dbcare.replay_log(dbcare.read_log(log), price=0.5, value=20_000, binary=True)
    assert run_import(tmp_path, str(log), *MONEY, "--binary") == f"{expected}\n"
    record = json.loads(run_import(tmp_path, str(log), *MONEY, "--binary", "--format", "json"))
    assert record["stopped"] is True
    assert record["used"] == expected.used < record["logged"] == 3_000
    assert record["saved"] == expected.saved
    assert record["recommendation"]["arm"] == "B"
    rows = list(csv.DictReader(io.StringIO(run_import(tmp_path, str(log), *MONEY, "--binary", "--format", "csv"))))
    assert [(row["name"], int(row["used"])) for row in rows] == [(arm.name, arm.used) for arm in expected.arms]
    assert [row["logged"] for row in rows] == ["1500", "1500"]


def test_json_has_every_order(tmp_path: Path, log: Path) -> None:
    record = json.loads(run_import(tmp_path, str(log), *MONEY, "--binary", "--orders", "3", "--format", "json"))
    expected = dbcare.replay_log(dbcare.read_log(log), price=0.5, value=20_000, binary=True, orders=3)
    assert record["over_orders"]["saved"] == expected.over_orders.saved
    assert [order["used"] for order in record["orders"]] == [list(order.used) for order in expected.orders]
    assert len(record["orders"]) == 3
    assert record["notes"] == []


def test_output_at_a_terminal(log: Path) -> None:
    """Progress that is erased, the main result, the arms, what is behind it, and notes, within 80 columns."""
    code, output = run_at_terminal([COMMAND, "import", log, *MONEY, "--baseline", "0.01"], dict(os.environ))
    assert code == 0
    progress, erased, shown = output.rpartition(ERASE_LINE)
    assert erased
    assert "20/20" in strip_codes(progress)
    lines = strip_codes(shown).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("Would have chosen B in ")
    header = next(place for place, line in enumerate(lines) if line.split()[:3] == ["arm", "logged", "used"])
    assert lines[header + 2].split()[:2] == ["A", "1,500"]
    notes = next(place for place, line in enumerate(lines) if line.startswith("Note: rewards are 1 in "))
    saved = next(
        place for place, line in enumerate(lines) if line.startswith("Saved on average: 1,500 USD for the log")
    )
    assert 0 < header < saved < notes


def test_columns_are_named(tmp_path: Path) -> None:
    """Rewards are summed by user, in the order of time; the same goes for data that are added to a study."""
    file = tmp_path / "visits.csv"
    file.write_text("user,variant,revenue,at\n2,B,1,2026-01-02\n1,A,3,2026-01-01\n2,B,4,2026-01-03\n3,B,2,2026-01-04\n")
    columns = ["--arm-column", "variant", "--reward-column", "revenue", "--unit-column", "user", "--time-column", "at"]
    record = json.loads(run_import(tmp_path, str(file), *columns, "--cost", "0.1", "--format", "json"))
    assert [(arm["name"], arm["logged"], arm["mean"]) for arm in record["arms"]] == [("A", 1, 3.0), ("B", 2, 3.5)]
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    study = dbcare.create_study("ads", ["A", "B"], price=0.5, value=20_000, sigma=1.0, storage=address)
    run_import(tmp_path, str(file), *columns, "--into", "ads")
    assert [(row.arm, row.reward) for row in study.trials()] == [("A", 3.0), ("B", 5.0), ("B", 2.0)]


def test_options_mean_the_same_as_for_studies(tmp_path: Path, log: Path) -> None:
    options = ["--cost", "1e-4", "--sigma", "0.4", "--risk", "misidentification"]
    options += ["--policy", "dbcare", "--direction", "minimize"]
    expected = dbcare.replay_log(
        dbcare.read_log(log), cost=1e-4, sigma=0.4, risk="misidentification", policy="dbcare", direction="minimize"
    )
    assert run_import(tmp_path, str(log), *options) == f"{expected}\n"
    assert expected.recommendation.arm == "A"


def test_a_study_starts_with_a_log(tmp_path: Path, log: Path) -> None:
    """Observations count and are charged as trials are, and the study stops where the policy stops."""
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    study = dbcare.create_study("ads", ["A", "B"], price=0.5, value=20_000, binary=True, storage=address)
    output = run_import(tmp_path, str(log), "--into", "ads")
    used = sum(arm.trials for arm in study.status().arms)
    assert 0 < used < 3_000
    assert output.startswith(
        f"Added 3,000 observations to ads, of which the decision uses {used} so far; all are charged. "
        f"Now: {used} counted, {3_000 - used:,} answered after the stop ({Money(1_500.0 - used / 2, 'USD')}), "
        "0 pending, 0 held; B (final, "
    )
    assert study.status().spent == pytest.approx(1_500.0)
    assert study.should_stop()
    dbcare.create_study("more", ["A", "B"], price=0.5, value=20_000, binary=True, storage=address)
    record = json.loads(run_import(tmp_path, str(log), "--into", "more", "--format", "json"))
    assert (record["added"], record["study"], record["state"]) == (3_000, "more", "stopped")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv", *MONEY, "--binary"], "none.csv cannot be read: No such file"),
        (["one.csv", *MONEY, "--binary"], "A log must have rewards of 2 or more arms but got those of 'A'."),
        (["two.csv", "--binary"], "Pass `--cost`, or both `--price` and `--value`, but got no --price, no --value."),
        (["two.csv", *MONEY, "--bounds", "0,0.5"], "`reward 1 of B` must lie within the bounds 0 to 0.5 but got 1."),
        (
            ["two.csv", *MONEY, "--arm-column", "variant"],
            "two.csv, line 1, has no column 'variant'; pass `--arm-column` "
            "to name another one of its columns: arm, reward.",
        ),
        (["two.csv", *MONEY, "--orders", "0"], "`--orders` must be at least 1 but got 0."),
        (["two.csv", "--into", "ads", "--orders", "2"], "`--orders` cannot be combined with --into, as the study has"),
        (["two.csv", "--into", "ads", "--price", "1"], "`--price` cannot be combined with --into, as the study has"),
        (["two.csv", "--into", "ads", "--sigma-pulls", "3"], "`--sigma-pulls` cannot be combined with --into"),
        (["two.csv", "--into", "ads", "--risk", "simple_regret"], "`--risk` cannot be combined with --into"),
        (["two.csv", "--into", "ads", "--direction", "minimize"], "`--direction` cannot be combined with --into"),
        (["totals.csv", *MONEY], "totals.csv has one row per arm, like a table of totals, but"),
        (["days.csv", *MONEY, "--binary"], "days.csv looks like a table of totals, as its column 'visitors'"),
        (["days.csv", "--into", "ads"], "Expand counts: 800 sales among 20,000 visitors are 800 rows with reward 1"),
        (["days.csv", *MONEY, "--block-column", "visitors"], "Arm 'A' has no reward in block '1007'"),
        (["two.csv", "--into", "none"], "Study 'none' not found."),
        (["two.csv", "--into", "other"], "`arm` must be one of X, Y but got 'A'."),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("arm,reward\nA,1\n")
    Path("two.csv").write_text("arm,reward\nA,0\nB,1\nB,0\n")
    Path("totals.csv").write_text("arm,reward,visitors\nA,800,20000\nB,900,20000\n")
    Path("days.csv").write_text("arm,reward,visitors\n" + "A,41,998\nB,45,1007\n" * 2)
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    for name, arms in (("ads", ["A", "B"]), ("other", ["X", "Y"])):
        dbcare.create_study(name, arms, price=0.5, value=20_000, binary=True, storage=address)
    output = run_import(tmp_path, *arguments, code=2)
    assert message in output
    assert output.count("\n") == 1


def test_a_study_needs_a_storage(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBCARE_STORAGE", raising=False)
    result = CliRunner().invoke(app, ["import", str(log), "--into", "ads"])
    assert result.exit_code == 2
    assert "`--into` requires --storage" in result.stderr
