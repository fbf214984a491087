"""Live studies from the command line, partly with each command in a process of its own, as scripts use them."""

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.terminal import run_at_terminal, strip_codes
from typer.testing import CliRunner

import dbcare
from dbcare.cli import app

COMMAND = Path(sys.executable).with_name("dbcare")


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"DBCARE_STORAGE": address(folder)}


def address(folder: Path) -> str:
    return f"sqlite:///{folder / 'studies.db'}"


def command(folder: Path, *arguments: str, code: int = 0) -> str:
    answer = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False, env=environment(folder))
    assert answer.returncode == code, answer.stderr + answer.stdout
    return answer.stdout if code != 2 or answer.stdout else answer.stderr


def within(folder: Path, *arguments: str, code: int = 0) -> str:
    """The same in this process, which is quicker."""
    answer = CliRunner().invoke(app, arguments, env={"DBCARE_STORAGE": address(folder)})
    assert answer.exit_code == code, answer.output
    return answer.stdout or answer.stderr


def test_a_study_from_begin_to_end(tmp_path: Path) -> None:
    """Created, asked, told, looked at, exported; the library sees the same study."""
    said = command(tmp_path, "create", "ads", "--arms", "A, B", "--price", "1", "--value", "1000", "--binary")
    assert said == ""  # a script has no use for chatter
    assert within(tmp_path, "studies") == "ads\n"
    assert command(tmp_path, "ask", "ads", "-n", "5", "--worker", "shell") == "1\tA\n2\tB\n"
    assert command(tmp_path, "ask", "ads", code=3) == ""
    command(tmp_path, "tell", "ads", "1", "0")
    within(tmp_path, "tell", "ads", "2", "1")
    third = json.loads(command(tmp_path, "ask", "ads", "--format", "json"))
    assert [trial["id"] for trial in third] == [3]
    within(tmp_path, "tell", "ads", "3", "--failed", "--free")
    status = json.loads(command(tmp_path, "status", "ads", "--format", "json"))
    study = dbcare.load_study("ads", f"sqlite:///{tmp_path / 'studies.db'}")
    assert status["counted"] == study.status().counted == 3
    assert status["spent"] == study.status().spent == 2.0
    assert status["recommendation"]["arm"] == study.recommendation().arm == "B"
    assert within(tmp_path, "status", "ads").splitlines()[:4] == [
        "ads: running; 3 counted, 0 out, 0 held back",
        "  A        1   50%           0  (0 to 1)",
        "  B        1   50%           1  (0 to 1)",
        "spent: 2.00 USD; expected loss of stopping now: "
        + study.settings.amount((study.status().expected_loss or 0.0) / 1000),
    ]
    within(tmp_path, "export", "ads", str(tmp_path / "ads.csv"))
    assert (tmp_path / "ads.csv").read_text().count("\n") == 4
    command(tmp_path, "stop", "ads", "--reason", "the season is over")
    assert within(tmp_path, "explain", "ads") == "the season is over\n"
    assert command(tmp_path, "ask", "ads", code=4) == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("status", "none"), "A study must be stored before it is used but got 'none'"),
        (("create", "a/b", "--arms", "A,B", "--cost", "0.1", "--binary"), "`name` must have no slash"),
        (("create", "a", "--arms", "A,A", "--cost", "0.1", "--binary"), "`arms` must be 2 or more different names"),
        (("create", "a", "--arms", "A,B", "--price", "-1", "--value", "2", "--binary"), "`price` must be positive"),
        (("studies", "--storage", "nowhere"), "`storage` must be an address such as sqlite:///ads.db"),
        (("studies", "--storage", "sqlite:////no/such/folder/s.db"), "must be a file that can be opened and written"),
    ],
)
def test_refused_in_one_line(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    said = within(tmp_path, *arguments, code=2)
    assert says in said
    assert said.count("\n") == 1


def test_what_programs_read(tmp_path: Path) -> None:
    """Every command answers in JSON, one document, and in CSV; what is not known is null or empty."""
    answers = {}
    for arguments in (
        ("create", "ads", "--arms", "A,B", "--price", "1", "--value", "1000", "--binary", "--unit", "EUR"),
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
        answers[name] = json.loads(within(tmp_path, *arguments, "--format", "json"), parse_constant=pytest.fail)
    assert answers["create ads"]["state"] == "running"
    assert [trial["arm"] for trial in answers["ask ads"]] == ["A", "B"]
    assert (answers["tell ads"]["counted"], answers["tell ads"]["spent"]) == (1, 1.0)
    assert (answers["pause ads"]["state"], answers["resume ads"]["state"]) == ("paused", "running")
    assert answers["status ads"]["arms"][1]["interval"] is None  # before the first reward
    assert answers["studies"] == [answers["resume ads"]]
    assert answers["explain ads"] == []
    assert [row["status"] for row in answers["export ads"]] == ["told", "asked"]
    assert answers["storage check"] == [{"study": "ads", "events": 5, "agrees": True, "problem": None}]
    assert answers["stop ads"]["state"] == "stopped"
    for arguments, first in (
        (("status", "ads"), {"arm": "A", "trials": "1", "share": "1.0", "mean": "1.0", "low": "0.0", "high": "1.0"}),
        (("studies",), {"study": "ads", "state": "stopped", "recommended": "A"}),
        (("explain", "ads"), {"sentence": "stopped by hand"}),
        (("export", "ads"), {"trial": "1", "arm": "A", "status": "told", "reward": "1.0"}),
        (("storage", "check"), {"study": "ads", "agrees": "True"}),
    ):
        row = next(csv.DictReader(io.StringIO(within(tmp_path, *arguments, "--format", "csv"))))
        assert row.items() >= first.items()
    assert within(tmp_path, "ask", "ads", "--format", "csv", code=4) == "id,arm,expires\n"
    assert within(tmp_path, "ask", "ads", "--format", "json", code=4) == "[]\n"


def test_an_arm_is_retired_and_a_study_deleted(tmp_path: Path) -> None:
    study = dbcare.create_study("ads", ["A", "B", "C"], price=1, value=1000, binary=True, storage=address(tmp_path))
    assert within(tmp_path, "retire", "ads", "B", "--reason", "sold out") == ""
    assert study.status().arms[1].left == "retired: sold out"
    assert "out of the race: B retired: sold out\n" in within(tmp_path, "status", "ads")
    assert "`--yes` must be given to delete 'ads'" in within(tmp_path, "delete", "ads", code=2)
    assert dbcare.list_studies(address(tmp_path)) == ["ads"]
    assert within(tmp_path, "delete", "ads", "--yes") == ""
    assert dbcare.list_studies(address(tmp_path)) == []


def test_what_a_person_sees(tmp_path: Path) -> None:
    """At a terminal commands say what they did; colours unless NO_COLOR is set; intervals where there is room."""
    study = dbcare.create_study("ads", ["A", "[red]"], price=1, value=1000, binary=True, storage=address(tmp_path))
    study.add([("A", 1), ("[red]", 0), ("A", 1), ("[red]", 1)])

    def seen(*arguments: str, code: int = 0, columns: int = 80, **variables: str) -> str:
        found = run_at_terminal([COMMAND, *arguments], environment(tmp_path) | variables, columns=columns)
        assert found[0] == code, found[1]
        return found[1]

    assert strip_codes(seen("ask", "ads")).startswith("trial 5: ")
    assert "No trial for now" in strip_codes(seen("ask", "ads", "-n", "9")) + strip_codes(seen("ask", "ads", code=3))
    status = seen("status", "ads")
    assert "\x1b[32m" in status
    assert "\x1b[32m" not in seen("status", "ads", NO_COLOR="1")
    lines = [line.split() for line in strip_codes(status).splitlines()]
    # The rewards 0 and 1, with four more as the interval imagines them, leave 0.5 -+ 1.96 * 0.5: all that is possible.
    assert ["[red]", "2", "50%", "0.5", "0", "to", "1"] in [line[:7] for line in lines]
    assert "\N{BLACK CIRCLE}" in status
    assert "\N{BLACK CIRCLE}" not in seen("status", "ads", columns=60)
    assert "Stopped ads: A (final" in strip_codes(seen("stop", "ads"))
    assert "The study has stopped: stopped by hand." in strip_codes(seen("ask", "ads", code=4))


def test_a_summary_that_does_not_follow_is_found(tmp_path: Path) -> None:
    """One study of two was tampered with: exit code 2, and the line says which."""
    for name in ("good", "bad"):
        study = dbcare.create_study(name, ["A", "B"], price=1, value=1000, binary=True, storage=address(tmp_path))
        study.add([("A", 1.0), ("B", 0.0)] * 150)
    with sqlite3.connect(tmp_path / "studies.db") as database:
        assert database.execute("SELECT count(*) FROM summaries").fetchone() == (2,)
    assert within(tmp_path, "storage", "check") == "good\t600 events\tagrees\nbad\t600 events\tagrees\n"
    with sqlite3.connect(tmp_path / "studies.db") as database:
        database.execute(
            "UPDATE summaries SET state = json_set(state, '$.spent', 1.0) "
            "WHERE study = (SELECT id FROM studies WHERE name = 'bad')"
        )
    good, bad = within(tmp_path, "storage", "check", code=2).splitlines()
    assert good == "good\t600 events\tagrees"
    assert bad.startswith("bad\t-\tdoes not agree: The summary of 'bad' must follow from its events")
    with sqlite3.connect(tmp_path / "studies.db") as database:
        database.execute("UPDATE summaries SET state = 'gone'")
    rows = json.loads(within(tmp_path, "storage", "check", "--format", "json", code=2))
    assert [row["agrees"] for row in rows] == [False, False]


def test_export_prints_for_a_pipe_or_writes_a_file(tmp_path: Path) -> None:
    study = dbcare.create_study("ads", ["A", "B"], price=1, value=1000, binary=True, storage=address(tmp_path))
    study.add([("A", 1.0), ("B", 0.0)])
    assert within(tmp_path, "export", "ads", str(tmp_path / "ads.csv")) == ""
    assert within(tmp_path, "export", "ads") == (tmp_path / "ads.csv").read_text()
    table = [line.split() for line in within(tmp_path, "export", "ads", "--format", "table").splitlines()]
    assert [line[:4] for line in table[1:]] == [["1", "A", "told", "1.0"], ["2", "B", "told", "0.0"]]
    refused = within(tmp_path, "export", "ads", str(tmp_path / "x.csv"), "--format", "csv", code=2)
    assert "`--format` must not be given with a file" in refused


def test_looking_at_a_study_loads_no_compiler(tmp_path: Path) -> None:
    dbcare.create_study("ads", ["A", "B"], price=1, value=1000, binary=True, storage=address(tmp_path))
    script = (
        "import sys\nfrom dbcare.cli import app\n"
        "app(['status', 'ads', '--format', 'json'], standalone_mode=False)\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment(tmp_path)
    )
    loaded = set(answer.stderr.split())
    assert "sqlalchemy" in loaded
    assert loaded.isdisjoint({"numba", "scipy", "matplotlib"})
