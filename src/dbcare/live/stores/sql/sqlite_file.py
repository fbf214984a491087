"""An SQLite file: opened only where it exists, noticed when it is moved or replaced, and written by one at a time."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import quote

import sqlalchemy as sa

from dbcare.errors import StorageError
from dbcare.live.forks import renew_after_fork
from dbcare.live.stores.sql.errors import show_url

DEFAULT_TIMEOUT_SECONDS = 60.0  # to wait until another process ends its session
RETRY_SECONDS = 0.0005  # SQLite's own retries back off, and so rarely find a busy file free

FileIdentity = tuple[int, int]


class SqliteFile:
    """The file at an address, and this process's connection for writing to it.

    The write-ahead log next to the file (-wal) holds the latest commits. Creating a file next to a log removes the log,
    and opening another file there mixes both up; so neither is done while the log of a missing file is there.
    """

    def __init__(self, url: sa.URL) -> None:
        self.url = url
        self.timeout = _read_timeout(url)
        self._writer: sqlite3.Connection | None = None
        self._inherited: object = None
        self._opened: tuple[FileIdentity | None, FileIdentity | None] | None = None  # file and log, once seen
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Start with a fresh lock and connection in a child process.

        The parent's connection must not be used there, and not be closed either, which could remove the log.
        """
        self.lock = threading.Lock()
        self._inherited = (self._inherited, self._writer)
        self._writer = None

    @property
    def path(self) -> str:
        """Where the file is."""
        name = self.url.database or ""
        return name.removeprefix("file:") if "uri" in self.url.query else name

    @property
    def log_path(self) -> str:
        """Where its write-ahead log is."""
        return f"{self.path}-wal"

    def connect(self) -> sqlite3.Connection:
        """Open the file, which must exist, with settings under which nothing acknowledged is lost."""
        connection = self._connect("rw")
        connection.isolation_level = None  # transactions are begun explicitly
        for setting in ("synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("PRAGMA schema_version")  # opens the log
        found = _identify(self.path), _identify(self.log_path)
        if self._opened is not None and found[0] != self._opened[0]:
            connection.close()
            raise StorageError(f"{show_url(self.url)} was replaced just now; retry.")
        self._opened = found
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        if "uri" in self.url.query:
            options = {name: str(value) for name, value in self.url.query.items() if name not in ("uri", "timeout")}
            options.setdefault("mode", mode)
            address = f"{self.url.database}?{'&'.join(f'{name}={value}' for name, value in options.items())}"
        else:
            address = f"file:{quote(self.path)}?mode={mode}"
        return sqlite3.connect(address, timeout=self.timeout, uri=True, check_same_thread=False)

    def check(self) -> bool:
        """Return whether the file is the one that was opened; raise if using what is there now could lose data."""
        if self._opened is None:
            if not os.path.exists(self.path):
                raise StorageError(
                    f"{show_url(self.url)} does not exist; create a study there, or correct the address."
                )
            return True
        found = _identify(self.path)
        if found == self._opened[0]:
            return True
        if found is None:
            raise StorageError(
                f"{show_url(self.url)} was moved or deleted while it was in use; move it back and retry."
            )
        if _identify(self.log_path) is not None and _identify(self.log_path) == self._opened[1]:
            raise StorageError(
                f"{show_url(self.url)} was replaced while it was in use, and {self.log_path} belongs to the file that "
                "was there before; move that file back, or stop all programs that use it and delete the log."
            )
        return False

    def create(self) -> bool:
        """Create the file unless it exists; return whether it was created."""
        if os.path.exists(self.path):
            return False
        if os.path.exists(self.log_path):
            raise StorageError(
                f"{show_url(self.url)} is missing, but {self.log_path}, with its latest changes, is there; "
                "move the file back, or delete the log to start anew."
            )
        with closing(self._connect("rwc")) as connection:
            self._use_write_ahead_log(connection)
        return True

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        """Let readers and the writer not wait for each other; the file remembers it."""
        until = time.monotonic() + self.timeout
        while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as failure:
                # SQLite does not wait here by itself when two processes create a file at once.
                if not is_busy(failure) or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction for writing on this process's connection for that, and commit it in the end."""
        with self.lock:
            if self._writer is None:
                self._writer = self.connect()
                self._use_write_ahead_log(self._writer)  # a copy may be without one
                self._writer.execute("PRAGMA busy_timeout = 0")  # `begin` waits
            connection = self._writer
            self.begin(connection)
            try:
                if not self.check():  # what is written to a file that was moved away would be missed
                    raise StorageError(f"{show_url(self.url)} was replaced just now; retry.")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def begin(self, connection: sqlite3.Connection) -> None:
        """Begin a transaction for writing as soon as no other process has one."""
        until = time.monotonic() + self.timeout
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as failure:
                if not is_busy(failure) or time.monotonic() > until:
                    raise
            time.sleep(RETRY_SECONDS)

    def close(self) -> None:
        """Close the connection for writing; whatever is opened next is taken as it is."""
        with self.lock:
            if self._writer is not None:
                self._writer.close()
            self._writer = self._opened = None


def is_busy(failure: sqlite3.Error) -> bool:
    """Return whether another process has the lock."""
    return failure.sqlite_errorname.startswith("SQLITE_BUSY")


def _identify(path: str) -> FileIdentity | None:
    try:
        stat = os.stat(path)
    except OSError:  # missing, or on a disk that is gone
        return None
    return stat.st_dev, stat.st_ino


def _read_timeout(url: sa.URL) -> float:
    """Return the seconds to wait for another process that uses the same file."""
    timeout = url.query.get("timeout", DEFAULT_TIMEOUT_SECONDS)
    try:
        return float(timeout)  # type: ignore[arg-type]  # a tuple if it occurs twice
    except (TypeError, ValueError):
        raise StorageError(f"`timeout` in {show_url(url)} must be a number of seconds but got {timeout!r}.") from None
