"""`dbcare import`: logged data replayed, or added to a study."""

import csv
import io
import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dbcare
from dbcare.cli import app

MONEY = ["--price", "0.5", "--value", "20000"]


def imported(folder: Path, *arguments: str, code: int = 0) -> str:
    address = f"sqlite:///{folder / 'studies.db'}"
    answer = CliRunner().invoke(app, ["import", *arguments], env={"DBCARE_STORAGE": address})
    assert answer.exit_code == code, answer.output
    assert (answer.stdout == "") == (code == 2)
    return answer.stdout or answer.stderr


@pytest.fixture
def log(tmp_path: Path) -> Path:
    chance = random.Random(3)
    lines = ["day,arm,reward", *(f"{day},{arm},{int(chance.random() < rate)}" for day in range(1_500)
                                 for arm, rate in (("A", 0.1), ("B", 0.2)))]  # fmt: skip
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_a_replay_in_words_and_for_programs(tmp_path: Path, log: Path) -> None:
    expected = dbcare.replay_log(dbcare.read_log(log), price=0.5, value=20_000, binary=True)
    assert imported(tmp_path, str(log), *MONEY, "--binary") == f"{expected}\n"
    found = json.loads(imported(tmp_path, str(log), *MONEY, "--binary", "--format", "json"))
    assert found["stopped"] is True
    assert found["used"] == expected.used < found["logged"] == 3_000
    assert found["saved"] == expected.saved
    assert found["recommendation"]["arm"] == "B"
    rows = list(csv.DictReader(io.StringIO(imported(tmp_path, str(log), *MONEY, "--binary", "--format", "csv"))))
    assert [(row["name"], int(row["used"])) for row in rows] == [(arm.name, arm.used) for arm in expected.arms]
    assert [row["logged"] for row in rows] == ["1500", "1500"]


def test_options_mean_what_they_mean_for_studies(tmp_path: Path, log: Path) -> None:
    options = ["--cost", "1e-4", "--sigma", "0.4", "--risk", "error", "--policy", "dbcare", "--minimize"]
    expected = dbcare.replay_log(
        dbcare.read_log(log), cost=1e-4, sigma=0.4, risk="misidentification", policy="dbcare", direction="minimize"
    )
    assert imported(tmp_path, str(log), *options) == f"{expected}\n"
    assert expected.recommendation.arm == "A"


def test_a_study_begins_with_a_log(tmp_path: Path, log: Path) -> None:
    """What was added counts and is charged as trials are: the study has stopped where the policy stops."""
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    study = dbcare.create_study("ads", ["A", "B"], price=0.5, value=20_000, binary=True, storage=address)
    said = imported(tmp_path, str(log), "--into", "ads")
    used = sum(arm.trials for arm in study.status().arms)
    assert 0 < used < 3_000
    assert said.startswith(
        f"Added 3,000 observations to ads, of which the decision uses {used} so far; all are charged. "
        "Now: 3,000 counted, 0 out, 0 held back; B (final, "
    )
    assert study.status().spent == pytest.approx(1_500.0)
    assert study.should_stop()
    dbcare.create_study("more", ["A", "B"], price=0.5, value=20_000, binary=True, storage=address)
    found = json.loads(imported(tmp_path, str(log), "--into", "more", "--format", "json"))
    assert (found["added"], found["study"], found["state"]) == (3_000, "more", "stopped")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.csv", *MONEY, "--binary"], "none.csv must be a file that can be read but got: No such file"),
        (["one.csv", *MONEY, "--binary"], "A log must have rewards of 2 or more arms but got those of 'A'."),
        (["two.csv", "--binary"], "`cost`, or both `price` and `value`, must be given"),
        (["two.csv", *MONEY, "--bounds", "0,0.5"], "`reward 1 of B` must lie within the bounds 0 to 0.5 but got 1."),
        (["two.csv", "--into", "ads", "--price", "1"], "`--price` must not be given with --into, as the study has"),
        (["two.csv", "--into", "ads", "--risk", "regret"], "`--risk` must not be given with --into"),
        (["two.csv", "--into", "ads", "--minimize"], "`--minimize` must not be given with --into"),
        (["two.csv", "--into", "none"], "A study must be stored before it is used but got 'none'"),
        (["two.csv", "--into", "other"], "`arm` must be one of X, Y but got 'A'."),
    ],
)
def test_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("arm,reward\nA,1\n")
    Path("two.csv").write_text("arm,reward\nA,0\nB,1\n")
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    for name, arms in (("ads", ["A", "B"]), ("other", ["X", "Y"])):
        dbcare.create_study(name, arms, price=0.5, value=20_000, binary=True, storage=address)
    said = imported(tmp_path, *arguments, code=2)
    assert says in said
    assert said.count("\n") == 1


def test_a_study_needs_a_storage(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBCARE_STORAGE", raising=False)
    answer = CliRunner().invoke(app, ["import", str(log), "--into", "ads"])
    assert answer.exit_code == 2
    assert "`--storage` must be given with --into" in answer.stderr
