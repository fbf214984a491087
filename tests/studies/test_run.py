"""`dbcare run` and `Study.run` with real processes and real signals: every trial is told, or given back."""

import csv
import io
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare.cli.trial_command import fill_in, read_reward
from dbcare.studies.run import UnmeasuredError
from tests.helpers.api_client import ApiServer
from tests.helpers.dbcare_command import COMMAND, run_dbcare
from tests.helpers.prepared_process import PreparedProcess
from tests.helpers.terminal import run_at_terminal, strip_codes

pytestmark = pytest.mark.service

MEASURE = """#!/bin/sh
case "$1" in
  broken) echo "no such page" >&2; exit 3 ;;
  silent) ;;
  wordy) echo "very good" ;;
  killed) kill -9 $$ ;;
  slow) echo $$ >> "$2"; trap '' TERM; while :; do sleep 1; done ;;
  *) echo "loading"; echo "$1"; echo ;;
esac
"""


@pytest.fixture
def measure(tmp_path: Path) -> Path:
    path = tmp_path / "measure"
    path.write_text(MEASURE)
    path.chmod(0o755)
    return path


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'studies.db'}"


def create(storage: str, *arms: str, **options: Any) -> dbcare.Study:
    return dbcare.create_study("ads", list(arms), price=0.4, value=2_000, sigma=0.5, storage=storage, **options)


def test_a_command_measures_every_trial(storage: str, measure: Path) -> None:
    """The last line that is not blank is the reward, and the result is printed as `status` prints it."""
    study = create(storage, "0.1", "0.9", "-0.5")
    ran = run_dbcare("run", "ads", "--storage", storage, "--workers", "2", "--", str(measure), "{arm}")
    assert ran.returncode == 0, ran.stderr
    assert study.recommendation().arm == "0.9"
    assert study.should_stop()
    assert all(row.reward == float(row.arm) for row in study.trials())
    assert len({row.worker for row in study.trials()}) == 2
    assert ran.stdout == run_dbcare("status", "ads", "--storage", storage).stdout
    assert "0.9 chosen" in ran.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arm", "reason"),
    [
        ("broken", "exit code 3: no such page"),
        ("silent", "it printed nothing; its last line of output must be the reward"),
        ("wordy", "its last line of output must be the reward but is 'very good'"),
        ("killed", "killed by SIGKILL"),
        ("nan", "`reward` must be finite but got nan."),
    ],
)
def test_failures_are_shown_kept_and_end_the_run(storage: str, measure: Path, arm: str, reason: str) -> None:
    create(storage, arm, "0.5")
    ran = run_dbcare("run", "ads", "--storage", storage, "--max-failures", "2", "--", str(measure), "{arm}")
    assert ran.returncode == 2
    assert f", of {arm}, failed: {reason}\n" in ran.stderr
    assert f"Error: Arm '{arm}' failed 2 times in a row" in ran.stderr
    exported = run_dbcare("export", "ads", "--storage", storage, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(exported)))
    assert [row["reason"] for row in rows if row["status"] == "failed"] == [reason] * 2


def test_a_command_that_outlives_its_lease_is_ended(storage: str, measure: Path, tmp_path: Path) -> None:
    """The trial has been replaced by then, so its process is not worth running on."""
    create(storage, "slow", "0.5", max_ahead=1)
    pids = tmp_path / "pids"
    arguments = ("run", "ads", "--storage", storage, "--lease", "0.5s", "--max-failures", "1", "--")
    ran = run_dbcare(*arguments, str(measure), "{arm}", str(pids))
    assert "Trial 1, of slow, failed: it took longer than its lease, 0.5 s" in ran.stderr
    assert not any(map(is_running, read_pids(pids)))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def read_pids(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def wait_for_pids(path: Path, count: int) -> list[int]:
    deadline = time.monotonic() + 60.0
    while len(pids := read_pids(path)) < count:
        assert time.monotonic() < deadline, "the commands did not start"
        time.sleep(0.02)
    return pids


@dataclass
class SignaledRun:
    """A run of commands that ignore SIGTERM, in a folder of its own, which gets a signal and must exit with a code."""

    folder: Path
    number: signal.Signals
    code: int

    def start(self, measure: Path) -> None:
        self.folder.mkdir()
        storage, self.pids, self.output = f"sqlite:///{self.folder}/s.db", self.folder / "pids", self.folder / "output"
        self.study = create(storage, "slow", "0.5")
        command = [str(measure), "slow", str(self.pids), "{arm}"]
        arguments = ["run", "ads", "--storage", storage, "--workers", "2", "--", *command]
        self.process = PreparedProcess(COMMAND, arguments, self.output)

    def send(self) -> None:
        self.started = wait_for_pids(self.pids, 2)
        assert self.study.status().waiting == 2
        os.kill(self.process.pid, self.number)

    def check(self) -> None:
        assert self.process.wait(30.0) == self.code
        assert not any(map(is_running, self.started))
        assert self.study.pending() == []
        assert (self.study.status().spent, self.study.status().state) == (0.0, "running")
        assert [row.reason for row in self.study.trials()] == ["given back: the run was interrupted"] * 2
        if self.number is signal.SIGINT:
            assert "Trials under way were given back" in self.output.read_text()
        self.study.tell(self.study.ask(), 0.1)  # type: ignore[arg-type]  # there is one
        assert self.study.status().rewards == 1


def test_signals_give_trials_back(measure: Path, tmp_path: Path) -> None:
    """Nothing is pending, charged or running afterwards, even where commands ignore SIGTERM; and the study goes on.

    Such commands are killed after a while, in which the runs wait together.
    """
    codes = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
    runs = [SignaledRun(tmp_path / number.name, number, code) for number, code in codes.items()]
    for run in runs:
        run.start(measure)
    try:
        for run in runs:
            run.send()
        for run in runs:
            run.check()
    finally:
        for run in runs:
            run.process.kill()


PROGRAM = """
import sys, time, dbcare
name, address, *key = sys.argv[1:]
study = dbcare.connect(address, key[0]).load_study(name) if key else dbcare.load_study(name, address)
def measure(trial):
    sys.stdout.write(f"{trial.id}\\n")  # at once, as three threads write
    sys.stdout.flush()
    time.sleep(600.0)
study.run(measure, workers=3)
"""


def interrupt_program(*arguments: str) -> None:
    """Run the program until its three functions are called, then press Ctrl-C; its process must end soon."""
    environment = os.environ | {"PYTHONPATH": str(Path(dbcare.__file__).parents[1])}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        assert sorted(process.stdout.readline().strip() for _ in range(3)) == ["1", "2", "3"]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60.0)
    finally:
        process.kill()
    assert errors.rstrip().endswith("KeyboardInterrupt")


def check_given_back(study: dbcare.Study) -> None:
    assert study.pending() == []
    assert {row.reason for row in study.trials()} == {"given back: the run was interrupted"}
    assert study.status().spent == 0.0


def test_an_interrupted_program_gives_trials_back(storage: str) -> None:
    """Functions cannot be ended, but neither the study nor the process waits for them."""
    study = create(storage, "A", "B", "C")
    interrupt_program("ads", storage)
    check_given_back(study)


def test_an_interrupted_program_gives_trials_of_a_server_back(server: ApiServer) -> None:
    with dbcare.connect(server.url, server.keys["admin"]) as client:
        study = client.create_study("interrupted", ["A", "B", "C"], price=0.4, value=2_000, sigma=0.5)
        interrupt_program("interrupted", server.url, server.keys["worker"])
        check_given_back(study)


def test_a_killed_run_leaves_leases(storage: str, measure: Path, tmp_path: Path) -> None:
    """Negative control: without a signal that can be caught, trials stay pending until their leases end."""
    study = create(storage, "slow", "0.5")
    pids = tmp_path / "pids"
    arguments = ["run", "ads", "--storage", storage, "--", str(measure), "slow", str(pids), "{arm}"]
    process = PreparedProcess(COMMAND, arguments, tmp_path / "output")
    started = wait_for_pids(pids, 1)
    process.kill()
    process.wait(30.0)
    assert len(study.pending()) == 1
    for pid in started:
        os.killpg(pid, signal.SIGKILL)


def test_a_bar_at_a_terminal(storage: str, tmp_path: Path) -> None:
    create(storage, "0.1", "0.3", "0.2")
    script = tmp_path / "slowly"
    script.write_text('#!/bin/sh\nsleep 0.1\necho "$1"\n')
    script.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(Path(dbcare.__file__).parents[1]), "DBCARE_STORAGE": storage}
    command = [sys.executable, "-m", "dbcare", "run", "ads", "--", str(script), "{arm}"]
    code, output = run_at_terminal(command, environment, columns=120)
    assert code == 0
    lines = strip_codes(output)
    assert "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in lines
    assert "ads: 0.4 USD spent, 1 reward, " in lines or "rewards, " in lines
    assert "stopped" in lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./measure"], "Error: The command must have {arm} among its arguments, for the arm's name: ./measure"),
        (["./nothing", "{arm}"], "Error: There is no program './nothing', or it is not executable."),
    ],
)
def test_wrong_commands_are_refused(storage: str, arguments: list[str], message: str) -> None:
    study = create(storage, "A", "B")
    ran = run_dbcare("run", "ads", "--storage", storage, "--", *arguments)
    assert (ran.returncode, ran.stderr.strip()) == (2, message)
    assert study.status().asked == 0


def test_a_pool_needs_its_block(storage: str) -> None:
    dbcare.create_study("pool", ["0.1", "0.9"], cost=0.01, blocks=["x", "y z", "{arm}", "w"], storage=storage)
    refused = run_dbcare("run", "pool", "--storage", storage, "--", "echo", "{arm}")
    assert "must have {block} among its arguments" in refused.stderr
    ran = run_dbcare(
        "run", "pool", "--storage", storage, "--", "sh", "-c", 'echo "$2"; echo "$1"', "-", "{arm}", "{block}"
    )
    assert ran.returncode == 0, ran.stderr
    assert all(row.reward == float(row.arm) for row in dbcare.load_study("pool", storage).trials())


def test_places_are_filled_once() -> None:
    """A name that looks like a place is not filled in again."""
    values = {"{arm}": "{trial}", "{block}": "b", "{trial}": "7"}
    assert fill_in("--x={arm}/{block}-{trial}{arm}", values) == "--x={trial}/b-7{trial}"
    assert fill_in('{"json": 1}', values) == '{"json": 1}'


def test_rewards_are_read_from_the_last_line() -> None:
    assert read_reward("1\n 2.5e-1 \n\n") == 0.25
    for output in ("", " \n", "0.5 USD\n", "1\n2 3\n"):
        with pytest.raises(UnmeasuredError):
            read_reward(output)


def test_shells_complete_commands_and_studies(storage: str) -> None:
    """As bash asks for it, after `dbcare --install-completion`."""
    create(storage, "A", "B")
    dbcare.create_study("other", ["A", "B"], cost=0.1, storage=storage)

    def complete(words: str) -> list[str]:
        place = str(len(words.split(" ")) - 1)
        variables = {"_DBCARE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
        return run_dbcare(DBCARE_STORAGE=storage, **variables).stdout.split()

    assert complete("dbcare sta") == ["status"]
    assert complete("dbcare status ") == ["ads", "other"]
    assert complete("dbcare status o") == ["other"]
    assert complete("dbcare status --storage sqlite:////nowhere/x.db o") == []
