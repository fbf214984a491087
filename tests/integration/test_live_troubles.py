"""Databases that are full, locked, read-only, damaged, foreign or newer: a clear error, and nothing lost."""

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
from dbcare.live.stores.sql.store import SqlStore
from dbcare.live.stores.open import open_store

OTHER_USER = 65534  # nobody
MOUNT = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "live.db"


@pytest.fixture
def study(path: Path) -> Iterator[Study]:
    """A study with two answers, in SQLite; half a second of patience."""
    address = f"sqlite:///{path}?timeout=0.5"
    study = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=10, storage=address)
    fill(study, 2)
    yield study
    open_store(address).close()


def fill(study: Study, answers: int) -> None:
    for _ in range(answers):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, 0.25)


def answers(study: Study) -> int:
    return sum(row.status == "told" for row in study.trials())


def python(code: str) -> str:
    """What a child says."""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_locked_database(study: Study, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match=r"live\.db\?timeout=0\.5 must be free in time but another process"):
            study.ask()
        assert study.status().counted == 2  # reading goes on
    fill(study, 1)
    assert study.status().counted == 3


def test_a_locked_row_of_postgresql(postgres: Server) -> None:
    address = postgres.new_database()
    held = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=10, storage=address)
    hasty = f"{address}&options=-c%20lock_timeout%3D100"
    waiting = dbcare.load_study("s", hasty)
    with (
        open_store(address).session("s", write=True),
        pytest.raises(StorageError, match="must be free in time but another process holds it"),
    ):
        waiting.ask()
    fill(waiting, 1)
    assert held.status().counted == 1
    open_store(address).close()
    open_store(hasty).close()


def test_a_file_that_may_not_grow(study: Study, path: Path) -> None:
    """As a quota would have it: the answers until then are stored, and it goes on once there is room."""
    said = python(f"""
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
    told, message = said.split(" ", 1)
    assert "live.db must be on a disk that reads and writes but this one fails: see to it and do it again." in message
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
        with pytest.raises(StorageError, match="must have room but its disk is full: make room and do it again"):
            fill(study, 10_000)
        told = answers(study)
        ballast.unlink()
        fill(study, 1)
        assert answers(study) == told + 1 > 2
        study.check()
    finally:
        open_store(address).close()
        subprocess.run(["umount", str(disk)], check=True)


def test_a_database_opened_for_reading_only(study: Study, path: Path) -> None:
    address = f"sqlite:///file:{path}?mode=ro&uri=true"
    reader = dbcare.load_study("s", address)
    assert reader.status().counted == 2
    with pytest.raises(StorageError, match="must be writable but is read-only: allow writing to it"):
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
        said = python(f"""
import os, dbcare
from dbcare.errors import StorageError
dbcare.create_study("s", ["A", "B"], cost=0.1, sigma=1.0, storage="sqlite:///{mine}").ask()
if os.geteuid() == 0:
    os.setuid({OTHER_USER})  # root may write whatever the permissions say
try:
    dbcare.load_study("s", "sqlite:///{path}").ask()
except StorageError as failure:
    print(failure)
""")
        assert "live.db must be " in said
        assert "read-only" in said or "opened and written, as must its folder" in said
        path.chmod(0o644)
        fill(study, 1)
        assert study.status().counted == 3
        open_store(f"sqlite:///{path}").close()


def test_a_newer_version_is_left_as_it_is(study: Study, path: Path) -> None:
    open_store(f"sqlite:///{path}?timeout=0.5").close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE dbcare SET version = 7")
        connection.execute("DROP TABLE summaries")
        connection.commit()
        connection.execute("PRAGMA journal_mode = DELETE")
    before = digest(path)
    with pytest.raises(StorageError, match=r"live\.db must have version 1 of the tables but got 7: use the dbcare"):
        SqlStore(f"sqlite:///{path}")
    assert digest(path) == before


def test_a_newer_version_in_postgresql(postgres: Server) -> None:
    address = postgres.new_database()
    SqlStore(address).close()
    with closing(SqlStore(address)) as store, store.engines.get(write=True).begin() as connection:
        connection.exec_driver_sql("UPDATE dbcare SET version = 7")
    with pytest.raises(StorageError, match="must have version 1 of the tables but got 7"):
        SqlStore(address)


def test_a_database_of_another_application(path: Path) -> None:
    """Refused where names clash, and left as it is; shared where they do not."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE events (title TEXT)")
    before = digest(path)
    with pytest.raises(StorageError, match="must be empty or made by dbcare but got tables of something else called"):
        SqlStore(f"sqlite:///{path}")
    assert digest(path) == before
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE events RENAME TO concerts")
    with closing(SqlStore(f"sqlite:///{path}")) as store:
        assert store.names() == []


@pytest.mark.parametrize("content", [b"Dear diary,\n" * 1000, bytes(range(256)) * 64])
def test_a_file_that_is_no_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"live\.db must be a database of SQLite but is another kind of file: give"):
        SqlStore(f"sqlite:///{path}")
    assert path.read_bytes() == content


def test_a_damaged_file(study: Study, path: Path) -> None:
    """Told so by reading it; a backup in its place works at once."""
    fill(study, 300)
    open_store(f"sqlite:///{path}?timeout=0.5").close()
    shutil.copy(path, backup := path.with_name("backup.db"))
    content = bytearray(path.read_bytes())
    content[4096 * 2 : -4096] = b"\xa5" * (len(content) - 4096 * 3)
    path.write_bytes(content)
    with pytest.raises(StorageError, match="must be a sound database but is damaged: put a backup in its place"):
        dbcare.load_study("s", f"sqlite:///{path}").check()
    open_store(f"sqlite:///{path}").close()
    for leftover in path.parent.glob("live.db-*"):
        leftover.unlink()
    backup.replace(path)
    assert study.status().counted == 302
    study.check()


@pytest.mark.parametrize("change", ["UPDATE events SET kind = 'tolled'", "UPDATE studies SET settings = '{'"])
def test_stored_nonsense(study: Study, path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    with pytest.raises(StorageError, match="must be a sound database but is damaged: put a backup in its place"):
        dbcare.load_study("s", f"sqlite:///{path}?timeout=0.5").status()


def test_a_file_that_was_removed_meanwhile(study: Study, path: Path) -> None:
    """Nothing is written to a file that nobody can see any more."""
    path.unlink()
    for leftover in path.parent.glob("live.db-*"):
        leftover.unlink()
    with pytest.raises(StorageError, match="must have the tables of dbcare but they are gone: put a backup"):
        study.ask()
    again = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, storage=f"sqlite:///{path}?timeout=0.5")
    fill(again, 1)
    with closing(SqlStore(f"sqlite:///{path}")) as store, store.session("s", write=False) as session:
        assert len(session.events_after(0)) == 2


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="must be a file that can be opened and written, as must its folder"):
        SqlStore(f"sqlite:///{tmp_path / 'nowhere' / 'live.db'}")
