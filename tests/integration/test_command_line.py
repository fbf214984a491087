"""The installed command, in processes of its own."""

import csv
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
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
    written = {path.name: path for path in map(Path, answer.stdout.splitlines())}
    assert set(written) == {f"{name}.{kind}" for name in ("bounds", "two_arm") for kind in ("svg", "png", "csv")}
    for name, path in written.items():
        if name.endswith("svg"):
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
        elif name.endswith("png"):
            assert path.read_bytes().startswith(b"\x89PNG")

    bounds = curves(written["bounds.csv"])
    # The two-arm lower bound for misidentification is 1/4 at gaps below sqrt(sigma^2 c) = 0.01.
    assert bounds["misidentification"]["any policy, lower bound"][0] == pytest.approx(0.25)

    found = curves(written["two_arm.csv"])
    assert set(found) == {
        f"{a}, {b}" for a in ("Gaussian", "Bernoulli") for b in ("misidentification", "simple regret")
    }
    for panel, lines in found.items():
        assert {len(risk) for risk in lines.values()} == {40}
        for label, risk in lines.items():
            assert np.all(risk >= lines["lower bound"] * (1 - 1e-12)), (panel, label)
        # Fixed confidence is worst at the smallest gap, and there far worse than DBCARE.
        for delta in ("0.1", "0.01"):
            assert np.argmax(lines[f"fixed confidence {delta}"]) == 0
            assert lines[f"fixed confidence {delta}"][0] > 5 * lines["DBCARE"][0]
    # T = 500 makes 500 pulls; at the largest gap it does not err.
    assert found["Gaussian, simple regret"]["Sequential Halving, T = 500"][-1] == pytest.approx(0.05)


def curves(path: Path) -> dict[str, dict[str, npt.NDArray[np.float64]]]:
    """Risk by panel and line, in the order of the gaps."""
    risks: dict[str, dict[str, list[float]]] = {}
    for row in csv.DictReader(path.read_text().splitlines()):
        risks.setdefault(row["panel"], {}).setdefault(row["line"], []).append(float(row["risk"]))
    return {panel: {line: np.array(risk) for line, risk in lines.items()} for panel, lines in risks.items()}
