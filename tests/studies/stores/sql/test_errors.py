"""Databases that are full, locked, read-only, corrupted, foreign or newer: the error is clear, and nothing is lost."""

import hashlib
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import dbcare
from dbcare import Study
from dbcare.errors import StorageError, StudyNotFoundError
from dbcare.studies.stores.open import open_store
from dbcare.studies.stores.sql.store import SqlStore
from dbcare.studies.stores.sql.tables import LAYOUT
from tests.helpers.dbcare_command import run_dbcare
from tests.helpers.postgres import Server
from tests.helpers.prepared_process import run_code

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
    """Run code in a process of its own and return its output."""
    result = run_code(code)
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


def test_another_layout_is_left_unchanged(study: Study, path: Path) -> None:
    open_store(f"sqlite:///{path}?timeout=0.5").close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE dbcare SET version = 99")
        connection.execute("DROP TABLE summaries")
        connection.commit()
        connection.execute("PRAGMA journal_mode = DELETE")
    before = hash_file(path)
    with pytest.raises(
        StorageError,
        match=rf"live\.db has layout 99 of the tables, but this dbcare reads layout {LAYOUT} only; open it with",
    ):
        SqlStore(f"sqlite:///{path}")
    assert hash_file(path) == before


def test_another_layout_in_postgresql(postgres: Server) -> None:
    address = postgres.create_database()
    SqlStore(address).close()
    with closing(SqlStore(address)) as store, store.engines.get().writing.begin() as connection:
        connection.exec_driver_sql("UPDATE dbcare SET version = 99")
    with pytest.raises(StorageError, match="has layout 99 of the tables"):
        SqlStore(address)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_running_process_stops_writing_to_another_layout(
    database: str, path: Path, request: pytest.FixtureRequest
) -> None:
    """As after an upgrade by another server: nothing is written, and the study goes on once the layout is right."""
    postgres = None if database == "sqlite" else request.getfixturevalue("postgres")
    address = f"sqlite:///{path}" if postgres is None else postgres.create_database()
    store = open_store(address, create=True)
    assert isinstance(store, SqlStore)
    study = dbcare.create_study("before", ["A", "B"], cost=1e-9, sigma=1.0, storage=address)
    told, waiting = study.ask(2)
    study.tell(told, 0.5)

    def set_layout(number: int) -> None:
        with store.engines.begin(write=True) as connection:
            connection.exec_driver_sql(f"UPDATE dbcare SET version = {number}")

    set_layout(99)
    attempts: list[Callable[[], object]] = [
        study.ask,
        lambda: study.tell(waiting, 0.5),
        study.pause,
        study.status,
        lambda: dbcare.create_study("new", ["A", "B"], cost=1e-9, sigma=1.0, storage=store),
        lambda: store.delete("before"),
    ]
    for attempt in attempts:
        with pytest.raises(StorageError, match=f"has layout 99 of the tables, but this dbcare reads layout {LAYOUT}"):
            attempt()
    set_layout(LAYOUT)
    assert (study.status().asked, study.status().waiting) == (2, 1)
    study.tell(waiting, 0.5)
    assert dbcare.list_studies(address) == ["before"]
    store.close()


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


def test_a_file_that_is_moved_and_moved_back(study: Study, path: Path) -> None:
    """Whatever is done meanwhile, no file is created in its place, and the log with the latest rewards stays."""
    address, away = f"sqlite:///{path}?timeout=0.5", path.with_name("away.db")
    fill(study, 30)
    path.rename(away)
    log = path.with_name("live.db-wal")
    assert log.stat().st_size > 0
    attempts = (study.should_stop, study.ask, lambda: study.tell(1, 0.25), lambda: dbcare.load_study("s", address))
    for attempt in attempts:
        with pytest.raises(StorageError, match="was moved or deleted while it was in use; move it back and retry"):
            attempt()
    create = "import dbcare; dbcare.create_study('t', ['A', 'B'], cost=1e-9, sigma=1.0, storage={!r})"
    for command in (("status", "s"), ("studies",), ("export", "s"), ("storage", "check"), ("ask", "s"), ("stop", "s")):
        result = run_dbcare(*command, "--storage", f"sqlite:///{path}")
        assert result.returncode == 2
        assert "live.db does not exist; create a study there, or correct the address." in result.stderr
    with pytest.raises(AssertionError, match=r"live\.db is missing, but"):
        run_python(create.format(f"sqlite:///{path}"))  # which would remove its log
    with pytest.raises(StorageError, match=r"live\.db-wal, with its latest changes, is there; move the file back"):
        dbcare.create_study("t", ["A", "B"], cost=1e-9, sigma=1.0, storage=address)
    assert not path.exists()
    away.rename(path)
    assert count_told(study) == count_told(dbcare.load_study("s", f"sqlite:///{path}")) == 32
    fill(study, 1)
    study.check()
    open_store(f"sqlite:///{path}").close()


def test_a_file_that_is_moved_after_a_crash(path: Path) -> None:
    """The log outlives its process; nothing that a stranger to the study does removes it."""
    run_python(f"""
import os, signal, dbcare
study = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=40, storage="sqlite:///{path}")
study.tell_many((trial, 0.25) for trial in study.ask(30))
os._exit(0)
""")
    away = path.rename(path.with_name("away.db"))
    assert run_dbcare("studies", "--storage", f"sqlite:///{path}").returncode == 2
    keys = run_dbcare("keys", "create", "--name", "me", "--role", "admin", "--storage", f"sqlite:///{path}")
    assert "is missing, but" in keys.stderr
    away.rename(path)
    assert count_told(dbcare.load_study("s", f"sqlite:///{path}")) == 30
    open_store(f"sqlite:///{path}").close()


def test_a_file_that_is_replaced(study: Study, path: Path) -> None:
    """Next to the log of the old file, a new one is not opened; without that log, it is taken as it is."""
    address = f"sqlite:///{path}?timeout=0.5"
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(path.with_name("copy.db"))) as target:
        source.backup(target)
    fill(study, 10)
    path.rename(old := path.with_name("old.db"))
    path.with_name("copy.db").rename(path)
    for attempt in (study.status, study.ask, lambda: study.tell(1, 0.25)):
        with pytest.raises(StorageError, match=r"was replaced while it was in use, and .*live\.db-wal belongs to"):
            attempt()
    path.rename(path.with_name("copy.db"))
    old.rename(path)  # as if nothing had happened
    assert count_told(study) == 12
    open_store(address).close()  # empties the log
    path.rename(old)
    path.with_name("copy.db").rename(path)
    assert count_told(study) == 2
    fill(study, 1)
    study.check()


def test_a_disk_that_is_unmounted(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run([*MOUNT, str(disk)], capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a disk")
    address = f"sqlite:///{disk / 'live.db'}"
    try:
        study = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=10, storage=address)
        fill(study, 3)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        subprocess.run(["mount", "--move", str(disk), str(elsewhere)], check=True)
        for attempt in (study.ask, study.should_stop):
            with pytest.raises(StorageError, match="was moved or deleted while it was in use"):
                attempt()
        assert list(disk.iterdir()) == []
        subprocess.run(["mount", "--move", str(elsewhere), str(disk)], check=True)
        fill(study, 1)
        assert count_told(study) == 4
    finally:
        open_store(address).close()
        subprocess.run(["umount", str(disk)], check=True)


def test_a_file_removed_while_in_use(study: Study, path: Path) -> None:
    """Nothing is written to the removed file; once its log is gone too, a study can be created there again."""
    address = f"sqlite:///{path}?timeout=0.5"
    path.unlink()
    with pytest.raises(StorageError, match="was moved or deleted while it was in use"):
        study.ask()
    for leftover in path.parent.glob("live.db-*"):
        leftover.unlink()
    with pytest.raises(StorageError, match="was moved or deleted while it was in use"):
        study.ask()
    with pytest.raises(StorageError, match="was moved or deleted while it was in use"):
        open_store(address).create("t", {}, 0.0)  # a store that was open does not create its file
    recreated = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, storage=address)
    fill(recreated, 1)
    with closing(SqlStore(f"sqlite:///{path}")) as store, store.session("s", write=False) as session:
        assert len(session.events_after(0)) == 2
    with pytest.raises(StudyNotFoundError, match="was deleted and re-created; load it again"):
        study.ask()


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(
        StorageError, match="cannot be opened for writing; check that its folder exists, and the permissions of both"
    ):
        SqlStore(f"sqlite:///{tmp_path / 'nowhere' / 'live.db'}")
