"""A study in a folder where another user may not write: reading works or says why not, and nothing is half-written."""

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import dbcare
from dbcare.studies.stores.open import open_store

OTHER_USER = 65534  # nobody: root may write despite the permissions
SCRIPT = f"""
import os, sys, dbcare
from dbcare.errors import StorageError
own, address = sys.argv[1:]
dbcare.create_study("s", ["A", "B"], cost=0.1, sigma=1.0, storage=own).ask()  # loads what is needed, as root
if os.geteuid() == 0:
    os.setuid({OTHER_USER})
def attempt(name, act):
    try:
        print(name, act())
    except StorageError as failure:
        print(name, "StorageError", failure)
attempt("read", lambda: dbcare.load_study("s", address).status().counted)
attempt("list", lambda: len(list(dbcare.load_study("s", address).trials())))
attempt("ask", lambda: dbcare.load_study("s", address).ask())
attempt("tell", lambda: dbcare.load_study("s", address).tell(3, 0.5))
attempt("create", lambda: dbcare.create_study("t", ["A", "B"], cost=0.1, sigma=1.0, storage=address))
attempt("new", lambda: dbcare.create_study("t", ["A", "B"], cost=0.1, sigma=1.0, storage=address + ".new"))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder that others may read."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


def try_everything(address: str, own: Path) -> dict[str, str]:
    """Use a study as another user; return what came of each attempt."""
    command = [sys.executable, "-c", SCRIPT, f"sqlite:///{own}", address]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60.0)
    assert result.returncode == 0, result.stderr
    return dict(line.split(" ", 1) for line in result.stdout.splitlines())


def list_files(folder: Path) -> dict[str, str]:
    """Return the hash of each file, except the index of the log, which readers use too."""
    files = {path.name: path for path in folder.iterdir() if not path.name.endswith("-shm")}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


REFUSED = r"StorageError sqlite:\S+live\.db is read-only; allow writing to it"
NOT_CREATED = (
    r"StorageError sqlite:\S+new cannot be opened for writing; check that its folder exists, and the permissions"
)


@pytest.mark.parametrize("file_mode", [0o444, 0o666])
@pytest.mark.parametrize("in_use", [False, True])
def test_a_folder_of_another_user(folder: Path, tmp_path: Path, in_use: bool, file_mode: int) -> None:
    """Reading works while the owner has the study open, since its log is there; writing, if the files allow that too.

    Without the log, SQLite would have to create one for reading too, and it may not.
    """
    address = f"sqlite:///{folder / 'live.db'}"
    study = dbcare.create_study("s", ["A", "B"], cost=1e-9, sigma=1.0, max_ahead=10, storage=address)
    for trial in study.ask(n=3, lease=None)[:2]:
        study.tell(trial, 0.25)
    if not in_use:
        open_store(address).close()
    for path in folder.iterdir():
        path.chmod(file_mode)
    folder.chmod(0o555)
    before = list_files(folder)
    answers = try_everything(address, tmp_path / "own.db")
    folder.chmod(0o755)
    may_write = in_use and file_mode == 0o666
    assert re.match("2$" if in_use else REFUSED, answers["read"])
    assert re.match("3$" if in_use else REFUSED, answers["list"])
    assert re.match(r"Trial\(id=4" if may_write else REFUSED, answers["ask"])
    assert re.match("None$" if may_write else REFUSED, answers["tell"])
    assert re.match("StoredStudy" if may_write else REFUSED, answers["create"])
    assert re.match(NOT_CREATED, answers["new"])
    assert may_write or list_files(folder) == before
    study.tell(3, 0.5)  # again, if the other user could tell it
    assert [row.reward for row in study.trials()][:3] == [0.25, 0.25, 0.5]
    study.check()
    open_store(address).close()
