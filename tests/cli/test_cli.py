"""The installed command, mostly in separate processes."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from dbcare import DBCARE, Bandit, Risk, create_study, evaluate, plan
from dbcare.cli import app
from dbcare.policies import Racing

COMMAND = Path(sys.executable).with_name("dbcare")


def test_help_imports_nothing_heavy() -> None:
    script = "import sys; sys.argv = ['dbcare', '--help']; from dbcare.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in result.stderr.splitlines() if "|" in line}
    assert "typer" in loaded
    assert loaded.isdisjoint({"numpy", "numba", "scipy", "matplotlib"})
    assert "reproduce" in result.stdout


def test_bounds_as_a_table_and_as_a_figure(tmp_path: Path) -> None:
    table = run_here("bounds", "--smallest", "0.005", "--largest", "0.05", "--points", "2")
    # The two-arm lower bound is 1/4 for misidentification at gaps below sqrt(sigma^2 c) = 0.01, and a quarter of the
    # gap for simple regret below (sigma^2 c)^(1/3) = 0.046; a guess is wrong half the time.
    rows = [line.replace("│", " ").split() for line in table.splitlines() if line.startswith("│")]
    assert rows[0][0] == "0.005"
    assert rows[0][-2:] == ["0.5", "0.25"]
    assert rows[2][-2:] == ["0.0025", "0.00125"]
    figure = subprocess.run(
        [COMMAND, "bounds", "--arms", "8", "--figure", tmp_path / "new" / "eight.svg"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    written = [Path(line) for line in figure.stdout.splitlines()]
    assert [path.name for path in written] == ["eight.svg", "eight.png"]
    assert ElementTree.parse(written[0]).getroot().tag.endswith("svg")
    assert written[1].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("command", ["export ads", "studies", "ask ads --format csv", "--version"])
def test_a_full_disk_under_the_output_is_one_line(command: str, tmp_path: Path) -> None:
    """Of the shell's redirection, which nobody named to us."""
    address = f"sqlite:///{tmp_path / 's.db'}"
    create_study("ads", ["A", "B"], cost=0.1, sigma=1.0, storage=address)
    with open("/dev/full", "w") as full:  # a device
        result = subprocess.run(
            [COMMAND, *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"DBCARE_STORAGE": address},
        )
    assert result.returncode == 2
    assert result.stderr == "Error: cannot write the output: No space left on device.\n"


def test_a_pipe_that_is_closed_early_is_no_error(tmp_path: Path) -> None:
    """As by `dbcare status ads | head -1`; a message would be about a file that nobody named."""
    storage = f"sqlite:///{tmp_path}/ads.db"
    create_study("ads", ["A", "B"], price=1.0, value=100.0, sigma=1.0, storage=storage).add([("A", 0.5), ("B", 0.4)])
    command = [str(COMMAND), "status", "ads", "--storage", storage]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


def test_an_invalid_sweep_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("runz = 1\n")
    result = subprocess.run([COMMAND, "sweep", file], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 2
    assert "Keys of an experiment must be among title" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]  # nothing was written


def run_here(*arguments: str) -> str:
    """Run a command in this process and return what it prints."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_simulate_prints_the_results_of_evaluate() -> None:
    arguments = ["--policy", "dbcare", "--means", "0.5,0", "--cost", "1e-3", "--risk", "misidentification"]
    expected = evaluate(DBCARE(Risk.misidentification(1e-3), 2), Bandit.gaussian([0.5, 0.0]))
    printed = json.loads(run_here("simulate", *arguments, "--format", "json"))
    assert printed["risk"] == expected.risk
    assert printed["engine"] == "exact"
    process = subprocess.run([COMMAND, "simulate", *arguments], capture_output=True, text=True, check=True)
    assert f"risk (misidentification)  {expected.risk:.6g}" in process.stdout


def test_simulate_accepts_options_of_the_policy() -> None:
    printed = run_here(
        "simulate", "--policy", "racing", "--option", "delta=0.1", "--means", "0.6,0.3,0.3", "--family", "bernoulli",
        "--cost", "1e-3", "--runs", "1e3", "--seed", "5", "--format", "json",
    )  # fmt: skip
    policy = Racing(3, 0.1, sigma=0.5, max_pulls=10_000)
    expected = evaluate(policy, Bandit.bernoulli([0.6, 0.3, 0.3]), Risk.simple_regret(1e-3), runs=1_000, seed=5)
    assert json.loads(printed)["risk"] == expected.risk


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--policy", "racin", "--means", "1,0"], "breakeven, breakeven-racing, breakeven-rounds"),
        (["--policy", "racing", "--means", "1,0"], "delta"),
        (["--policy", "racing", "--means", "1,0", "--option", "delt=1"], "delta, sigma, max_pulls"),
        (["--policy", "dbcare", "--means", "1,x"], "'x'"),
        (["--policy", "dbcare", "--means", "1"], "at least 2"),
        (["--policy", "dbcare", "--means", "1,0", "--runs", "1.5"], "whole number"),
    ],
)
def test_simulate_refuses_in_one_line(arguments: list[str], part: str) -> None:
    assert part in read_refusal("simulate", *arguments, "--cost", "1e-3")


def read_refusal(*arguments: str) -> str:
    """Run a command in this process and return its error message."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


PLAN = ("plan", "--arms", "3", "--sigma", "0.5", "--runs", "200", "--seed", "4")


def test_plan_prints_what_the_library_returns(tmp_path: Path) -> None:
    money = ["--price", "0.4", "--value", "20000", "--gaps", "0.1,0.5"]
    expected = plan(3, price=0.4, value=20_000, sigma=0.5, gaps=[0.1, 0.5], runs=200, seed=4)
    assert json.loads(run_here(*PLAN, *money, "--format", "json")) == expected.to_dict()
    drawn = subprocess.run(
        [COMMAND, *PLAN, *money, "--plot", tmp_path / "plan.png"], capture_output=True, text=True, check=True
    )
    assert drawn.stderr == f"Figure written to {tmp_path / 'plan.png'}\n"
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert [line.rstrip() for line in drawn.stdout.splitlines()] == str(expected).splitlines()
    rows = list(csv.DictReader(io.StringIO(run_here(*PLAN, *money, "--format", "csv"))))
    assert [float(row["total_loss"]) for row in rows] == [outlook.total_loss for outlook in expected.outlooks]


def test_plan_accepts_one_cost_per_arm() -> None:
    costs = ["--cost", "1e-3,1e-3,2e-3"]
    printed = run_here(*PLAN, *costs, "--risk", "misidentification", "--gaps", "0.5", "--format", "json")
    expected = plan(
        3, cost=[1e-3, 1e-3, 2e-3], risk="misidentification", sigma=0.5, gaps=0.5, runs=200, seed=4
    )  # fmt: skip
    assert json.loads(printed) == expected.to_dict()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--price", "-1", "--value", "9"], "`--price` must be positive but got -1.0."),
        (["--price", "x", "--value", "9"], "`--price` must be a number but got 'x'."),
        (
            ["--cost", "1e-3", "--policies", "breakeven,ucb"],
            "breakeven, breakeven-racing, breakeven-rounds, dbcare, lucb, kl-lucb, lil-ucb, ugape, track-and-stop, "
            "eb-tci, chick-frazier, kg-star, fixed-size-test, best-fixed-size, decide-now",
        ),
        (["--cost", "1e-3", "--gaps", "0.5", "--plot", "plan.doc"], ".png, .svg, .pdf"),
    ],
)
def test_plan_refuses_in_one_line(arguments: list[str], part: str) -> None:
    assert part in read_refusal(*PLAN, *arguments)


def test_simulate_accepts_one_cost_per_arm_and_words_as_options() -> None:
    printed = json.loads(run_here(
        "simulate", "--policy", "breakeven", "--means", "0.5,0", "--cost", "1e-3,2e-3", "--runs", "200",
        "--format", "json", "--option", "sigma=none", "--option", "bound=1.0",
    ))  # fmt: skip
    assert printed["cost"] == [1e-3, 2e-3]
    assert printed["engine"] == "direct"
    assert "sigma=None" in printed["policy"]
    assert "bound=1.0" in printed["policy"]
