"""The installed command, in processes of its own."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
import pytest

from dbcare import DBCARE, Bandit, Racing, Risk, evaluate

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


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, "simulate", *arguments], capture_output=True, text=True, check=False)


def test_simulate_prints_what_evaluate_says() -> None:
    arguments = ["--policy", "dbcare", "--means", "0.5,0", "--cost", "1e-3", "--risk", "error"]
    expected = evaluate(DBCARE(Risk.misidentification(1e-3), 2), Bandit.gaussian([0.5, 0.0]))
    found = json.loads(simulate(*arguments, "--format", "json").stdout)
    assert found["risk"] == expected.risk
    assert found["engine"] == "exact"
    assert f"risk (misidentification)  {expected.risk:.6g}" in simulate(*arguments).stdout


def test_simulate_takes_options_of_the_policy() -> None:
    answer = simulate(
        "--policy", "racing", "--option", "delta=0.1", "--means", "0.6,0.3,0.3", "--family", "bernoulli",
        "--cost", "1e-3", "--runs", "1e3", "--seed", "5", "--format", "json",
    )  # fmt: skip
    policy = Racing(3, 0.1, sigma=0.5, max_pulls=10_000)
    expected = evaluate(policy, Bandit.bernoulli([0.6, 0.3, 0.3]), Risk.simple_regret(1e-3), runs=1_000, seed=5)
    assert json.loads(answer.stdout)["risk"] == expected.risk


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "racin", "--means", "1,0"], "dbcare, racing, two-arm-confidence"),
        (["--policy", "racing", "--means", "1,0"], "delta"),
        (["--policy", "racing", "--means", "1,0", "--option", "delt=1"], "delta, sigma, max_pulls"),
        (["--policy", "dbcare", "--means", "1,x"], "'x'"),
        (["--policy", "dbcare", "--means", "1"], "at least 2"),
        (["--policy", "dbcare", "--means", "1,0", "--runs", "1.5"], "whole number"),
    ],
)
def test_simulate_refuses_in_one_line(arguments: list[str], words: str) -> None:
    answer = simulate(*arguments, "--cost", "1e-3")
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert words in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


def curves(path: Path) -> dict[str, dict[str, npt.NDArray[np.float64]]]:
    """Risk by panel and line, in the order of the gaps."""
    risks: dict[str, dict[str, list[float]]] = {}
    for row in csv.DictReader(path.read_text().splitlines()):
        risks.setdefault(row["panel"], {}).setdefault(row["line"], []).append(float(row["risk"]))
    return {panel: {line: np.array(risk) for line, risk in lines.items()} for panel, lines in risks.items()}
