"""The installed command, in processes of its own."""

import csv
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

COMMAND = Path(sys.executable).with_name("dbcare")


def test_help_imports_nothing_heavy() -> None:
    script = "import sys; sys.argv = ['dbcare', '--help']; from dbcare.cli import main; main()"
    answer = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in answer.stderr.splitlines() if "|" in line}
    assert "typer" in loaded
    assert loaded.isdisjoint({"numpy", "numba", "scipy", "matplotlib"})
    assert "reproduce" in answer.stdout


def test_reproduce_writes_what_it_says(tmp_path: Path) -> None:
    answer = subprocess.run(
        [COMMAND, "reproduce", "--out", tmp_path / "new"], capture_output=True, text=True, check=True
    )
    written = [Path(line) for line in answer.stdout.splitlines()]
    assert [path.name for path in written] == ["bounds.svg", "bounds.png", "bounds.csv"]
    assert ElementTree.parse(written[0]).getroot().tag.endswith("svg")
    assert written[1].read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(written[2].read_text().splitlines()))
    assert {row["loss"] for row in rows} == {"misidentification", "simple_regret"}
    for row in rows:
        # No policy beats the lower bound, so neither does the oracle's upper bound nor the guess.
        assert float(row["lower"]) <= min(float(row["oracle"]), float(row["guess"]))
    # Two-arm lower bound for misidentification at a gap below sqrt(sigma^2 c) = 0.01 is 1/4.
    assert float(rows[0]["lower"]) == pytest.approx(0.25)
