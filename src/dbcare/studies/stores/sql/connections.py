"""Connections to SQLite and PostgreSQL, set up so that nothing acknowledged is lost."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from dbcare.base.extras import say_how_to_install
from dbcare.errors import StorageError
from dbcare.studies.record.forks import Turnstile, suspend_for_fork
from dbcare.studies.stores.sql.errors import show_unreadable, show_url
from dbcare.studies.stores.sql.sqlite_file import DEFAULT_TIMEOUT_SECONDS, SqliteFile

DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
READING = "dbcare_reading"

# Limits in PostgreSQL, in seconds, so that nobody waits forever for a lock, for a slow disk, or for a process that
# hangs while it holds a lock. The address, the server, the database or the role may have others.
LIMITS = {"lock_timeout": 10.0, "statement_timeout": 30.0, "idle_in_transaction_session_timeout": 60.0}
SETTINGS = ("lock_timeout", "statement_timeout", "pool_size")  # options of an address that the driver does not know
POOL_SIZE = 15  # connections of a process
# Options of the driver: seconds to connect; and until a machine that has vanished counts as gone (the last in ms).
CONNECTING = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
PROBE_SECONDS = 2.0  # for which a trial write waits for another process that uses the same file


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
    else:
        _read_settings(url)
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


def _read_settings(url: sa.URL) -> dict[str, float]:
    """Return the settings that an address has; raise if one of them is not a number."""
    found = {}
    for name in SETTINGS:
        if (text := url.query.get(name)) is None:
            continue
        try:
            found[name] = float(text)  # type: ignore[arg-type]  # a tuple if it occurs twice
        except (TypeError, ValueError):
            found[name] = -1.0
        is_valid = found[name] >= 1.0 and found[name].is_integer() if name == "pool_size" else 0.0 <= found[name] < 1e6
        if not is_valid:
            wanted = "a number of connections" if name == "pool_size" else "a number of seconds, or 0 for no limit,"
            raise StorageError(f"`{name}` in {show_url(url)} must be {wanted} but got {text!r}.")
    return found


class ProcessEngines(NamedTuple):
    """The engines of one process: those that write and read share connections, and one is for trial writes."""

    writing: sa.Engine
    reading: sa.Engine
    probing: sa.Engine

    def dispose(self) -> None:
        """Close all connections that are not in use."""
        self.writing.dispose()
        self.probing.dispose()


class Engines:
    """Engines for one address; each process has its own, since a connection must not be used across a fork."""

    def __init__(self, address: str) -> None:
        self.url = parse_address(address)
        self.file = SqliteFile(self.url) if self.url.get_backend_name() == "sqlite" else None
        self._of_process: dict[int, ProcessEngines] = {}
        self._is_left_open = False  # by the fork in progress, which could not wait any longer
        self._is_unusable = False  # in this process, since the file was open when it was forked
        self._turnstile = Turnstile()
        self.get()
        if self.file is not None:
            self.file.close_others = lambda: self.get().dispose()
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

    @property
    def max_wait(self) -> float:
        """Seconds for which a change may wait for others that fail: half as long as for a lock, in PostgreSQL."""
        if self.file is not None:
            return math.inf
        return _read_settings(self.url).get("lock_timeout", LIMITS["lock_timeout"]) / 2.0 or math.inf

    def get(self) -> ProcessEngines:
        """Return the engines of this process."""
        return self._of_process.get(os.getpid()) or self._make()

    def _make(self) -> ProcessEngines:
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
    def begin(self, *, write: bool, probe: bool = False) -> Iterator[sa.Connection]:
        """Begin a transaction; within this process, those that write to the same file take turns.

        That of a `probe` has a connection of its own.
        """
        engines = self.get()
        engine = engines.probing if probe else engines.writing if write else engines.reading
        with self._turnstile.enter():
            self._check_file()
            with self._take_turn(write=write), engine.connect() as connection:
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
                if self.file.writer is None or self._is_unusable:  # else `write` checks the file that is open
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
            with self.get().reading.connect() as connection:
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
        self.get().dispose()
        if self.file is not None:
            self.file.close()


def _plain(connection: sa.Connection) -> Any:
    """Return the driver's own connection."""
    return connection.connection.driver_connection


def _make_postgresql(url: sa.URL) -> ProcessEngines:
    own = _read_settings(url)
    url = url.difference_update_query(SETTINGS)
    connecting = {name: text for name, text in CONNECTING.items() if name not in url.query}
    # What the address says is sent on connecting, after any options that it has itself.
    stated = [f"-c {name}={seconds * 1000:.0f}" for name, seconds in own.items() if name in LIMITS]
    if stated:
        connecting["options"] = " ".join([str(url.query.get("options", "")), *stated]).strip()
        url = url.difference_update_query(["options"])

    def make(size: int) -> sa.Engine:
        engine = sa.create_engine(
            url,
            pool_pre_ping=True,
            pool_size=size,
            max_overflow=0,
            pool_timeout=own.get("lock_timeout", LIMITS["lock_timeout"]) or None,
            paramstyle="format",
            connect_args=connecting,
        )
        sa.event.listen(engine, "connect", _limit_waiting)
        return engine

    engine = make(int(own.get("pool_size", POOL_SIZE)))
    reading = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return ProcessEngines(engine, reading, make(1))


def _limit_waiting(connection: Any, _record: Any) -> None:
    """Set the limits on a new connection, except those that its address, the server or its role has set."""
    rows = ", ".join(f"('{name}', '{seconds * 1000:.0f}')" for name, seconds in LIMITS.items())
    connection.execute(
        f"SELECT set_config(name, value, false) FROM (VALUES {rows}) AS limits (name, value) "
        "JOIN pg_settings USING (name) WHERE source = 'default'"
    )
    connection.commit()


def _make_sqlite(file: SqliteFile) -> ProcessEngines:
    def make(size: int, seconds: float) -> sa.Engine:
        """Return an engine whose transactions wait so long for another process that writes."""
        engine = sa.create_engine(
            file.url, pool_timeout=DEFAULT_TIMEOUT_SECONDS, pool_size=size, max_overflow=2 * size, creator=file.connect
        )

        @sa.event.listens_for(engine, "begin")
        def begin(connection: sa.Connection) -> None:
            if connection.get_execution_options().get(READING):
                connection.exec_driver_sql("BEGIN")
                return
            plain: Any = connection.connection.driver_connection
            plain.execute("PRAGMA busy_timeout = 0")
            try:
                file.begin(plain, seconds)
            finally:
                plain.execute(f"PRAGMA busy_timeout = {int(file.timeout * 1000)}")

        return engine

    engine = make(5, file.timeout)
    probing = make(1, min(file.timeout, PROBE_SECONDS))
    return ProcessEngines(engine, engine.execution_options(**{READING: True}), probing)
