"""Connections to SQLite and PostgreSQL, set up so that nothing acknowledged is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from dbcare.errors import StorageError
from dbcare.extras import say_how_to_install
from dbcare.live.forks import Turnstile, suspend_for_fork
from dbcare.live.stores.sql.errors import show_unreadable, show_url
from dbcare.live.stores.sql.sqlite_file import DEFAULT_TIMEOUT_SECONDS, SqliteFile

DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
READING = "dbcare_reading"


def parse_address(address: str) -> sa.URL:
    """Return the address as a URL, if it is that of a database that can keep studies."""
    try:
        url = sa.make_url(address)
        supported = url.drivername in DRIVERS
    except (ArgumentError, ValueError):
        supported = False
    if not supported:
        raise StorageError(
            "`storage` must be an address such as sqlite:///ads.db or postgresql://me@host/studies "
            f"but got {show_unreadable(address)}."
        )
    if url.get_backend_name() == "sqlite":
        _check_file(url)
    return url.set(drivername=DRIVERS[url.drivername])


def _check_file(url: sa.URL) -> None:
    if url.database in (None, "", ":memory:"):
        raise StorageError(
            f"`storage` must name a file but got sqlite:///{url.database or ''}; "
            "leave `storage` out to keep a study in memory."
        )
    if "uri" not in url.query and (unknown := sorted(set(url.query) - {"timeout"})):
        raise StorageError(
            f"`storage` must have no option other than timeout, or begin with sqlite:///file: and have uri=true, "
            f"but got {', '.join(unknown)}."
        )


class Engines:
    """Engines for one address; each process has its own, since a connection must not be used across a fork."""

    def __init__(self, address: str) -> None:
        self.url = parse_address(address)
        self.file = SqliteFile(self.url) if self.url.get_backend_name() == "sqlite" else None
        self._of_process: dict[int, tuple[sa.Engine, sa.Engine]] = {}
        self._is_left_open = False  # by the fork in progress, which could not wait any longer
        self._is_unusable = False  # in this process, since the file was open when it was forked
        self._turnstile = Turnstile()
        self.get(write=False)
        if self.file is not None:
            self.file.close_others = lambda: self.get(write=True).dispose()
            suspend_for_fork(self)

    def suspend(self) -> None:
        """Close the file before a fork, once the other threads' transactions are over."""
        assert self.file is not None
        self._is_left_open = True
        if self._turnstile.close(self.file.timeout):
            self.dispose()
            self._is_left_open = False

    def resume(self) -> None:
        """Resume in the parent."""
        self._is_left_open = False
        self._turnstile.open()

    def renew(self) -> None:
        """Replace the locks in a child process; a file that was left open cannot be used there, ever."""
        self._turnstile = Turnstile()
        self._is_unusable |= self._is_left_open
        self._is_left_open = False

    def get(self, *, write: bool) -> sa.Engine:
        """Return the engine of this process, for transactions that write or only read."""
        writing, reading = self._of_process.get(os.getpid()) or self._make()
        return writing if write else reading

    def _make(self) -> tuple[sa.Engine, sa.Engine]:
        try:
            engines = _make_postgresql(self.url) if self.file is None else _make_sqlite(self.file)
        except ImportError as failure:
            raise StorageError(
                f"{show_url(self.url)} needs a driver that is not installed ({failure}): "
                f"{say_how_to_install('postgresql')}."
            ) from None
        # A parent's connections are kept, unused: closing them here would disturb the parent.
        return self._of_process.setdefault(os.getpid(), engines)

    @contextmanager
    def begin(self, *, write: bool) -> Iterator[sa.Connection]:
        """Begin a transaction; within this process, those that write to the same file take turns."""
        with self._turnstile.enter():
            self._check_file()
            with self._take_turn(write=write), self.get(write=write).connect() as connection:
                with connection.begin():
                    if write and self.file is not None and self.file.has_lost_log():
                        raise StorageError(f"{show_url(self.url)} was replaced just now; retry.")
                    yield connection
                if write and self.file is not None:
                    self.file.confirm(_plain(connection))

    def _take_turn(self, *, write: bool) -> AbstractContextManager[Any]:
        return self.file.lock if write and self.file is not None else nullcontext()

    @contextmanager
    def begin_plainly(self, *, write: bool) -> Iterator[Any]:
        """Begin a transaction on the driver's own connection: SQLAlchemy takes longer than some databases."""
        if write and self.file is not None:
            with self._turnstile.enter():
                self._check_file()
                with self.file.write() as plain:
                    yield plain
        else:
            with self.begin(write=write) as connection:
                yield _plain(connection)

    def _check_file(self) -> None:
        if self._is_unusable:
            raise StorageError(
                f"{show_url(self.url)} was in use when this process was forked; use it in the parent, or start this "
                "process anew (such as with multiprocessing's spawn)."
            )
        if self.file is None:
            return
        if self.file.has_lost_log():
            with self.file.lock, self._borrow(self.file) as connection:
                self.file.confirm(connection)
        if not self.file.check():
            self.dispose()  # another file is in its place

    @contextmanager
    def _borrow(self, file: SqliteFile) -> Iterator[Any]:
        """Borrow a connection that is open already, if there is one."""
        if file.writer is not None:
            yield file.writer
        else:
            with self.get(write=False).connect() as connection:
                yield _plain(connection)

    def create_file(self) -> bool:
        """Create the SQLite file unless it exists; return whether it was created."""
        with self._turnstile.enter():
            if self.file is None or not self.file.create():
                return False
        self.dispose()  # connections to a file that was there before
        return True

    def dispose(self) -> None:
        """Close the connections of this process."""
        self.get(write=True).dispose()
        if self.file is not None:
            self.file.close()


def _plain(connection: sa.Connection) -> Any:
    """Return the driver's own connection."""
    return connection.connection.driver_connection


def _make_postgresql(url: sa.URL) -> tuple[sa.Engine, sa.Engine]:
    # Nobody waits forever, neither for a lock nor for a process that hangs while it holds one.
    limits = {"lock_timeout": DEFAULT_TIMEOUT_SECONDS, "idle_in_transaction_session_timeout": DEFAULT_TIMEOUT_SECONDS}
    options = " ".join(f"-c {name}={seconds * 1000:.0f}" for name, seconds in limits.items())
    defaults = {"options": options, "connect_timeout": f"{DEFAULT_TIMEOUT_SECONDS:.0f}"}
    engine = sa.create_engine(
        url,
        pool_pre_ping=True,
        pool_timeout=DEFAULT_TIMEOUT_SECONDS,
        paramstyle="format",
        connect_args={name: text for name, text in defaults.items() if name not in url.query},
    )
    return engine, engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _make_sqlite(file: SqliteFile) -> tuple[sa.Engine, sa.Engine]:
    engine = sa.create_engine(file.url, pool_timeout=DEFAULT_TIMEOUT_SECONDS, creator=file.connect)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        if connection.get_execution_options().get(READING):
            connection.exec_driver_sql("BEGIN")
            return
        plain: Any = connection.connection.driver_connection
        plain.execute("PRAGMA busy_timeout = 0")
        try:
            file.begin(plain)
        finally:
            plain.execute(f"PRAGMA busy_timeout = {int(file.timeout * 1000)}")

    return engine, engine.execution_options(**{READING: True})
