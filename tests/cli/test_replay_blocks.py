"""`dbcare compare`: replays of logs by question, and `dbcare import --block-column`."""

import csv
import io
import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dbcare
from dbcare.cli import app

MONEY = ["--value", "300"]
COLUMNS = ["--arm", "model", "--question", "id", "--score", "score"]


def run(*arguments: str | Path, code: int = 0) -> str:
    """Run the program, check its exit code, and return its output."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


@pytest.fixture
def log(tmp_path: Path) -> Path:
    chance = random.Random(2)
    lines = []
    for number in range(150):
        difficulty = chance.gauss(0.0, 0.3)
        for model, level in (("A", 0.5), ("B", 0.6)):
            score = level - difficulty + chance.gauss(0.0, 0.1)
            lines.append(json.dumps({"model": model, "id": f"q{number}", "score": score, "cost": 0.02}))
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(lines))
    return file


def test_a_table_of_totals_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "days.csv"
    rows = [f"{model},day {day},{1_700 + 13 * day},{70 + day}" for day in range(30) for model in "AB"]
    file.write_text("\n".join(["model,id,users,score", *rows]))
    message = run("compare", file, *COLUMNS, "--price", "0.01", *MONEY, code=2)
    assert "looks like a table of totals, as its column 'users' has counts such as 2,077, but each row" in message


def test_a_replay_in_sentences_and_for_programs(log: Path) -> None:
    blocks = dbcare.read_block_log(
        log, arm_column="model", block_column="id", reward_column="score", price_column="cost"
    )
    expected = dbcare.replay_blocks(blocks, value=300, orders=200)
    command: list[str | Path] = ["compare", log, *COLUMNS, "--price", "cost", *MONEY]
    assert run(*command) == f"{expected}\n"
    assert f"{expected}".startswith("Would have chosen B in ")
    record = json.loads(run(*command, "--format", "json", "--orders", "7"))
    assert record["orders"] == json.loads(json.dumps([vars(order) for order in expected.orders[:7]]))
    rows = list(csv.DictReader(io.StringIO(run(*command, "--format", "csv"))))
    assert [(row["name"], int(row["logged"]), int(row["used"])) for row in rows] == [
        (arm.name, 150, arm.used) for arm in expected.arms
    ]


def test_a_price_may_be_stated_instead(log: Path) -> None:
    record = json.loads(run("compare", log, *COLUMNS, "--price", "A=0.01,B=0.03", *MONEY, "--format", "json"))
    assert record["logged_cost"] == pytest.approx(150 * 0.04)


def test_import_by_block_does_the_same(log: Path) -> None:
    columns = ["--arm-column", "model", "--block-column", "id", "--reward-column", "score"]
    replayed = run("import", log, *columns, "--price", "0.02", *MONEY, "--orders", "30")
    assert replayed == run("compare", log, *COLUMNS, "--price", "0.02", *MONEY, "--orders", "30")
    refused = run("import", log, *columns, "--price", "0.02", *MONEY, "--time-column", "t", code=2)
    assert refused == "Error: `--time-column` cannot be combined with --block-column but got t.\n"


def test_questions_that_an_arm_lacks(log: Path) -> None:
    lines = log.read_text().splitlines()
    log.write_text("\n".join(lines[:-1]))
    refused = run("compare", log, *COLUMNS, "--price", "cost", *MONEY, code=2)
    assert refused == (
        "Error: Arm 'B' has no reward in block 'q149'; pass `--shared-only` to leave out blocks that not all arms "
        "have.\n"
    )
    result = CliRunner().invoke(app, ["compare", str(log), *COLUMNS, "--price", "cost", *MONEY, "--shared-only"])
    assert result.exit_code == 0
    assert result.stderr == "Left out 1 question that not all arms have answered.\n"


def test_errors_name_the_options(log: Path) -> None:
    refused = run("compare", log, "--price", "cost", *MONEY, code=2)
    assert refused.endswith(
        "has no column 'arm'; pass `--arm` to name another one of its columns: model, id, score, cost.\n"
    )
    refused = run("compare", log, *COLUMNS, "--price", "nothing", *MONEY, code=2)
    assert "has no column 'nothing'; pass `--price` to name another one" in refused
    refused = run("compare", log, *COLUMNS, *MONEY, code=2)
    assert refused == "Error: Pass `--cost`, or both `--price` and `--value`, but got no --price, --value 300.0.\n"


def test_sample_logs_of_the_harness(tmp_path: Path) -> None:
    chance = random.Random(4)
    files = []
    for model, rate in (("small", 0.4), ("large", 0.7)):
        file = tmp_path / model / "samples_arc_2026.jsonl"
        file.parent.mkdir()
        file.write_text(
            "\n".join(
                json.dumps(
                    {"doc_id": place, "filter": "none", "metrics": ["acc"], "doc_hash": place}
                    | {"acc": float(chance.random() < rate)}
                )
                for place in range(200)
            )
        )
        files.append(file)
    named = run("compare", f"small={files[0]}", f"large={files[1]}", "--score", "acc", "--price", "0.01", *MONEY)
    assert named.startswith("Would have chosen large in ")
    assert run("compare", *files, "--score", "acc", "--price", "0.01", *MONEY) == named
    refused = run("compare", files[0], files[0], "--score", "acc", "--price", "0.01", *MONEY, code=2)
    assert "are both of arm small; name them" in refused
    refused = run("compare", *files, "--score", "acc", "--price", "0.01", *MONEY, "--arm", "model", code=2)
    assert refused == "Error: `--arm` is for a single file with all scores but got model.\n"
    refused = run("compare", *files, "--score", "acc", "--price", "0.01", *MONEY, "--question", "id", code=2)
    assert refused == "Error: `--question` is for a single file with all scores but got id.\n"


def test_options_that_a_single_file_has_no_use_for(log: Path) -> None:
    refused = run("compare", log, *COLUMNS, "--price", "cost", *MONEY, "--filter", "strict-match", code=2)
    assert refused == "Error: `--filter` is for several sample logs of lm-evaluation-harness but got strict-match.\n"


def test_prices_in_a_column_need_a_value(log: Path) -> None:
    refused = run("compare", log, *COLUMNS, "--price", "cost", code=2)
    assert refused == "Error: Pass `--cost`, or both `--price` and `--value`, but got the column cost, no --value.\n"
    refused = run("compare", log, *COLUMNS, "--price", "cost", "--cost", "0.1", code=2)
    assert refused.startswith("Error: Pass `--cost`, or `--price` and `--value`, not both")


def test_binary_scores_with_repeats(tmp_path: Path) -> None:
    """Rows are 0 or 1; means over three answers to a question lie between."""
    chance = random.Random(6)
    rows = [
        {"arm": arm, "question": place, "score": int(chance.random() < rate)}
        for place in range(100)
        for arm, rate in (("A", 0.4), ("B", 0.7))
        for _ in range(3)
    ]
    file = tmp_path / "binary.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    command: list[str | Path] = ["compare", file, "--price", "0.01", *MONEY, "--binary"]
    expected = dbcare.replay_blocks(dbcare.read_block_log(file), price=0.01, value=300, bounds=(0, 1), orders=200)
    assert run(*command) == f"{expected}\n"
    result = CliRunner().invoke(app, [str(part) for part in command])
    assert result.stderr == "Several scores of an arm on a question are averaged, and count as one trial.\n"
    rows[6]["score"] = 0.5
    file.write_text("\n".join(map(json.dumps, rows)))
    assert run(*command, code=2).endswith("line 7: column 'score' must be 0 or 1 but got 0.5.\n")
