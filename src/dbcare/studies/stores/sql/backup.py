"""Backups of an SQLite database: made while it is in use, and put in its place when nobody uses it."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from dbcare.base.files import check_path, replacing
from dbcare.errors import StorageError
from dbcare.studies.stores.sql import tables
from dbcare.studies.stores.sql.connections import parse_address
from dbcare.studies.stores.sql.errors import show_url, translate_error
from dbcare.studies.stores.sql.sqlite_file import SqliteFile, is_busy

WAIT_SECONDS = 5.0  # for a program that has the database open
UNUSABLE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


def back_up(address: str, target: str | Path) -> Path:
    """Write a backup of an SQLite database to a new file, whole or not at all, and return its path.

    Others may ask and tell meanwhile; the backup is the database as of one moment.
    """
    source, path = _find_file(address), check_path(target)
    if path.exists():
        raise StorageError(f"{path} exists; choose another name for the backup, or remove that file.")
    if not os.path.exists(source.path):
        raise StorageError(f"{show_url(source.url)} does not exist; correct the address.")
    with replacing(path) as draft, _translating(source.url):
        _copy(source.path, draft, show_url(source.url))
        draft.chmod(stat.S_IMODE(os.stat(source.path).st_mode))
    _flush(path.parent)
    return path


def restore(address: str, backup: str | Path) -> Path | None:
    """Put a backup in the place of an SQLite database that nobody uses, whole or not at all.

    Owner and mode stay as they are; a new file gets the owner of its folder. Return the path of a file with the
    database that was there before; None if there was none.
    """
    file, path = _find_file(address), check_path(backup)
    database = Path(file.path)
    if not path.exists():
        raise StorageError(f"{path} does not exist; correct the path of the backup.")
    existed = database.exists()
    if existed and path.samefile(database):
        raise StorageError(f"{path} is the database itself; pass the path of a backup.")
    kept = Path(f"{database}.before-restore-{time.time_ns()}")
    with ExitStack() as until_it_is_there, replacing(database) as draft:
        with _translating(file.url.set(database=str(path))):
            _copy(str(path), draft, str(path))
        with _translating(file.url):
            _adopt(draft, database if existed else database.parent, with_mode=existed)
            until_it_is_there.enter_context(_closed_to_others(file))
        if existed:
            os.link(database, kept)
        for ending in ("-wal", "-journal"):  # of a damaged or missing database: SQLite would apply them to the new one
            if os.path.exists(f"{database}{ending}"):
                os.replace(f"{database}{ending}", f"{kept}{ending}")
        Path(file.index_path).unlink(missing_ok=True)
    _flush(database.parent)
    return kept if existed else None


def _find_file(address: str) -> SqliteFile:
    url = parse_address(address)
    if url.get_backend_name() != "sqlite":
        raise StorageError(
            f"{show_url(url)} is not an SQLite database; for PostgreSQL, use pg_dump and pg_restore, as the page on "
            "deployment says."
        )
    return SqliteFile(url)


@contextmanager
def _translating(url: sa.URL) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as failure:
        raise translate_error(url, failure, sqlite3.DataError) from failure


def _connect(path: str | Path, timeout: float = WAIT_SECONDS) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=timeout, isolation_level=None)


def _copy(source: str, draft: Path, shown: str) -> None:
    """Copy a database into one file without a log, if it is sound and its tables have the layout of this dbcare."""
    draft.touch(mode=0o600)  # it has hashes of keys
    with closing(_connect(source)) as original, closing(_connect(draft)) as copy:
        original.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        problems = [row[0] for row in copy.execute("PRAGMA integrity_check")]
    if problems != ["ok"]:
        raise StorageError(f"{shown} is corrupted ({problems[0]}); use another backup.")
    engine = sa.create_engine("sqlite://", creator=lambda: _connect(draft))
    try:
        with engine.connect() as connection:
            if not tables.exist(connection, shown):
                raise StorageError(f"{shown} has no studies; use the backup of a database of dbcare.")
    finally:
        engine.dispose()
    _flush(draft)


def _adopt(draft: Path, model: Path, *, with_mode: bool) -> None:
    """Give a file the owner of another file or folder, and the mode of a file."""
    own, wanted = draft.stat(), model.stat()
    if (own.st_uid, own.st_gid) != (wanted.st_uid, wanted.st_gid) and (with_mode or os.geteuid() == 0):
        try:
            os.chown(draft, wanted.st_uid, wanted.st_gid)
        except PermissionError:
            raise StorageError(
                f"{model} belongs to user {wanted.st_uid} and group {wanted.st_gid}; restore as that user, or as root."
            ) from None
    if with_mode:
        draft.chmod(stat.S_IMODE(wanted.st_mode))


@contextmanager
def _closed_to_others(file: SqliteFile) -> Iterator[None]:
    """Have a database to oneself, with everything in the file and no log; a damaged one cannot be used by anyone."""
    if not os.path.exists(file.path):
        yield
        return
    with closing(_connect(file.path)) as connection:
        try:
            connection.execute("PRAGMA journal_mode = DELETE")  # refused while anybody has the log open
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as failure:
            if is_busy(failure):
                raise StorageError(
                    f"{show_url(file.url)} is open in another program, such as a server; stop it and retry."
                ) from None
            if not failure.sqlite_errorname.startswith(UNUSABLE):
                raise
            connection.close()
        yield


def _flush(path: Path) -> None:
    """Have the disk keep a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
