"""Connections to SQLite and PostgreSQL, set up so that nothing acknowledged is lost."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DisconnectionError

from dbcare.errors import StorageError
from dbcare.live.stores.sql.errors import show_unreadable, show_url

DEFAULT_TIMEOUT_SECONDS = 60.0  # to wait until another process ends its session
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


def read_lock_timeout(url: sa.URL) -> float:
    """Return the seconds to wait for another process that uses the same SQLite file."""
    timeout = url.query.get("timeout", DEFAULT_TIMEOUT_SECONDS)
    try:
        return float(timeout)  # type: ignore[arg-type]  # a tuple if it occurs twice
    except (TypeError, ValueError):
        raise StorageError(f"`timeout` in {show_url(url)} must be a number of seconds but got {timeout!r}.") from None


class Engines:
    """Engines for one address; each process has its own, since a connection must not be used across a fork."""

    def __init__(self, address: str) -> None:
        self.url = parse_address(address)
        self._of_process: dict[int, tuple[sa.Engine, sa.Engine]] = {}
        self.get(write=False)

    def get(self, *, write: bool) -> sa.Engine:
        """Return the engine of this process, for sessions that write or only read."""
        writing, reading = self._of_process.get(os.getpid()) or self._make()
        return writing if write else reading

    def _make(self) -> tuple[sa.Engine, sa.Engine]:
        try:
            engines = (_sqlite if self.url.get_backend_name() == "sqlite" else _postgresql)(self.url)
        except ImportError as failure:
            raise StorageError(
                f"{show_url(self.url)} needs a driver that is not installed ({failure}): "
                "pip install 'dbcare[postgresql]'."
            ) from None
        # A parent's connections are kept, unused: closing them here would disturb the parent.
        return self._of_process.setdefault(os.getpid(), engines)

    def use_write_ahead_log(self) -> None:
        """Use one in SQLite, so that readers and the writer do not wait for each other; the file remembers it."""
        if self.url.get_backend_name() != "sqlite":
            return
        until = time.monotonic() + read_lock_timeout(self.url)
        with closing(self.get(write=True).raw_connection()) as pooled:
            connection = cast(sqlite3.Connection, pooled.dbapi_connection)
            while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                try:
                    connection.execute("PRAGMA journal_mode = WAL")
                except sqlite3.OperationalError as failure:
                    # SQLite does not wait here by itself when two processes open a new file at once.
                    if not failure.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > until:
                        raise
                    time.sleep(0.01)

    def dispose(self) -> None:
        """Close the connections of this process."""
        self.get(write=True).dispose()


def _postgresql(url: sa.URL) -> tuple[sa.Engine, sa.Engine]:
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


def _sqlite(url: sa.URL) -> tuple[sa.Engine, sa.Engine]:
    engine = sa.create_engine(
        url, pool_timeout=DEFAULT_TIMEOUT_SECONDS, connect_args={"timeout": read_lock_timeout(url)}
    )

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # `begin` below sends BEGIN
        for setting in ("synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {setting}")
        path = connection.execute("PRAGMA database_list").fetchone()[2]
        record.info["file"] = path, _identity(path)

    @sa.event.listens_for(engine, "checkout")
    def check(_connection: Any, record: Any, _proxy: Any) -> None:
        path, opened = record.info["file"]
        if _identity(path) != opened:
            # What is written to a removed file is lost: open the one that is there now.
            raise DisconnectionError

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get(READING) else "BEGIN IMMEDIATE")

    return engine, engine.execution_options(**{READING: True})


def _identity(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino
