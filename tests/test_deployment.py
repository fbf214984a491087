"""What the pages on deployment say, and the files that they ship, hold up: units, containers, alerts, commands."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import sqlalchemy as sa
import typer
import yaml  # type: ignore[import-untyped]

import dbcare
from dbcare.cli import app
from dbcare.errors import StorageError
from dbcare.server.access.records import open_records
from dbcare.server.webhook import open_deliveries
from dbcare.studies.stores.open import open_store
from dbcare.studies.stores.sql.store import SqlStore
from tests.helpers.announce import announce
from tests.helpers.dbcare_command import run_dbcare
from tests.helpers.postgres import Server

ROOT = Path(__file__).parents[1]
DEPLOY, DOCS = ROOT / "deploy", ROOT / "docs"
UNIT = (DEPLOY / "dbcare.service").read_text()
RUNBOOK = (DOCS / "runbook.md").read_text()
POSTGRESQL = (DOCS / "guides" / "postgresql.md").read_text()
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(dbcare [^`]+)`")

# For what operators were called at night.
CALLS = (
    "database-down",
    "disk-full",
    "study-hands-out-nothing",
    "database-hangs",
    "corruption-and-restore",
    "key-expired",
    "version-mismatch",
    "webhook-undelivered",
)


def make_anchor(heading: str) -> str:
    """Return the anchor of a heading, as the site and GitHub make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_every_alert_has_a_section_of_the_runbook() -> None:
    """In kebab case; the alert's link leads there, and no other section looks like an alert's."""
    rules = [rule for group in yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    kebab = {rule["alert"]: re.sub(r"(?<=[a-z])(?=[A-Z])", "-", rule["alert"]).lower() for rule in rules}
    anchors = [make_anchor(heading) for heading in re.findall(r"^## (.+)$", RUNBOOK, re.MULTILINE)]
    assert len(set(anchors)) == len(anchors)
    assert [anchor for anchor in anchors if anchor.startswith("dbcare-")] == list(kebab.values())
    assert set(CALLS) <= set(anchors)
    for rule in rules:
        assert rule["annotations"]["runbook"] == f"runbook.md#{kebab[rule['alert']]}"
    links = re.findall(r"\]\(#([\w-]+)\)", RUNBOOK)
    assert set(links) <= set(anchors)


def list_commands(page: str) -> list[str]:
    """List the commands of dbcare that a page shows, in blocks and in sentences."""
    lines = [line.partition("#")[0].strip() for block in CONSOLE.findall(page) for line in block.splitlines()]
    shown = [line.removeprefix("$ ").removeprefix("/opt/dbcare/bin/") for line in lines]
    return [line for line in [*shown, *INLINE.findall(page)] if line.startswith("dbcare ") and "..." not in line]


def check_command(line: str) -> None:
    """Raise if there is no such command, or it has no such option."""
    found: Any = typer.main.get_command(app)
    words = shlex.split(line)[1:]
    while hasattr(found, "commands") and words and not words[0].startswith("-"):
        assert words[0] in found.commands, line
        found = found.commands[words.pop(0)]
    with click.Context(found) as context:
        options = {name for parameter in found.get_params(context) for name in parameter.opts}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options, line


@pytest.mark.parametrize("page", ["runbook", "deployment", "service", "guides/postgresql"])
def test_commands_of_operators_exist(page: str) -> None:
    commands = list_commands((DOCS / f"{page}.md").read_text())
    assert len(commands) >= 3
    for line in commands:
        check_command(line)


@pytest.mark.parametrize("line", ["dbcare nonsense", "dbcare keys nonsense", "dbcare keys list --nonsense"])
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    assert list_commands(f"```console\n{line}\n```\n") == [line]
    with pytest.raises(AssertionError):
        check_command(line)


def verify_unit(text: str, folder: Path) -> str:
    """Return what systemd says about a unit whose program is installed."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("No systemd-analyze, so the systemd unit is not verified; apt-get install systemd")
    unit = folder / "dbcare.service"
    unit.write_text(text.replace("/opt/dbcare/bin/dbcare", sys.executable))
    found = subprocess.run(
        [program, "verify", "--man=no", unit], capture_output=True, text=True, timeout=120, check=False
    )
    return found.stdout + found.stderr


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    assert verify_unit(UNIT, tmp_path) == ""
    assert "ProtectHoam" in verify_unit(UNIT.replace("ProtectHome", "ProtectHoam"), tmp_path)
    assert {"PGPASSWORD", "DBCARE_WEBHOOK_SECRET"} <= set(re.findall(r"[A-Z_]{4,}", UNIT))


def test_systemd_accepts_the_second_unit(tmp_path: Path) -> None:
    """As the page says to make it; it shares neither port nor folders with the first."""
    (line,) = re.findall(r"^(sed .*) deploy/dbcare.service >", (DOCS / "deployment.md").read_text(), re.MULTILINE)
    made = subprocess.run([*shlex.split(line), DEPLOY / "dbcare.service"], capture_output=True, text=True, check=True)
    assert verify_unit(made.stdout, tmp_path) == ""
    own = [re.findall(r"(PORT=\d+|\w+Directory=\S+|CACHE=\S+)", text) for text in (made.stdout, UNIT)]
    assert len(own[0]) == len(own[1]) == 4
    assert set(own[0]).isdisjoint(own[1])


def test_the_compose_file_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    """By Docker if it can tell; always that what the services name is there."""
    path = DEPLOY / "compose.yaml"
    content = yaml.safe_load(path.read_text())
    assert set(content) == {"services", "volumes"}
    for service in content["services"].values():
        assert set(service.get("depends_on", ())) <= set(content["services"])
        assert {volume.partition(":")[0] for volume in service.get("volumes", ())} <= set(content["volumes"])
        if "build" in service:
            context = DEPLOY / service["build"]["context"]
            assert (context / service["build"]["dockerfile"]).is_file()
            known = set(re.findall(r"DBCARE_\w+", (DOCS / "reference" / "environment.md").read_text()))
            assert set(service["environment"]) <= known | {"PGPASSWORD"}
            assert all(port.startswith("127.0.0.1:") for port in service["ports"]), "there is no HTTPS yet"
    docker = shutil.which("docker")
    call = [str(docker), "compose", "--file", str(path), "config", "--quiet"]
    if docker is None or subprocess.run([*call[:2], "version"], capture_output=True, check=False).returncode != 0:
        announce(capsys, "No docker compose, so the compose file was only checked by us.")
        return
    subprocess.run(call, check=True, env={"POSTGRES_PASSWORD": "secret", "PATH": str(Path(docker).parent)})


def test_the_tables_are_those_that_the_page_names(tmp_path: Path) -> None:
    """Also what creates them: each of the three commands, but none that only looks."""
    (line,) = re.findall(r"^- \*\*Tables\*\* (.*)$", POSTGRESQL, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", line.partition("Since")[0]))
    store = SqlStore(f"sqlite:///{tmp_path / 'all.db'}")
    open_records(store)
    open_deliveries(store)
    with store.transaction(write=False) as connection:
        assert set(sa.inspect(connection).get_table_names()) == named
    store.close()
    for name, command in (
        ("study", ["create", "ads", "--arms", "A,B", "--cost", "1e-3", "--sigma", "1"]),
        ("key", ["keys", "create", "--role", "admin", "--name", "me"]),
    ):
        address = f"sqlite:///{tmp_path / name}.db"
        assert run_dbcare("studies", "--storage", address).returncode != 0
        assert run_dbcare(*command, "--storage", address).returncode == 0
        assert run_dbcare("studies", "--storage", address).returncode == 0


def test_the_tables_can_be_in_a_schema_of_their_own(postgres: Server) -> None:
    """As the page says: by the search path of the role; the database has tables of the same names already."""
    assert "a schema of its own: `ALTER ROLE dbcare SET search_path = dbcare`" in POSTGRESQL
    address = postgres.create_database()
    engine = sa.create_engine(address.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for command in ("CREATE TABLE events (id int)", "CREATE SCHEMA dbcare"):
            connection.exec_driver_sql(command)
    engine.dispose()
    with pytest.raises(StorageError, match="already has tables named events"):
        SqlStore(address)
    storage = f"{address}&options=-csearch_path%3Ddbcare"
    study = dbcare.create_study("ads", ["A", "B"], cost=1e-3, sigma=1.0, storage=storage)
    study.add([("A", 1.0)])
    assert study.check() == 2
    open_store(storage).close()


def test_installations_for_operation_have_the_tested_versions() -> None:
    text = (DOCS / "deployment.md").read_text() + (DEPLOY / "Dockerfile").read_text()
    installed = re.findall(r"pip install .*\[server.*", text)
    assert len(installed) == 2
    assert [line for line in installed if " -c " not in line] == []


@pytest.mark.parametrize("page", ["deployment", "service"])
def test_benchmarks_of_operators_run_after_the_documented_installation(page: str) -> None:
    """Which has none of the packages that other benchmarks compare with."""
    names = set(re.findall(r"python -m benchmarks (\w+)", (DOCS / f"{page}.md").read_text()))
    assert names or page == "service"
    for name in sorted(names):
        start = (
            "import runpy, sys; sys.modules['optuna'] = sys.modules['pytest'] = None; "
            "runpy.run_module('benchmarks', run_name='__main__')"
        )
        process = subprocess.run(
            [sys.executable, "-c", start, name, "--help"], capture_output=True, text=True, check=False, cwd=ROOT
        )
        assert process.returncode == 0, process.stderr
        assert "usage" in process.stdout
