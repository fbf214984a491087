"""From a plan to its study: the printed command and the Python line create the very policy that was planned."""

import json
import math
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dbcare
from dbcare import Policy
from dbcare.cli import app
from dbcare.planner import Plan
from dbcare.planner.recipe import STORAGE, STUDY_NAME
from dbcare.studies.study import Study

# Every way to state the spread, with weights that are not the default one.
SPREADS: list[dict[str, Any]] = [
    {"sigma": 0.3},
    {"sigma": 0.3, "sigma_pulls": 2.5},
    {"sigma": 0.3, "sigma_pulls": math.inf},
    {"baseline": 0.04},
    {"binary": True},
    {"bounds": (-1.5, 2.0)},
    {"bounds": (-1.5, 2.0), "sigma": 1e-5},
]
# Neither 0.07 / 30.3 nor 1 / 3 times the value is the price again.
PRICES: list[dict[str, Any]] = [{"price": 0.07, "value": 30.3}, {"price": [0.07, 1 / 3], "value": 30.3}, {"cost": 1e-3}]
ODD_NAMES = ["it's $HOME", '"A" & `b`', "-x;*"]


def create_by_command(planned: Plan, storage: str) -> Study:
    """Run the printed command, and load what it created."""
    assert planned.create_command is not None
    arguments = shlex.split(planned.create_command)
    ran = CliRunner().invoke(app, [storage if word == STORAGE else word for word in arguments[1:]])
    assert (arguments[0], ran.exit_code) == ("dbcare", 0), ran.output
    return dbcare.load_study(STUDY_NAME, storage)


def create_by_call(planned: Plan, storage: str) -> Study:
    """Run the printed line of Python."""
    assert planned.create_call is not None
    study = eval(planned.create_call.replace(STORAGE, storage), {"dbcare": dbcare})
    assert isinstance(study, Study)
    return study


@pytest.mark.parametrize("risk", ["simple_regret", "misidentification"])
@pytest.mark.parametrize("prices", PRICES)
def test_the_study_runs_what_was_planned(risk: str, prices: dict[str, Any], tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    seen: list[Policy] = []
    for spread in SPREADS:
        planned = dbcare.plan(2, **prices, **spread, risk=risk, gaps=0.2, policies="breakeven", runs=2)
        assert planned.max_spend is not None
        policy = planned.outlooks[0].policy
        for create in (create_by_command, create_by_call):
            study = create(planned, storage)
            assert study.settings.built_policy == policy
            limit = study.settings.built_policy.max_spend * (study.settings.value or 1.0)
            assert limit == planned.max_spend
            dbcare.delete_study(STUDY_NAME, storage)
        assert policy not in seen  # each statement makes a policy of its own, so the comparison can fail
        seen.append(policy)


def test_the_command_survives_a_shell(tmp_path: Path) -> None:
    """With names that a shell would expand, prices by name, and the storage as printed."""
    prices = dict(zip(ODD_NAMES, (0.1, 0.2, 3.0), strict=True))
    planned = dbcare.plan(ODD_NAMES, price=prices, value=100, bounds=(-1, 1), gaps=0.5, policies="breakeven", runs=2)
    assert planned.create_command is not None
    folder = Path(sys.executable).parent
    subprocess.run(["sh", "-c", f"PATH={folder}:$PATH; {planned.create_command}"], cwd=tmp_path, check=True)
    study = dbcare.load_study(STUDY_NAME, f"sqlite:///{tmp_path}/studies.db")
    assert study.settings.arms == tuple(ODD_NAMES)
    assert study.settings.built_policy == planned.outlooks[0].policy
    assert create_by_call(planned, f"sqlite:///{tmp_path}/call.db").settings == study.settings


def test_another_policy_is_named(tmp_path: Path) -> None:
    options: dict[str, Any] = {"cost": 0.01, "sigma": 0.5, "gaps": 0.5, "runs": 2}
    planned = dbcare.plan(3, policies=["dbcare", "fixed-size-test"], **options)
    assert (
        create_by_command(planned, f"sqlite:///{tmp_path}/studies.db").settings.built_policy
        == planned.of("dbcare")[0].policy
    )
    assert "Run it with DBCARE:\n" in str(planned)
    both = dbcare.plan(3, policies=["dbcare", "breakeven"], **options)
    assert both.create_command is not None
    assert "--policy" not in both.create_command


def test_plans_without_a_study() -> None:
    options: dict[str, Any] = {"cost": 1e-4, "sigma": 0.5, "gaps": 0.5, "runs": 2}
    idle = dbcare.plan(3, policies="decide-now", **options)
    assert (idle.create_command, idle.create_call) == (None, None)
    assert "Run it" not in str(idle)
    assert dbcare.plan(101, policies="breakeven", **options).study is None
    assert dbcare.plan(40, policies="breakeven", **options).study is not None
    commas = dbcare.plan(["1,000", "2,000"], policies="breakeven", **options)
    assert commas.create_command is None  # the shell separates arms by commas
    assert str(commas).splitlines()[-1] == f"  {commas.create_call}"


SHELL = ["plan", "--cost", "0.01", "--gaps", "0.05", "--policies", "decide-now"]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--arms", "old, new", "--baseline", "0.04"], {"arms": ["old", "new"], "baseline": 0.04}),
        (["--arms", "3", "--binary"], {"arms": 3, "binary": True}),
        (["--arms", "3", "--bounds", "-1,1"], {"arms": 3, "bounds": (-1, 1)}),
        (
            ["--arms", "3", "--bounds", "-1,1", "--sigma", "0.2", "--sigma-pulls", "inf"],
            {"arms": 3, "bounds": (-1, 1), "sigma": 0.2, "sigma_pulls": math.inf},
        ),
    ],
)
def test_the_shell_takes_every_statement_of_the_spread(arguments: list[str], options: dict[str, Any]) -> None:
    ran = CliRunner().invoke(app, [*SHELL, *arguments, "--format", "json"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout) == dbcare.plan(**options, cost=0.01, gaps=0.05, policies="decide-now").to_dict()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--arms", "2"],
            "A plan needs to know how much rewards vary: pass `--sigma`, such as a quarter of the range that most "
            "rewards lie in, or `--baseline`, `--bounds` or `--binary`; only a study can learn it.",
        ),
        (
            ["--arms", "x", "--sigma", "1"],
            "`--arms` must be a number, or two or more names separated by commas, but got 'x'.",
        ),
        (["--arms", "A,A", "--sigma", "1"], "`--arms` must be 2 or more different names but got ['A', 'A']."),
        (["--arms", "2", "--sigma", "1", "--sigma-pulls", "0"], "`--sigma-pulls` must be positive but got 0.0."),
        (
            ["--arms", "2", "--binary", "--gaps", "2"],
            "`--gaps` (entry 1) must be at most 1, as rewards lie between 0 and 1, but got 2.",
        ),
        (
            ["--arms", "2", "--baseline", "0.5", "--gaps", "0.1,0.7"],
            "`--gaps` (entry 2) must be at most 0.5, as `--baseline` is 0.5 and no rate exceeds 1, but got 0.7.",
        ),
    ],
)
def test_the_shell_names_its_own_options(arguments: list[str], message: str) -> None:
    ran = CliRunner().invoke(app, [*SHELL, *arguments])
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == f"Error: {message}\n"
