"""Live studies from the command line, partly with one process per command, as in scripts."""

import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dbcare
from dbcare.base.numbers import Money
from dbcare.cli import app
from tests.helpers.terminal import run_at_terminal, strip_codes

COMMAND = Path(sys.executable).with_name("dbcare")
SEVERAL_COMMANDS = """
import fcntl, os, struct, sys, termios
from dbcare.cli import app
for command in sys.argv[1:]:
    *settings, command = command.split("; ")
    os.environ.pop("NO_COLOR", None)
    columns = 80
    for name, value in (setting.split("=") for setting in settings):
        if name == "columns":
            columns = int(value)
        else:
            os.environ[name] = value
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    try:
        app(command.split())
    except SystemExit as end:
        print(f"exit code {end.code}, next command", end="", flush=True)
"""


def make_environment(folder: Path) -> dict[str, str]:
    return os.environ | {"DBCARE_STORAGE": make_address(folder)}


def make_address(folder: Path) -> str:
    return f"sqlite:///{folder / 'studies.db'}"


def run_process(folder: Path, *arguments: str, code: int = 0) -> str:
    result = subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, check=False, env=make_environment(folder)
    )
    assert result.returncode == code, result.stderr + result.stdout
    return result.stdout if code != 2 or result.stdout else result.stderr


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run a command in this process, which is faster."""
    result = CliRunner().invoke(app, arguments, env={"DBCARE_STORAGE": make_address(folder)})
    assert result.exit_code == code, result.output
    return result.stdout or result.stderr


def test_a_study_from_start_to_finish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create, ask, tell, show, export, stop; the library sees the same study."""
    output = run_process(tmp_path, "create", "ads", "--arms", "A, B", "--price", "1", "--value", "1000", "--binary")
    assert output == ""  # in a pipe, nothing but results
    assert run(tmp_path, "studies") == "ads\n"
    assert run(tmp_path, "ask", "ads", "-n", "5", "--worker", "shell") == "1\tA\n2\tB\n"
    assert run_process(tmp_path, "ask", "ads", code=3) == ""
    run(tmp_path, "tell", "ads", "1", "0")
    run(tmp_path, "tell", "ads", "2", "1")
    third = json.loads(run(tmp_path, "ask", "ads", "--format", "json"))
    assert [trial["id"] for trial in third] == [3]
    run(tmp_path, "tell", "ads", "3", "--failed", "--free")
    status = json.loads(run(tmp_path, "status", "ads", "--format", "json"))
    study = dbcare.load_study("ads", f"sqlite:///{tmp_path / 'studies.db'}")
    assert status["counted"] == study.status().counted == 3
    assert status["spent"] == study.status().spent == 2.0
    assert status["recommendation"]["arm"] == study.recommendation().arm == "B"
    assert run(tmp_path, "status", "ads").splitlines()[:4] == [
        "ads: running; 2 counted, 0 pending, 0 held",
        "  A        1   50%           0           -  (-)",
        "  B        1   50%           1           -  (-)",
        f"spent: 2.00 USD; expected loss of stopping now: {Money(study.status().expected_loss or 0.0, 'USD')}",
    ]
    assert "rewards: 0 or 1\n" in run(tmp_path, "status", "ads")
    run(tmp_path, "export", "ads", str(tmp_path / "ads.csv"))
    assert (tmp_path / "ads.csv").read_text().count("\n") == 4
    assert run(tmp_path, "report", "ads", str(tmp_path / "decision.html")) == f"{tmp_path / 'decision.html'}\n"
    assert "B leads so far" in (tmp_path / "decision.html").read_text()
    monkeypatch.chdir(tmp_path)
    assert run(tmp_path, "report", "ads") == "ads.html\n"
    assert Path("ads.html").read_text().startswith("<!doctype html>")
    run(tmp_path, "stop", "ads", "--reason", "the season is over")
    assert run(tmp_path, "explain", "ads") == "the season is over\n"
    assert run(tmp_path, "ask", "ads", code=4) == ""


def test_similar_names_are_suggested(tmp_path: Path) -> None:
    """Only similar ones, the most similar first, and by commands that delete, too."""
    for name in ("checkout", "check", "prices"):
        dbcare.create_study(name, ["A", "B"], cost=0.1, sigma=1.0, storage=make_address(tmp_path))
    for command in (["status", "chekout"], ["delete", "chekout", "--yes"]):
        output = run(tmp_path, *command, code=2)
        assert output == "Error: Study 'chekout' not found. Did you mean 'checkout' or 'check'?\n"
    assert run(tmp_path, "status", "wages", code=2) == "Error: Study 'wages' not found.\n"
    assert run(tmp_path, "studies") == "checkout\ncheck\nprices\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("status", "none"), "studies.db does not exist; create a study there, or correct the address."),
        (("create", "a/b", "--arms", "A,B", "--cost", "0.1", "--binary"), "`name` must not contain a slash"),
        (("create", "a", "--arms", "A,A", "--cost", "0.1", "--binary"), "`--arms` must be 2 or more different names"),
        (("create", "a", "--arms", "A,B", "--price", "-1", "--value", "2", "--binary"), "`--price` must be positive"),
        (
            ("create", "a", "--arms", "A,B", "--price", "0,05", "--value", "9", "--binary"),
            "`--price` must be a number but got '0,05'; use a decimal point, and no commas between thousands.",
        ),
        (
            ("create", "a", "--arms", "A,B", "--price", "0.5", "--value", "60,000", "--binary"),
            "`--value` must be a number but got '60,000'; use a decimal point, and no commas between thousands.",
        ),
        (
            ("create", "a", "--arms", "A,B", "--price", "1", "--value", "9", "--sigma", "1,5"),
            "`--sigma` must be a number but got '1,5'; use a decimal point, and no commas between thousands.",
        ),
        (("studies", "--storage", "nowhere"), "`--storage` must be an address such as sqlite:///ads.db"),
        (("studies", "--storage", "sqlite:////no/such/folder/s.db"), "folder/s.db does not exist; create"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    output = run(tmp_path, *arguments, code=2)
    assert message in output
    assert output.count("\n") == 1
    assert not list(tmp_path.iterdir())  # no database is made for a mistake


def test_a_reward_of_0_for_expired_trials_is_kept(tmp_path: Path) -> None:
    """0 is a value, not the absence of one."""
    arms = ("--arms", "A,B", "--price", "1", "--value", "1000")
    run(tmp_path, "create", "ads", *arms, "--binary", "--timeout-reward", "0")
    assert dbcare.load_study("ads", make_address(tmp_path)).settings.timeout_reward == 0.0
    assert "`--sigma` must be positive but got 0.0." in run(tmp_path, "create", "b", *arms, "--sigma", "0", code=2)


def test_pending_trials_are_listed_and_given_up(tmp_path: Path) -> None:
    run(tmp_path, "create", "ads", "--arms", "A,B", "--price", "1", "--value", "1000", "--sigma", "1")
    run(tmp_path, "ask", "ads", "-n", "2", "--worker", "dead")
    run(tmp_path, "tell", "ads", "2", "0.5")
    first, second = (line.split("\t") for line in run(tmp_path, "pending", "ads").splitlines())
    assert first[:4] == ["1", "A", "-", "dead"]
    assert first[5].startswith("ends in ")
    assert (second[0], second[5]) == ("2", "told")
    listed = json.loads(run(tmp_path, "pending", "ads", "--format", "json"))
    assert [(trial["trial"], trial["worker"], trial["told"]) for trial in listed] == [
        (1, "dead", False),
        (2, "dead", True),
    ]
    assert "Pass numbers of trials, `--worker`, `--older-than`, or `--all`." in run(tmp_path, "give-up", "ads", code=2)
    run(tmp_path, "give-up", "ads", "--older-than", "1h")
    assert len(json.loads(run(tmp_path, "pending", "ads", "--format", "json"))) == 2
    state = json.loads(run(tmp_path, "give-up", "ads", "1", "2", "--format", "json"))
    assert (state["rewards"], state["spent"]) == (1, 1.0)
    run(tmp_path, "give-up", "ads", "--all")
    assert run(tmp_path, "pending", "ads") == ""
    rows = json.loads(run(tmp_path, "export", "ads", "--format", "json"))
    assert [row["status"] for row in rows] == ["failed", "told"]
    assert rows[0]["tag"] != rows[1]["tag"]


def test_output_for_programs(tmp_path: Path) -> None:
    """Every command prints one JSON document, or CSV; what is unknown is null or empty."""
    printed = {}
    for arguments in (
        ("create", "ads", "--arms", "A,B", "--price", "1", "--value", "1000", "--binary", "--currency", "EUR"),
        ("ask", "ads", "-n", "2"),
        ("tell", "ads", "1", "1"),
        ("pause", "ads"),
        ("resume", "ads"),
        ("status", "ads"),
        ("studies",),
        ("explain", "ads"),
        ("export", "ads"),
        ("storage", "check"),
        ("stop", "ads"),
    ):
        name = " ".join(arguments[:2])
        printed[name] = json.loads(run(tmp_path, *arguments, "--format", "json"), parse_constant=pytest.fail)
    assert printed["create ads"]["state"] == "running"
    assert [trial["arm"] for trial in printed["ask ads"]] == ["A", "B"]
    assert (printed["tell ads"]["rewards"], printed["tell ads"]["spent"]) == (1, 1.0)
    assert (printed["pause ads"]["state"], printed["resume ads"]["state"]) == ("paused", "running")
    assert printed["status ads"]["arms"][1]["interval"] is None  # before the first reward
    shared = printed["resume ads"].keys() & printed["studies"][0].keys()
    assert {"study", "state", "asked", "rewards", "spent", "recommended", "verdict"} == shared
    assert [printed["studies"][0][column] for column in shared] == [printed["resume ads"][column] for column in shared]
    assert printed["explain ads"] == []
    assert [row["status"] for row in printed["export ads"]] == ["told", "asked"]
    assert printed["storage check"] == [{"study": "ads", "events": 5, "agrees": True, "problem": None}]
    assert printed["stop ads"]["state"] == "stopped"
    for arguments, first in (
        (("status", "ads"), {"arm": "A", "trials": "1", "share": "1.0", "mean": "1.0", "high": ""}),
        (("studies",), {"study": "ads", "state": "stopped", "recommended": "A"}),
        (("explain", "ads"), {"sentence": "stopped by hand"}),
        (("export", "ads"), {"trial": "1", "arm": "A", "status": "told", "reward": "1.0"}),
        (("storage", "check"), {"study": "ads", "agrees": "True"}),
    ):
        row = next(csv.DictReader(io.StringIO(run(tmp_path, *arguments, "--format", "csv"))))
        assert row.items() >= first.items()
    assert run(tmp_path, "ask", "ads", "--format", "csv", code=4) == "id,arm,expires,unit,told,block,tag\n"
    assert run(tmp_path, "ask", "ads", "--format", "json", code=4) == "[]\n"


FORMULA = "=cmd|' /C calc'!A0"


def test_formulas_are_defused_wherever_people_read_csv(tmp_path: Path) -> None:
    """Names of studies, arms, keys, and logs are other people's; `ask` is for programs, and numbers are numbers."""
    run(tmp_path, "create", "=1+1", "--arms", f"{FORMULA},@B", "--cost", "0.4", "--sigma", "1")
    (asked,) = read_csv(run(tmp_path, "ask", "=1+1", "--worker", "w", "--format", "csv"))
    assert asked["arm"] == FORMULA
    (told,) = read_csv(run(tmp_path, "tell", "=1+1", "--format", "csv", "1", "--", "-2"))
    assert told["study"] == "'=1+1"
    status = read_csv(run(tmp_path, "status", "=1+1", "--format", "csv"))
    assert [row["arm"] for row in status] == [f"'{FORMULA}", "'@B"]
    assert status[0]["mean"] == "-2.0"
    run(tmp_path, "retire", "=1+1", FORMULA)
    (listed,) = read_csv(run(tmp_path, "studies", "--format", "csv"))
    assert (listed["study"], listed["recommended"]) == ("'=1+1", "'@B")
    (checked,) = read_csv(run(tmp_path, "storage", "check", "--format", "csv"))
    assert checked["study"] == "'=1+1"
    sentences = read_csv(run(tmp_path, "explain", "=1+1", "--format", "csv"))
    assert sentences
    assert all(row["sentence"][0] not in "=+-@" for row in sentences)
    run(tmp_path, "keys", "create", "--name", FORMULA, "--role", "viewer")
    (key,) = read_csv(run(tmp_path, "keys", "list", "--format", "csv"))
    assert key["name"] == f"'{FORMULA}"
    log = tmp_path / "log.csv"
    log.write_text(
        "arm,reward,day\n" + "".join(f"{arm},{day % 2},{day}\n" for day in range(4) for arm in (FORMULA, "B"))
    )
    imported = read_csv(run(tmp_path, "import", str(log), "--cost", "0.1", "--sigma", "1", "--format", "csv"))
    compared = read_csv(
        run(
            tmp_path,
            *("compare", str(log), "--question", "day", "--score", "reward", "--price", "1", "--value", "9"),
            *("--orders", "2", "--format", "csv"),
        )
    )
    assert sorted(row["name"] for row in imported) == sorted(row["name"] for row in compared) == [f"'{FORMULA}", "B"]


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_what_is_charged_without_being_counted_is_shown(tmp_path: Path) -> None:
    """Counts and amounts add up to what was spent."""
    study = dbcare.create_study("ads", ["A", "B"], price=0.4, value=20, sigma=1.0, storage=make_address(tmp_path))
    study.add([("A", 0.5), ("B", 0.25)])
    failed, late = study.ask(2)
    study.tell(failed, failed=True)
    study.stop("enough")
    study.tell(late, 0.75)
    counts = "2 counted, 1 answered after the stop (0.4 USD), 1 failed and charged (0.4 USD), 0 pending, 0 held"
    lines = run(tmp_path, "status", "ads").splitlines()
    assert lines[0] == f"ads: stopped; {counts}"
    assert "spent: 1.60 USD; " in "\n".join(lines)
    status = json.loads(run(tmp_path, "status", "ads", "--format", "json"))
    assert [status[name] for name in ("late", "late_cost", "failed", "failed_cost", "surplus")] == [1, 0.4, 1, 0.4, 0]
    rows = list(csv.DictReader(io.StringIO(run(tmp_path, "status", "ads", "--format", "csv"))))
    assert [row["late"] for row in rows] == [str(int(arm == late.arm)) for arm in ("A", "B")]


def test_a_unit_that_comes_back_gets_its_trial(tmp_path: Path) -> None:
    """It does even after the study has stopped; a new one gets none."""
    study = dbcare.create_study("ads", ["A", "B"], cost=0.01, sigma=1.0, storage=make_address(tmp_path))
    assert run(tmp_path, "ask", "ads", "--unit", "user-7") == "1\tA\n"
    assert run(tmp_path, "ask", "ads", "--unit", "user-8") == "2\tB\n"
    study.tell(1, 0.5)
    study.stop()
    assert run(tmp_path, "ask", "ads", "--unit", "user-7") == "1\tA\n"
    (known,) = json.loads(run(tmp_path, "ask", "ads", "--unit", "user-7", "--format", "json"))
    assert (known["id"], known["unit"], known["told"]) == (1, "user-7", True)
    run(tmp_path, "ask", "ads", "--unit", "user-9", code=4)
    message = run(tmp_path, "ask", "ads", "--unit", "user-7", "-n", "2", code=2)
    assert "`-n` must be 1 for a `--unit` but got 2." in message


def test_retire_and_delete(tmp_path: Path) -> None:
    study = dbcare.create_study(
        "ads", ["A", "B", "C"], price=1, value=1000, binary=True, storage=make_address(tmp_path)
    )
    assert run(tmp_path, "describe", "ads", "Which ad sells best?") == ""
    assert "about: Which ad sells best?\n" in run(tmp_path, "status", "ads")
    assert run(tmp_path, "describe", "ads") == ""
    assert study.status().description is None
    assert run(tmp_path, "retire", "ads", "B", "--reason", "sold out") == ""
    assert study.status().arms[1].left == "retired: sold out"
    assert "no longer active: B retired: sold out\n" in run(tmp_path, "status", "ads")
    assert "Pass either `reward` or `--failed`." in run(tmp_path, "tell", "ads", "1", code=2)
    assert "Pass `--yes` to delete 'ads' and all its trials." in run(tmp_path, "delete", "ads", code=2)
    assert dbcare.list_studies(make_address(tmp_path)) == ["ads"]
    assert run(tmp_path, "delete", "ads", "--yes") == ""
    assert dbcare.list_studies(make_address(tmp_path)) == []


def test_output_at_a_terminal(tmp_path: Path) -> None:
    """Commands say what they did, in color unless NO_COLOR is set, and draw intervals if there is room."""
    study = dbcare.create_study("ads", ["A", "[red]"], price=1, value=1000, binary=True, storage=make_address(tmp_path))
    study.add([("A", 1), ("[red]", 0), ("A", 0), ("[red]", 1)] * 6)

    units = dbcare.create_study("units", ["A", "B"], cost=0.01, sigma=1.0, storage=make_address(tmp_path))
    units.ask(unit="user-7")
    units.tell(1, 0.5)
    # Each with its exit code, in one process, whose terminal is 60 columns wide for the last ones.
    codes = {
        "ask ads": 0,
        "ask ads -n 9": 0,
        "ask  ads": 3,
        "ask units --unit user-7": 0,
        "status ads": 0,
        "NO_COLOR=1; status ads": 0,
        "columns=60; status ads": 0,
        "columns=60; stop ads": 0,
        "columns=60; ask ads": 4,
    }
    environment = make_environment(tmp_path) | {"TZ": "Pacific/Honolulu"}  # which has no daylight saving time
    exit_code, output = run_at_terminal([sys.executable, "-c", SEVERAL_COMMANDS, *codes], environment)
    assert exit_code == 0, output
    *written, end = output.split("exit code ")
    assert [int(part.partition(",")[0]) for part in (*written[1:], end)] == list(codes.values()), output
    written[1:] = [part.partition("next command")[2] for part in written[1:]]
    first, others, none, told, status, plain, narrow, stop, refusal = written
    assert re.fullmatch(r"trial 25: .* \(until [-\d]+ [:\d]+ HST\)", strip_codes(first).strip())
    assert "No trial available" in strip_codes(others) + strip_codes(none)
    assert strip_codes(told).strip() == "trial 1: A (already told)"
    assert "rewards      0 or 1" in strip_codes(status)
    assert "\x1b[32m" in status
    assert "rewards      0 or 1" in strip_codes(plain)
    assert "\x1b[32m" not in plain
    lines = [line.split() for line in strip_codes(status).splitlines()]
    # Equal arms have the usual interval, 0.5 +- 1.96 * 0.5 / sqrt(12).
    assert ["[red]", "12", "0.5", "0.500", "0.217", "to", "0.783"] in [line[:7] for line in lines]
    assert "\N{BLACK CIRCLE}" in status
    assert "\N{BLACK CIRCLE}" not in narrow
    assert "Stopped ads: A (final" in strip_codes(stop)
    assert "The study has stopped: stopped by hand." in strip_codes(refusal)


def test_storage_check_finds_a_wrong_summary(tmp_path: Path) -> None:
    """If one of two studies was tampered with, the exit code is 2 and the output says which."""
    for name in ("good", "bad"):
        study = dbcare.create_study(name, ["A", "B"], price=1, value=1000, binary=True, storage=make_address(tmp_path))
        study.add([("A", 1.0), ("B", 0.0)] * 150)
    with sqlite3.connect(tmp_path / "studies.db") as database:
        assert database.execute("SELECT count(*) FROM summaries").fetchone() == (2,)
    assert run(tmp_path, "storage", "check") == "good\t600 events\tagrees\nbad\t600 events\tagrees\n"
    with sqlite3.connect(tmp_path / "studies.db") as database:
        database.execute(
            "UPDATE summaries SET state = json_set(state, '$.spent', 1.0) "
            "WHERE study = (SELECT id FROM studies WHERE name = 'bad')"
        )
    good, bad = run(tmp_path, "storage", "check", code=2).splitlines()
    assert good == "good\t600 events\tagrees"
    assert bad.startswith("bad\t-\tdoes not agree: The summary of study 'bad' does not follow from its events")
    with sqlite3.connect(tmp_path / "studies.db") as database:
        database.execute("UPDATE summaries SET state = 'gone'")
    rows = json.loads(run(tmp_path, "storage", "check", "--format", "json", code=2))
    assert [row["agrees"] for row in rows] == [False, False]


def test_export_prints_to_a_pipe_or_writes_a_file(tmp_path: Path) -> None:
    study = dbcare.create_study("ads", ["A", "B"], price=1, value=1000, binary=True, storage=make_address(tmp_path))
    study.add([("A", 1.0), ("B", 0.0)])
    assert run(tmp_path, "export", "ads", str(tmp_path / "ads.csv")) == ""
    assert run(tmp_path, "export", "ads") == (tmp_path / "ads.csv").read_text()
    table = [line.split() for line in run(tmp_path, "export", "ads", "--format", "table").splitlines()]
    assert " ".join(table[0]) == "trial arm status reward asked (UTC) answered (UTC)"
    assert [line[:4] for line in table[1:]] == [["1", "A", "told", "1.0"], ["2", "B", "told", "0.0"]]
    refused = run(tmp_path, "export", "ads", str(tmp_path / "x.csv"), "--format", "csv", code=2)
    assert "`--format` cannot be combined with a file" in refused


def test_status_does_not_load_the_compiler(tmp_path: Path) -> None:
    dbcare.create_study("ads", ["A", "B"], price=1, value=1000, binary=True, storage=make_address(tmp_path))
    script = (
        "import sys\nfrom dbcare.cli import app\n"
        "app(['status', 'ads', '--format', 'json'], standalone_mode=False)\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=make_environment(tmp_path)
    )
    loaded = set(result.stderr.split())
    assert "sqlalchemy" in loaded
    assert loaded.isdisjoint({"numba", "scipy", "matplotlib"})


def test_a_study_with_blocks(tmp_path: Path) -> None:
    """Trials are printed with their block, and the status says how many are used."""
    spend = ("--price", "0.01", "--value", "1000")
    run(tmp_path, "create", "prompts", "--arms", "A,B", *spend, "--blocks", "q1, q2,q3")
    names = [line.split("\t") for line in run(tmp_path, "ask", "prompts", "-n", "2").splitlines()]
    assert [(number, arm) for number, arm, _ in names] == [("1", "A"), ("2", "B")]
    assert names[0][2] == names[1][2] in ("q1", "q2", "q3")
    run(tmp_path, "tell", "prompts", "1", "0.5", "--price", "0.25")
    run(tmp_path, "tell", "prompts", "2", "--failed", "--price", "0.5")
    assert run(tmp_path, "status", "prompts").startswith(
        "prompts: running; 1 counted, 1 failed and charged (0.5 USD), 0 pending, 0 held; 1 of 3 blocks used\n"
    )
    assert json.loads(run(tmp_path, "status", "prompts", "--format", "json"))["spent"] == pytest.approx(0.75)
    assert json.loads(run(tmp_path, "ask", "prompts", "--format", "json"))[0]["block"] != names[0][2]
    rows = list(csv.DictReader(io.StringIO(run(tmp_path, "export", "prompts"))))
    assert [(row["block"], row["price"]) for row in rows[:2]] == [(names[0][2], "0.25"), (names[0][2], "0.5")]
    run(tmp_path, "create", "hours", "--arms", "A,B", *spend, "--rounds")
    assert run(tmp_path, "ask", "hours", "-n", "2") == "1\tA\t1\n2\tB\t1\n"
    assert run(tmp_path, "status", "hours").startswith("hours: running; 0 counted, 2 pending, 0 held; 1 round\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--blocks", "q1,q2,q1"), "`--blocks` must be different names but got 'q1' twice."),
        (("--blocks", "5", "--rounds"), "Pass `--rounds` or `--blocks`, not both, but got --blocks 5."),
        (("--blocks", "many"), "`--blocks` must be a number but got 'many'."),
        (("--only-these-blocks",), "`--only-these-blocks` requires `--blocks`."),
    ],
)
def test_invalid_blocks(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in run(tmp_path, "create", "x", "--arms", "A,B", "--cost", "0.1", *arguments, code=2)


def test_a_price_that_is_refused(tmp_path: Path) -> None:
    run(tmp_path, "create", "x", "--arms", "A,B", "--cost", "0.001")
    run(tmp_path, "ask", "x")
    assert "Trial 1, of A: `--price` must not be negative but got -1.0." in run(
        tmp_path, "tell", "x", "1", "0.5", "--price=-1", code=2
    )
    assert "Pass `--free` or `--price`, not both, but got a price of 2." in run(
        tmp_path, "tell", "x", "1", "--failed", "--free", "--price", "2", code=2
    )
