"""Live studies from the command line, each command in a process of its own, as scripts use them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dbcare

COMMAND = Path(sys.executable).with_name("dbcare")


def command(folder: Path, *arguments: str, code: int = 0) -> str:
    environment = os.environ | {"DBCARE_STORAGE": f"sqlite:///{folder / 'studies.db'}"}
    answer = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False, env=environment)
    assert answer.returncode == code, answer.stderr + answer.stdout
    return answer.stdout if code != 2 else answer.stderr


def test_a_study_from_begin_to_end(tmp_path: Path) -> None:
    """Created, asked, told, looked at, exported; the library sees the same study."""
    said = command(tmp_path, "create", "ads", "--arms", "A, B", "--price", "1", "--value", "1000", "--binary")
    assert said == "Created ads: A, B\n"
    assert command(tmp_path, "studies") == "ads\n"
    assert command(tmp_path, "ask", "ads", "-n", "5", "--worker", "shell") == "1\tA\n2\tB\n"
    assert command(tmp_path, "ask", "ads", code=3) == ""
    command(tmp_path, "tell", "ads", "1", "0")
    command(tmp_path, "tell", "ads", "2", "1")
    third = json.loads(command(tmp_path, "ask", "ads", "--format", "json"))
    assert [trial["id"] for trial in third] == [3]
    command(tmp_path, "tell", "ads", "3", "--failed", "--free")
    status = json.loads(command(tmp_path, "status", "ads", "--format", "json"))
    study = dbcare.load_study("ads", f"sqlite:///{tmp_path / 'studies.db'}")
    assert status["counted"] == study.status().counted == 3
    assert status["spent"] == study.status().spent == 2.0
    assert status["recommendation"]["arm"] == study.recommendation().arm == "B"
    assert "ads: running; 3 counted, 0 out, 0 held back" in command(tmp_path, "status", "ads")
    command(tmp_path, "export", "ads", str(tmp_path / "ads.csv"))
    assert (tmp_path / "ads.csv").read_text().count("\n") == 4
    command(tmp_path, "stop", "ads", "--reason", "the season is over")
    assert command(tmp_path, "explain", "ads") == "the season is over\n"
    assert command(tmp_path, "ask", "ads", code=4) == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("status", "none"), "A study must be stored before it is used but got 'none'"),
        (("create", "a/b", "--arms", "A,B", "--cost", "0.1", "--binary"), "`name` must be a text of 1 to 200"),
        (("create", "a", "--arms", "A,A", "--cost", "0.1", "--binary"), "`arms` must be 2 or more different names"),
        (("create", "a", "--arms", "A,B", "--price", "-1", "--value", "2", "--binary"), "`price` must be positive"),
        (("studies", "--storage", "nowhere"), "`storage` must be an address such as sqlite:///ads.db"),
        (("studies", "--storage", "sqlite:////no/such/folder/s.db"), "must be a file that can be opened and written"),
    ],
)
def test_refused_in_one_line(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    said = command(tmp_path, *arguments, code=2)
    assert says in said
    assert said.count("\n") == 1
