"""Databases that are full, locked, read-only, corrupted, foreign or newer: the error is clear, and nothing is lost."""

import hashlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers.postgres import Server

import dbcare
from dbcare import Study
from dbcare.errors import StorageError
from dbcare.live.stores.open import open_store
from dbcare.live.stores.sql.store import SqlStore

OTHER_USER = 65534  # nobody
MOUNT = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "live.db"


@pytest.fixture
def study(path: Path) -> Iterator[Study]:
    """Create a study in SQLite with two rewards; it waits half a second for a lock."""
    address = f"sqlite:///{path}?timeout=0.5"
    study = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=10, storage=address)
    fill(study, 2)
    yield study
    open_store(address).close()


def fill(study: Study, trials: int) -> None:
    """Ask and tell this many trials."""
    for _ in range(trials):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, 0.25)


def count_told(study: Study) -> int:
    """Return the number of rewards on record."""
    return sum(row.status == "told" for row in study.trials())


def run_python(code: str) -> str:
    """Run code in a child process and return its output."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_locked_database(study: Study, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match=r"live\.db\?timeout=0\.5 is locked by another process; retry"):
            study.ask()
        assert study.status().counted == 2  # reading still works
    fill(study, 1)
    assert study.status().counted == 3


def test_a_locked_row_of_postgresql(postgres: Server) -> None:
    address = postgres.create_database()
    held = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=10, storage=address)
    hasty = f"{address}&options=-c%20lock_timeout%3D100"
    waiting = dbcare.load_study("s", hasty)
    with (
        open_store(address).session("s", write=True),
        pytest.raises(StorageError, match="is locked by another process; retry"),
    ):
        waiting.ask()
    fill(waiting, 1)
    assert held.status().counted == 1
    open_store(address).close()
    open_store(hasty).close()


def test_a_file_that_may_not_grow(study: Study, path: Path) -> None:
    """A quota does this: rewards until then are stored, and the study continues once there is space."""
    output = run_python(f"""
import resource, dbcare
from dbcare.errors import StorageError
study = dbcare.load_study("s", "sqlite:///{path}")
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
told = 2
try:
    while told < 10_000:
        study.tell(study.ask(), 0.25)
        told += 1
except StorageError as failure:
    print(told, failure)
""")
    told, message = output.split(" ", 1)
    assert "live.db is on a disk that fails; check the disk and retry." in message
    assert study.status().counted == int(told) < 10_000
    study.check()
    fill(study, 5)


def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run([*MOUNT, str(disk)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    address = f"sqlite:///{disk / 'live.db'}"
    try:
        study = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=10, storage=address)
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(200_000))
        with pytest.raises(StorageError, match="is on a full disk; free some space and retry"):
            fill(study, 10_000)
        told = count_told(study)
        ballast.unlink()
        fill(study, 1)
        assert count_told(study) == told + 1 > 2
        study.check()
    finally:
        open_store(address).close()
        subprocess.run(["umount", str(disk)], check=True)


def test_a_database_opened_for_reading_only(study: Study, path: Path) -> None:
    address = f"sqlite:///file:{path}?mode=ro&uri=true"
    reader = dbcare.load_study("s", address)
    assert reader.status().counted == 2
    with pytest.raises(StorageError, match="is read-only; allow writing to it"):
        reader.ask()
    open_store(address).close()
    fill(study, 1)


def test_a_file_without_permission_to_write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path, mine = Path(folder) / "live.db", Path(folder) / "mine.db"
        study = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, storage=f"sqlite:///{path}")
        fill(study, 2)
        open_store(f"sqlite:///{path}").close()
        path.chmod(0o444)
        output = run_python(f"""
import os, dbcare
from dbcare.errors import StorageError
dbcare.create_study("s", ["A", "B"], cost=0.1, sigma=1.0, storage="sqlite:///{mine}").ask()
if os.geteuid() == 0:
    os.setuid({OTHER_USER})  # root may write despite the permissions
try:
    dbcare.load_study("s", "sqlite:///{path}").ask()
except StorageError as failure:
    print(failure)
""")
        assert "live.db " in output
        assert "is read-only" in output or "cannot be opened for writing" in output
        path.chmod(0o644)
        fill(study, 1)
        assert study.status().counted == 3
        open_store(f"sqlite:///{path}").close()


def test_a_newer_version_is_left_unchanged(study: Study, path: Path) -> None:
    open_store(f"sqlite:///{path}?timeout=0.5").close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE dbcare SET version = 7")
        connection.execute("DROP TABLE summaries")
        connection.commit()
        connection.execute("PRAGMA journal_mode = DELETE")
    before = hash_file(path)
    with pytest.raises(StorageError, match=r"live\.db has version 7 of the tables, and this dbcare reads version 1"):
        SqlStore(f"sqlite:///{path}")
    assert hash_file(path) == before


def test_a_newer_version_in_postgresql(postgres: Server) -> None:
    address = postgres.create_database()
    SqlStore(address).close()
    with closing(SqlStore(address)) as store, store.engines.get(write=True).begin() as connection:
        connection.exec_driver_sql("UPDATE dbcare SET version = 7")
    with pytest.raises(StorageError, match="has version 7 of the tables"):
        SqlStore(address)


def test_a_database_of_another_application(path: Path) -> None:
    """It is refused and left unchanged if names of tables clash, and shared if they do not."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE events (title TEXT)")
    before = hash_file(path)
    with pytest.raises(StorageError, match="already has tables named events that dbcare did not create"):
        SqlStore(f"sqlite:///{path}")
    assert hash_file(path) == before
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE events RENAME TO concerts")
    with closing(SqlStore(f"sqlite:///{path}")) as store:
        assert store.names() == []


@pytest.mark.parametrize("content", [b"Dear diary,\n" * 1000, bytes(range(256)) * 64])
def test_a_file_that_is_not_a_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"live\.db is not an SQLite database; use another file"):
        SqlStore(f"sqlite:///{path}")
    assert path.read_bytes() == content


def test_a_corrupted_file(study: Study, path: Path) -> None:
    """Reading it is an error; a restored backup works at once."""
    fill(study, 300)
    open_store(f"sqlite:///{path}?timeout=0.5").close()
    shutil.copy(path, backup := path.with_name("backup.db"))
    content = bytearray(path.read_bytes())
    content[4096 * 2 : -4096] = b"\xa5" * (len(content) - 4096 * 3)
    path.write_bytes(content)
    with pytest.raises(StorageError, match="is corrupted; restore a backup"):
        dbcare.load_study("s", f"sqlite:///{path}").check()
    open_store(f"sqlite:///{path}").close()
    for leftover in path.parent.glob("live.db-*"):
        leftover.unlink()
    backup.replace(path)
    assert study.status().counted == 302
    study.check()


@pytest.mark.parametrize("change", ["UPDATE events SET kind = 'tolled'", "UPDATE studies SET settings = '{'"])
def test_corrupted_contents(study: Study, path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    with pytest.raises(StorageError, match="is corrupted; restore a backup"):
        dbcare.load_study("s", f"sqlite:///{path}?timeout=0.5").status()


def test_a_file_removed_while_in_use(study: Study, path: Path) -> None:
    """Nothing is written to the removed file."""
    path.unlink()
    for leftover in path.parent.glob("live.db-*"):
        leftover.unlink()
    with pytest.raises(StorageError, match="has lost its tables; restore a backup"):
        study.ask()
    recreated = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, storage=f"sqlite:///{path}?timeout=0.5")
    fill(recreated, 1)
    with closing(SqlStore(f"sqlite:///{path}")) as store, store.session("s", write=False) as session:
        assert len(session.events_after(0)) == 2


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(
        StorageError, match="cannot be opened for writing; check that its folder exists, and the permissions of both"
    ):
        SqlStore(f"sqlite:///{tmp_path / 'nowhere' / 'live.db'}")
