"""A policy from a package of its own, found through its entry point: `evaluate`, a sweep, a live study, the shell."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dbcare
from dbcare.cli import app
from dbcare.errors import UnknownPolicyError
from tests.helpers.service_process import run_service

pytestmark = pytest.mark.service

COMMAND = Path(sys.executable).with_name("dbcare")
SEVERAL_COMMANDS = """
import sys
from dbcare.cli import app
for command in sys.argv[1:]:
    try:
        app(command.split())
    except SystemExit as end:
        print("exit code", end.code or 0, flush=True)
"""

POLICY = '''
"""Pulls all arms in turn, a fixed number of times each."""

from dataclasses import dataclass

from dbcare import Policy
from dbcare.policies import PolicyEntry, Rule
from dbcare.policies.rule import STOP


def init(state, tables, tie):
    for index in range(len(state)):
        state[index] = 0.0


def ask(state, tables):
    arms = len(state) - 1
    return int(state[arms]) % arms if state[arms] < tables[0] * arms else STOP


def tell(state, tables, arm, reward):
    state[arm] += reward
    state[len(state) - 1] += 1


def recommend(state, tables):
    best = 0
    for arm in range(1, len(state) - 1):
        if state[arm] > state[best]:
            best = arm
    return best


@dataclass(frozen=True)
class InTurn(Policy):
    arms: int
    times: int = 5
    risk = None
    rule = Rule(init, ask, tell, recommend)

    @property
    def tables(self):
        return (self.times,)

    @property
    def state_size(self):
        return self.arms + 1

    @property
    def max_pulls(self):
        return self.times * self.arms

    def why_stopped(self, state, wording):
        return f"every arm has had {wording.count(self.times)}"


ENTRY = PolicyEntry("in-turn", InTurn, label="In turn", live=True)
'''

SWEEP = """
title = "In turn"
runs = 200
cost = 1e-3
[[settings]]
bandit = "one-sparse"
arms = 3
gap = [0.5, 1.0]
[policies.DBCARE]
policy = "dbcare"
[policies."in turn, ten times"]
policy = "in-turn"
times = 10
"""

SCRIPT = """
import json, sys
import dbcare
bandit, risk = dbcare.Bandit.one_sparse(3, 0.5), dbcare.Risk.simple_regret(1e-3)
evaluation = dbcare.evaluate("in-turn", bandit, risk, runs=100, seed=1)
study = dbcare.create_study("ads", ["A", "B", "C"], cost=1e-3, sigma=1.0, policy="in-turn", storage=sys.argv[1])
asked = []
while (trial := study.ask()) is not None:
    asked.append(trial.arm)
    study.tell(trial, {"A": 0.0, "B": 1.0, "C": 0.5}[trial.arm])
choice = dbcare.load_study("ads", sys.argv[1]).recommendation()
print(json.dumps([evaluation.pulls.mean, evaluation.engine, asked, choice.arm, choice.reason]))
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages, as pip leaves it: a module, and its metadata with the entry point."""
    folder = tmp_path / "site"
    metadata = folder / "dbcare_in_turn-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "dbcare_in_turn.py").write_text(POLICY)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: dbcare-in-turn\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[dbcare.policies]\nin-turn = dbcare_in_turn:ENTRY\n")
    return folder


def run(site: Path, *command: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(site)}
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=environment)


def test_evaluate_and_a_live_study(site: Path, tmp_path: Path) -> None:
    """Compiled, as shipped policies are: no warning says otherwise."""
    ran = run(site, sys.executable, "-W", "error", "-c", SCRIPT, f"sqlite:///{tmp_path / 'ads.db'}")
    assert ran.returncode == 0, ran.stderr
    pulls, engine, asked, arm, reason = json.loads(ran.stdout)
    assert (pulls, engine) == (15.0, "direct")
    assert asked == ["A", "B", "C"] * 5
    assert arm == "B"
    assert reason == "stopped after 15 trials: every arm has had 5 trials"


def test_a_sweep_and_its_figure(site: Path, tmp_path: Path) -> None:
    file = tmp_path / "turns.toml"
    file.write_text(SWEEP)
    ran = run(site, COMMAND, "sweep", file, "--out", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    assert "in turn, ten times" in (tmp_path / "out" / "turns.csv").read_text()
    assert "in turn, ten times" in (tmp_path / "out" / "turns.svg").read_text()


def test_the_shell(site: Path, tmp_path: Path) -> None:
    storage = f"--storage sqlite:///{tmp_path / 'shell.db'}"
    ran = run(
        site, sys.executable, "-c", SEVERAL_COMMANDS,
        "simulate --policy in-turn --means 0.5,0 --cost 1e-3 --option times=3 --runs 50 --format json",
        f"create ads --arms A,B --cost 0.01 --sigma 1 --policy in-turn {storage}",
        f"ask ads {storage}",
        "plan --arms 2 --cost 0.01 --sigma 1 --gaps 0.5 --runs 50 --policies in-turn,decide-now --format csv",
    )  # fmt: skip
    evaluated, created, asked, planned, end = ran.stdout.split("exit code 0\n")
    assert json.loads(evaluated)["pulls"]["mean"] == 6.0
    assert (created, asked, end) == ("", "1\tA\n", ""), ran.stderr
    assert [line.split(",")[1] for line in planned.splitlines()[1:]] == ["in-turn", "decide-now"]


def test_without_the_package_the_name_is_unknown(tmp_path: Path) -> None:
    """Negative control: nothing is left behind anywhere."""
    ran = run(tmp_path, COMMAND, "simulate", "--policy", "in-turn", "--means", "0.5,0", "--cost", "1e-3")
    assert ran.returncode == 2
    assert ran.stderr.startswith("Error: `--policy` must be one of breakeven, ")
    assert ran.stderr.endswith("but got 'in-turn'.\n")


def test_a_package_that_cannot_be_imported_only_warns(site: Path) -> None:
    """The other policies stay usable."""
    (site / "dbcare_in_turn.py").write_text("import a_module_that_is_not_there\n")
    ran = run(site, COMMAND, "simulate", "--policy", "in-turn", "--means", "0.5,0", "--cost", "1e-3")
    assert ran.returncode == 2
    assert "Note: Policy 'in-turn' (dbcare_in_turn:ENTRY) could not be loaded: No module named" in ran.stderr
    ran = run(site, COMMAND, "simulate", "--policy", "guess", "--means", "0.5,0", "--cost", "1e-3")
    assert ran.returncode == 0, ran.stderr


def test_a_study_of_a_missing_policy_does_not_hide_the_others(site: Path, tmp_path: Path) -> None:
    """It is listed as it stood, but cannot be opened; everything else works."""
    storage = ("--storage", f"sqlite:///{tmp_path / 'shared.db'}")
    options = ("--arms", "A,B", "--cost", "0.01", "--sigma", "1")
    assert run(site, COMMAND, "create", "theirs", *options, "--policy", "in-turn", *storage).returncode == 0
    dbcare.create_study("ours", ["A", "B"], cost=0.01, sigma=1.0, storage=storage[1])
    listed = CliRunner().invoke(app, ["studies", *storage, "--format", "json"])
    assert listed.exit_code == 0, listed.stderr
    assert [study["study"] for study in json.loads(listed.stdout)] == ["theirs", "ours"]
    missing = "Study 'theirs' uses the policy 'in-turn', which is not installed here."
    assert run(tmp_path, COMMAND, "ask", "theirs", *storage).stderr == f"Error: {missing}\n"
    with run_service(storage[1]) as url, dbcare.connect(url) as client:
        assert client.list_studies() == ["theirs", "ours"]
        assert client.load_study("ours").status().state == "running"
        with pytest.raises(UnknownPolicyError, match="which is not installed here"):
            client.load_study("theirs")
