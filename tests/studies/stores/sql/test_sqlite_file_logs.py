"""A write-ahead log that is deleted while it is in use: what was acknowledged stays."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import dbcare
from dbcare.errors import StorageError
from dbcare.studies.stores.open import open_store

DELETIONS = 20
MAX_WAIT_SECONDS = 60.0
# Tells rewards one by one, and says which are acknowledged.
TELLER = """
import sys, dbcare
study = dbcare.load_study("s", sys.argv[1])
while True:
    try:
        trial = study.ask(lease=None)
        study.tell(trial, 0.25)
    except dbcare.errors.StorageError as error:
        if "was replaced just now" not in str(error) and "was deleted while" not in str(error):
            raise
    else:
        print(trial.id, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "live.db"


def make_study(path: Path) -> dbcare.Study:
    return dbcare.create_study(
        "s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=100_000, not_before=100_000, storage=f"sqlite:///{path}"
    )


def tell(study: dbcare.Study, trials: int) -> None:
    for trial in study.ask(trials, lease=None):
        study.tell(trial, 0.25)


def count_told(path: Path) -> int:
    """Count the rewards that a program finds which opens the file only now."""
    with closing(open_store(f"sqlite:///{path}")):
        study = dbcare.load_study("s", f"sqlite:///{path}")
        study.check()
        return sum(row.status == "told" for row in study.trials())


class Teller:
    """A process that tells, and the trials that were acknowledged to it."""

    def __init__(self, path: Path) -> None:
        self.acknowledged = path.with_name(f"acknowledged-{time.time_ns()}")
        with self.acknowledged.open("wb") as output:
            command = [sys.executable, "-c", TELLER, f"sqlite:///{path}"]
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE)

    def count(self) -> int:
        return self.acknowledged.read_bytes().count(b"\n")

    def wait_for_another(self) -> None:
        """Wait until another reward is acknowledged than those so far."""
        before, until = self.count(), time.monotonic() + MAX_WAIT_SECONDS
        while self.count() <= before:
            assert self.process.poll() is None, self.process.communicate()[1].decode()
            assert time.monotonic() < until
            time.sleep(0.001)

    def kill(self) -> set[int]:
        """Kill the process; return the trials that were acknowledged."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        return {int(line) for line in self.acknowledged.read_text().split("\n")[:-1]}


@contextmanager
def run_tellers(path: Path, processes: int) -> Iterator[list[Teller]]:
    tellers = [Teller(path) for _ in range(processes)]
    try:
        yield tellers
    finally:
        for teller in tellers:
            teller.process.kill()
            teller.process.wait()


@pytest.mark.parametrize(("processes", "pattern"), [(1, "live.db-wal"), (2, "live.db-wal"), (1, "live.db-*")])
def test_the_log_is_deleted_at_random_moments(path: Path, processes: int, pattern: str) -> None:
    make_study(path)
    open_store(f"sqlite:///{path}").close()  # only the tellers have the log open
    moments = random.Random(1)
    with run_tellers(path, processes) as tellers:
        for teller in tellers:
            teller.wait_for_another()
        for _ in range(DELETIONS):
            time.sleep(moments.uniform(0.0, 0.05))
            for file in path.parent.glob(pattern):
                file.unlink()
            for teller in tellers:
                teller.wait_for_another()
        acknowledged = set.union(*(teller.kill() for teller in tellers))
    assert len(acknowledged) >= processes * DELETIONS
    study = dbcare.load_study("s", f"sqlite:///{path}")
    assert acknowledged <= {row.trial for row in study.trials() if row.status == "told"}
    study.check()


def test_a_reader_saves_what_a_deleted_log_holds(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    study = make_study(path)
    tell(study, 30)
    path.with_name("live.db-wal").unlink()
    assert study.status().counted == 30
    assert "live.db-wal was deleted while in use. Everything is saved" in caplog.text
    assert sqlite_alone(path) == 60
    assert count_told(path) == 30


def sqlite_alone(path: Path) -> int:
    """Count the events in a copy of the file without its log."""
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    code = f"import sqlite3; print(sqlite3.connect({str(copy)!r}).execute('SELECT count(*) FROM events').fetchone()[0])"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)


def test_studies_and_keys_that_are_created_after_the_deletion_stay(path: Path) -> None:
    study = make_study(path)
    tell(study, 3)
    path.with_name("live.db-wal").unlink()
    dbcare.create_study("t", ["A", "B"], cost=1e-9, sigma=1.0, storage=f"sqlite:///{path}")
    code = f"import dbcare; print(dbcare.list_studies('sqlite:///{path}'))"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert listed == "['s', 't']\n"


def test_another_program_has_begun_a_new_log(path: Path) -> None:
    """Then nothing is mixed: what the first program had stored goes to a file of its own."""
    study = make_study(path)
    tell(study, 30)
    for leftover in path.parent.glob("live.db-*"):
        leftover.unlink()
    other = "import sys, sqlite3, time; c = sqlite3.connect(sys.argv[1]); c.execute('CREATE TABLE t (x)'); c.commit(); "
    other += "print('ready', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", other, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with pytest.raises(StorageError, match=r"another program has begun a new one\. What this program had stored"):
            tell(study, 1)
        process.kill()
    (rescued,) = path.parent.glob("live.db.rescued-*")
    assert count_told(rescued) == 30


def test_the_log_was_deleted_and_everyone_is_gone(path: Path) -> None:
    """What was only in the log is lost: that is said, rather than an empty list of studies."""
    code = f"""
import os, dbcare
study = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=9, storage="sqlite:///{path}")
os.remove("{path}-wal")
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    with pytest.raises(StorageError, match=r"live\.db-wal, with the latest changes, was deleted while .* was in use"):
        dbcare.list_studies(f"sqlite:///{path}")
    path.with_name("live.db-shm").unlink()
    with pytest.raises(StorageError, match="has no studies"):
        dbcare.list_studies(f"sqlite:///{path}")
