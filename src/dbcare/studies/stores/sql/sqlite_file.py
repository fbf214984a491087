"""An SQLite file: opened only where it exists, written by one at a time, and watched together with its log."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from urllib.parse import quote

import sqlalchemy as sa

from dbcare.errors import StorageError
from dbcare.studies.record.forks import renew_after_fork
from dbcare.studies.stores.sql.errors import show_url

DEFAULT_TIMEOUT_SECONDS = 60.0  # to wait until another process ends its session
RETRY_SECONDS = 0.0005  # SQLite's own retries back off, and so rarely find a busy file free
LOG = logging.getLogger("dbcare")

FileIdentity = tuple[int, int]


class SqliteFile:
    """The file at an address, and this process's connection for writing to it.

    The write-ahead log next to the file (-wal) holds the latest commits. Creating a file next to a log removes the log,
    and opening another file there mixes both up; so neither is done while the log of a missing file is there.

    A deleted log remains for the programs that have it open, and for nobody else. So a look at the log follows every
    commit: if the log is gone, its contents are written to the file before the commit is acknowledged. The index of the
    log (-shm) tells who else uses it: programs with the same index share a log.
    """

    def __init__(self, url: sa.URL) -> None:
        self.url = url
        self.timeout = _read_timeout(url)
        self.writer: sqlite3.Connection | None = None  # while it is open
        self._inherited: object = None
        self._opened: tuple[FileIdentity | None, FileIdentity | None] | None = None  # file and log, once seen
        self._index: FileIdentity | None = None  # of that log
        self.close_others: Callable[[], None] = lambda: None  # other connections of this process, unless they are busy
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Start with a fresh lock and connection in a child process.

        The parent's connection must not be used there, and not be closed either, which could remove the log.
        """
        self.lock = threading.Lock()
        self._inherited = (self._inherited, self.writer)
        self.writer = None

    @property
    def path(self) -> str:
        """Where the file is."""
        name = self.url.database or ""
        return name.removeprefix("file:") if "uri" in self.url.query else name

    @property
    def log_path(self) -> str:
        """Where its write-ahead log is."""
        return f"{self.path}-wal"

    @property
    def index_path(self) -> str:
        """Where the index of the log is, which all processes that have the log open share."""
        return f"{self.path}-shm"

    def connect(self) -> sqlite3.Connection:
        """Open the file, which must exist, with settings under which nothing acknowledged is lost."""
        connection = self._connect("rw")
        try:
            connection.isolation_level = None  # transactions are begun explicitly
            for setting in ("synchronous = FULL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {setting}")
            self._open_log(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_log(self, connection: sqlite3.Connection) -> None:
        """Let a new connection open the log, and remember which file and which log these are."""
        try:
            connection.execute("PRAGMA schema_version")
            opened = _identify(self.path), _identify(self.log_path)
            has_log = connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            # Never read the index itself: to close a file gives up all locks that this process has on it.
            misses_pages = has_log and _is_empty(self.log_path) and _count_logged_pages(connection) > 0
        except sqlite3.OperationalError:  # such as a page that only a deleted log has
            if not _is_empty(self.log_path):
                raise
            misses_pages = True
        if misses_pages:
            raise self._log_is_missing()
        is_other = self._opened is not None and opened[0] != self._opened[0]
        if is_other or self.has_lost_log() or (has_log and opened[1] is None):
            raise StorageError(f"{show_url(self.url)} was replaced just now; retry.")
        self._opened, self._index = opened, _identify(self.index_path)

    def _log_is_missing(self) -> StorageError:
        return StorageError(
            f"{self.log_path}, with the latest changes, was deleted while {show_url(self.url)} was in use. If a "
            "program still has it open, that program will save them with its next change; retry then. Otherwise "
            f"restore a backup, or delete {self.index_path} to go on without these changes."
        )

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
            if os.path.exists(self.index_path) and not os.path.exists(self.log_path):
                raise self._log_is_missing()
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

    def has_lost_log(self) -> bool:
        """Return whether the log or its index was deleted or replaced since this process opened them."""
        if self._opened is None or self._opened[1] is None:
            return False
        if _identify(self.log_path) == self._opened[1] and _identify(self.index_path) == self._index:
            return False
        return _identify(self.path) == self._opened[0]

    def confirm(self, connection: sqlite3.Connection) -> None:
        """Make sure that what was committed is where everyone will find it; `lock` must be held.

        A lost log is rescued through `connection`, which still has it open.
        """
        if not self.has_lost_log():
            return
        if _identify(self.index_path) not in (self._index, None):  # to write to the file would damage what others do
            self._copy_and_give_up(connection)
        self._move_log_into_file(connection)
        self._close_writer()
        self.close_others()

    def _move_log_into_file(self, connection: sqlite3.Connection) -> None:
        until = time.monotonic() + self.timeout
        is_busy = True
        while is_busy and not self._is_rescued():
            try:
                is_busy = bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            except sqlite3.OperationalError:  # pages are missing if another process has rescued them just now
                if not self._is_rescued():
                    raise
            if is_busy and time.monotonic() > until:
                raise StorageError(
                    f"{self.log_path} was deleted while {show_url(self.url)} was in use, and the latest changes cannot "
                    "be written to the file while others read it; let them finish and retry."
                )
        with closing(self._connect("rw")) as fresh:  # an index without a log would stop others
            fresh.execute("PRAGMA schema_version")
        LOG.warning("%s was deleted while in use. Everything is saved; find out what deletes it.", self.log_path)

    def _is_rescued(self) -> bool:
        """Return whether another process that shares the index has emptied the lost log, and begun a new one."""
        is_shared = _identify(self.index_path) == self._index
        return is_shared and os.path.exists(self.log_path) and not _is_empty(self.log_path)

    def _copy_and_give_up(self, connection: sqlite3.Connection) -> None:
        copy = f"{self.path}.rescued-{time.time_ns()}"
        with closing(sqlite3.connect(copy)) as target:
            connection.backup(target)
        self._close_writer()
        self.close_others()
        raise StorageError(
            f"{self.log_path} was deleted while {show_url(self.url)} was in use, and another program has begun a new "
            f"one. What this program had stored is in {copy}; compare both files before you go on."
        )

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
            connection = self._begin_writing()
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            self.confirm(connection)

    def _begin_writing(self) -> sqlite3.Connection:
        """Begin a transaction in the file that is there now; what is written to one that was moved would be missed."""
        while True:
            connection = self.writer or self._open_writer()
            is_ready = False
            try:
                self.begin(connection, self.timeout)
                is_ready = not self.has_lost_log() and self.check()  # now that nobody else writes
            except sqlite3.Error:  # such as a page that only another program's log has
                if not self.has_lost_log() and self.check():
                    raise
            finally:
                if not is_ready and connection.in_transaction:
                    connection.execute("ROLLBACK")
            if is_ready:
                return connection
            if self.has_lost_log():
                self.confirm(connection)
            elif not self.check():
                self._close_writer()
                self.close_others()

    def _open_writer(self) -> sqlite3.Connection:
        self.writer = self.connect()
        self._use_write_ahead_log(self.writer)  # a copy may be without one
        self._open_log(self.writer)
        self.writer.execute("PRAGMA busy_timeout = 0")  # `begin` waits
        return self.writer

    def begin(self, connection: sqlite3.Connection, seconds: float) -> None:
        """Begin a transaction for writing as soon as no other process has one; wait at most so long."""
        until = time.monotonic() + seconds
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
            self._close_writer()

    def _close_writer(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.writer = self._opened = None


def is_busy(failure: sqlite3.Error) -> bool:
    """Return whether another process has the lock."""
    return failure.sqlite_errorname.startswith("SQLITE_BUSY")


def _identify(path: str) -> FileIdentity | None:
    try:
        stat = os.stat(path)
    except OSError:  # missing, or on a disk that is gone
        return None
    return stat.st_dev, stat.st_ino


def _is_empty(path: str) -> bool:
    try:
        return os.stat(path).st_size == 0
    except OSError:
        return False


def _count_logged_pages(connection: sqlite3.Connection) -> int:
    """Return how many pages are in the log, by its index."""
    return int(connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1])


def _read_timeout(url: sa.URL) -> float:
    """Return the seconds to wait for another process that uses the same file."""
    timeout = url.query.get("timeout", DEFAULT_TIMEOUT_SECONDS)
    try:
        return float(timeout)  # type: ignore[arg-type]  # a tuple if it occurs twice
    except (TypeError, ValueError):
        raise StorageError(f"`timeout` in {show_url(url)} must be a number of seconds but got {timeout!r}.") from None
