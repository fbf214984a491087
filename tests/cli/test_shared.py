"""Wrong arguments on the command line end in one line and exit code 2, never in a traceback."""

from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import dbcare
import tests.helpers.built_commands  # noqa: F401  # speeds up tests of commands
from dbcare.cli import app

settings.register_profile("dbcare", derandomize=True, deadline=None, max_examples=100, database=None)
settings.load_profile("dbcare")

WRONG = [
    "", " ", "-", "-1", "-0.5", "0", "1", "1.5", "2", "nan", "inf", "-inf", "1e-60", "1e60", "1e400", "9" * 400, "1,2",
    "1,,2", ",", "a,b", "A,A", "A", "B", "x" * 10_000, "\udc80", "a\nb", "\N{SNOWMAN}", "None", "true", "module:name",
    "math:pi", ".:x", "../x", ".", "nowhere/x.csv", "x.csv", "folder.csv", "x.txt", "sqlite://", "sqlite:///no/such.db",
    "nosuch://x", "http://", "--help", "--yes", "--format", "--format=json", "--format=csv", "--failed", "--", "1s",
    "9d", "delta=nan", "delta", "=", "pulls=1e60",
]  # fmt: skip
# Sound commands; serve, demo, reproduce and sweep would take long where the argument is not wrong.
COMMANDS = [
    ["create", "new", "--arms", "A,B", "--price", "1", "--value", "100", "--sigma", "1", "--seed", "1"],
    ["create", "new", "--arms", "A,B", "--cost", "0.1", "--bounds", "0,1", "--max-spend", "5", "--max-ahead", "2"],
    ["create", "new", "--arms", "A,B", "--cost", "0.1", "--binary", "--timeout-reward", "0", "--description", "text"],
    ["create", "new", "--arms", "A,B", "--cost", "A=1,B=2", "--baseline", "0.1", "--sigma-pulls", "inf"],
    ["create", "new", "--arms", "A,B", "--cost", "0.1", "--cap", "5"],
    ["create", "new", "--arms", "A,B", "--cost", "0.1", "--policy", "dbcare", "--sigma", "1", "--currency", "EUR"],
    ["create", "new", "--arms", "A,B", "--cost", "0.1", "--risk", "misidentification", "--direction", "minimize"],
    ["ask", "ads", "-n", "2", "--lease", "30m", "--worker", "w"],
    ["tell", "ads", "1", "0.5"],
    ["tell", "ads", "2", "--failed", "--free"],
    ["status", "ads", "--format", "json"],
    ["explain", "ads", "--format", "csv"],
    ["export", "ads", "--format", "jsonl"],
    ["export", "ads", "out.csv"],
    ["studies", "--format", "json"],
    ["describe", "ads", "a text"],
    ["pause", "ads"],
    ["resume", "ads"],
    ["retire", "ads", "A", "--reason", "sold out"],
    ["stop", "ads", "--reason", "done"],
    ["delete", "other", "--yes"],
    ["import", "log.csv", "--cost", "0.1", "--sigma", "1", "--orders", "2"],
    ["import", "log.csv", "--cost", "0.1", "--arm-column", "arm", "--reward-column", "reward", "--unit-column", "user"],
    ["import", "log.csv", "--into", "ads"],
    ["import", "log.csv", "--cost", "0.1", "--block-column", "day", "--orders", "2"],
    ["compare", "log.csv", "--question", "day", "--score", "reward", "--price", "1", "--value", "9", "--orders", "2"],
    ["compare", "A=a.jsonl", "B=b.jsonl", "--score", "acc", "--filter", "none", "--price", "1", "--value", "9"],
    ["storage", "check"],
    ["simulate", "--policy", "guess", "--means", "0.5,0", "--cost", "0.1", "--sigma", "1", "--runs", "2"],
    ["simulate", "--policy", "uniform", "--option", "pulls=2", "--means", "1,0", "--cost", "0.1", "--engine", "exact"],
    ["bounds", "--cost", "0.1", "--sigma", "1", "--arms", "2", "--smallest", "0.1", "--largest", "1", "--points", "2"],
    ["plan", "--arms", "2", "--cost", "0.1", "--sigma", "1", "--policies", "decide-now", "--gaps", "0.5"],
    ["sweep", "none.toml"],
    ["keys", "create", "me", "--role", "worker"],
    ["keys", "list"],
    ["keys", "revoke", "1"],
    ["--version"],
]  # fmt: skip


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "log.csv").write_text("arm,reward,day\nA,1,1\nB,0,1\nA,0,2\nB,1,2\n")
    return CliRunner(env={"DBCARE_STORAGE": f"sqlite:///{tmp_path / 'studies.db'}"})


@pytest.mark.filterwarnings("ignore::dbcare.errors.DbcareWarning")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_wrong_arguments_cause_no_traceback(command: list[str], runner: CliRunner) -> None:
    for name in ("ads", "other"):
        dbcare.create_study(name, ["A", "B"], cost=0.1, sigma=1.0, storage=runner.env["DBCARE_STORAGE"]).ask(2)

    @settings(max_examples=8, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.tuples(st.integers(1, max(1, len(command) - 1)), st.sampled_from(WRONG)), min_size=1, max_size=2),
        st.booleans(),
    )
    def attack(wrong: list[tuple[int, str]], more: bool) -> None:
        arguments = list(command)
        for place, text in wrong:
            arguments[place : place + (0 if more else 1)] = [text]
        result = runner.invoke(app, arguments)
        assert result.exit_code in (0, 2, 3, 4), (arguments, result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert "Traceback" not in result.output

    attack()


@pytest.mark.parametrize("reward", ["-0.5", "-.5", "-5e-1"])
@pytest.mark.parametrize("before", [[], ["--"]])
def test_a_negative_reward_is_no_option(runner: CliRunner, before: list[str], reward: str) -> None:
    study = dbcare.create_study("ads", ["A", "B"], cost=0.1, sigma=1.0, storage=runner.env["DBCARE_STORAGE"])
    study.ask()
    arguments = ["tell", "ads", "1", "--format", "json", *before, reward]
    assert runner.invoke(app, arguments).exit_code == 0
    assert study.status().arms[0].mean == -0.5


def test_a_misspelled_option_is_not_taken_for_a_reward(runner: CliRunner) -> None:
    result = runner.invoke(app, ["tell", "ads", "1", "-failed"])
    assert result.exit_code == 2
    assert "No such option" in result.output


def test_the_version_is_printed(runner: CliRunner) -> None:
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"dbcare {version('dbcare')}\n"
