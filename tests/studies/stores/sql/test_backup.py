"""Backups made under load, and restored: trials in the backup stay valid, and those asked since are refused."""

import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pgserver._commands import POSTGRES_BIN_PATH
from typer.testing import CliRunner

import dbcare
from dbcare import Study, Trial
from dbcare.cli import app
from dbcare.errors import StaleTrialError, StorageError
from dbcare.studies.stores.open import open_store
from dbcare.studies.stores.sql.backup import back_up, restore
from dbcare.studies.stores.sql.tables import LAYOUT
from tests.helpers.postgres import Server

ARMS = ["A", "B", "C"]
NOBODY = 65534
STALE_TRIALS = 1_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "studies.db"


@pytest.fixture
def address(path: Path) -> Iterator[str]:
    address = f"sqlite:///{path}"
    yield address
    open_store(address).close()


def create(address: str) -> Study:
    return dbcare.create_study(
        "ads", ARMS, cost=1e-9, sigma=1.0, max_ahead=100_000, not_before=100_000, storage=address
    )


def ask(study: Study, count: int) -> list[Trial]:
    trials = study.ask(count, lease=None)
    assert len(trials) == count
    return trials


def check_restoring(address: str, back_up_now: Callable[[], object], restore_now: Callable[[], object]) -> None:
    """Back up while four threads ask and tell, and restore; no tell of a trial asked after the backup counts."""
    study = create(address)
    valid = ask(study, 10)
    is_over = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not is_over.is_set():
                study.tell(ask(study, 1)[0], 0.5)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        while study.status().asked < 50:
            assert not failures
        back_up_now()
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert failures == []
    stale = ask(study, STALE_TRIALS)
    assert stale[-1].id - stale[0].id == STALE_TRIALS - 1
    open_store(address).close()
    restore_now()

    restored = dbcare.load_study("ads", address)
    restored.check()
    before = restored.status().asked
    assert 50 <= before < stale[0].id
    ask(restored, stale[-1].id - before)  # so that all numbers belong to trials again
    rewards = restored.status().counted, restored.status().held
    for trial in stale:
        with pytest.raises(StaleTrialError, match="restored from a backup"):
            restored.tell(trial, 100.0)
    with pytest.raises(StaleTrialError):
        restored.tell_many((trial, 100.0) for trial in stale)
    assert (restored.status().counted, restored.status().held) == rewards
    assert not any(row.reward == 100.0 for row in restored.trials())
    for _ in range(2):
        restored.tell_many((trial, 0.25) for trial in valid)
    assert [row.reward for row in restored.trials()][: len(valid)] == [0.25] * len(valid)
    restored.tell(stale[0].id, 100.0)  # negative control: a bare number is not compared
    assert any(row.reward == 100.0 for row in restored.trials())


def test_restoring_a_file_under_load(path: Path, address: str) -> None:
    backup = path.with_name("backup.db")
    check_restoring(address, lambda: back_up(address, backup), lambda: restore(address, backup))
    assert [file.name for file in path.parent.iterdir() if file.name.startswith(".")] == []


def test_restoring_postgresql_under_load(postgres: Server, tmp_path: Path) -> None:
    """By the commands that the page on deployment shows."""
    address, backup = postgres.create_database(), tmp_path / "studies.dump"

    def run(command: str, *arguments: str) -> None:
        subprocess.run([POSTGRES_BIN_PATH / command, *arguments], check=True, capture_output=True)

    check_restoring(
        address,
        lambda: run("pg_dump", "--format=custom", f"--file={backup}", f"--dbname={address}"),
        lambda: run("pg_restore", "--clean", "--if-exists", "--single-transaction", f"--dbname={address}", str(backup)),
    )


def test_the_page_on_deployment_shows_these_commands() -> None:
    page = (Path(__file__).parents[4] / "docs/deployment.md").read_text()
    assert "pg_dump --format=custom --file=" in page
    assert "pg_restore --clean --if-exists --single-transaction --dbname=" in page
    assert "dbcare storage backup " in page
    assert "dbcare storage restore " in page


def leave_as_killed(path: Path) -> None:
    """Leave the database as a server that is killed does: the latest changes are in its log."""
    for ending in ("", "-wal", "-shm"):
        shutil.copy(f"{path}{ending}", f"{path}.copy{ending}")
    open_store(f"sqlite:///{path}").close()
    for ending in ("", "-wal", "-shm"):
        os.replace(f"{path}.copy{ending}", f"{path}{ending}")
    assert os.stat(f"{path}-wal").st_size > 0


@pytest.mark.parametrize("damage", ["none", "file", "log", "missing"])
def test_a_killed_server_leaves_no_wrong_log(path: Path, address: str, damage: str) -> None:
    """Whatever became of the file, the backup is what is there afterwards, and the file before is kept."""
    study, backup = create(address), path.with_name("backup.db")
    study.tell(ask(study, 1)[0], 0.5)
    back_up(address, backup)
    ask(study, 100)
    leave_as_killed(path)
    if damage == "file":
        path.write_bytes(b"no database" * 1_000)
    elif damage == "log":
        shutil.copy(backup, path)  # what seems obvious, with the log of another file next to it
    elif damage == "missing":
        path.unlink()
    kept = restore(address, backup)
    assert (kept is None) == (damage == "missing")
    assert {file.name for file in path.parent.iterdir() if file.name.startswith(f"{path.name}-")} == set()
    restored = dbcare.load_study("ads", address)
    assert (restored.status().asked, restored.status().rewards) == (1, 1)
    assert restored.check() == 2
    assert ask(restored, 1)[0].id == 2
    if damage == "none":
        assert kept is not None
        assert dbcare.load_study("ads", f"sqlite:///{kept}").status().asked == 101
        open_store(f"sqlite:///{kept}").close()


def test_owner_and_mode_stay(path: Path, address: str) -> None:
    create(address)
    path.chmod(0o640)
    backup = back_up(address, path.with_name("backup.db"))
    assert stat.S_IMODE(backup.stat().st_mode) == 0o640
    backup.chmod(0o444)
    open_store(address).close()
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(path, NOBODY, NOBODY)
    restore(address, backup)
    restored = path.stat()
    assert stat.S_IMODE(restored.st_mode) == 0o640
    assert not is_root or (restored.st_uid, restored.st_gid) == (NOBODY, NOBODY)
    if is_root:
        os.chown(path.parent, NOBODY, NOBODY)
        path.unlink()
        restore(address, backup)
        assert path.stat().st_uid == NOBODY


def test_a_database_in_use_is_not_replaced(path: Path, address: str) -> None:
    study, backup = create(address), path.with_name("backup.db")
    back_up(address, backup)
    trial = ask(study, 1)[0]
    with pytest.raises(StorageError, match=r"studies\.db is open in another program, such as a server; stop it"):
        restore(address, backup)
    study.tell(trial, 0.5)
    assert study.status().rewards == 1
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "backup.db", "studies.db", "studies.db-shm", "studies.db-wal",
    ]  # fmt: skip


def test_what_is_no_backup_is_refused(path: Path, address: str) -> None:
    """And the database stays as it was."""
    study, good = create(address), path.with_name("good.db")
    ask(study, 200)
    back_up(address, good)
    with pytest.raises(StorageError, match="exists; choose another name for the backup"):
        back_up(address, good)
    open_store(address).close()
    before = hashlib.sha256(path.read_bytes()).digest()

    def damage(name: str, change: Callable[[Path], object]) -> Path:
        copy = path.with_name(name)
        shutil.copy(good, copy)
        change(copy)
        return copy

    def execute(copy: Path, *commands: str) -> None:
        with closing(sqlite3.connect(copy)) as connection:
            for command in commands:
                connection.execute(command)
            connection.commit()

    def cut(copy: Path) -> None:
        os.truncate(copy, copy.stat().st_size // 2)

    for backup, message in (
        (
            damage("layout.db", lambda copy: execute(copy, "UPDATE dbcare SET version = 99")),
            f"reads layout {LAYOUT} only",
        ),
        (damage("cut.db", cut), "is corrupted"),
        (damage("text.db", lambda copy: copy.write_text("x" * 5_000)), "is not an SQLite database"),
        (damage("empty.db", lambda copy: copy.write_bytes(b"")), "has no studies"),
        (path.with_name("none.db"), "does not exist; correct the path of the backup"),
        (path, "is the database itself"),
    ):
        with pytest.raises(StorageError, match=message) as refused:
            restore(address, backup)
        assert backup.name in str(refused.value)
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert not any(".before-restore-" in file.name or file.name.startswith(".") for file in path.parent.iterdir())
    with pytest.raises(StorageError, match="use pg_dump and pg_restore"):
        back_up("postgresql://me@host/studies", path.with_name("p.db"))


def test_the_commands(path: Path, address: str) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["storage", *arguments, "--storage", address])
        assert result.exit_code == 0, result.output
        return result.output.strip()

    create(address)
    backup = path.with_name("backup.db")
    assert run("backup", str(backup)) == str(backup)
    open_store(address).close()
    kept = Path(run("restore", str(backup)))
    assert kept.exists()
    assert kept.name.startswith("studies.db.before-restore-")
    assert dbcare.list_studies(address) == ["ads"]
