"""Studies in a database: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError

from dbcare.errors import StorageError, StudyExistsError, StudyNotFoundError
from dbcare.live.events import Event, Kind
from dbcare.live.store import Placed, Session, Store

VERSION = 1
PATIENCE = 60.0  # seconds to wait for another process to end its session

TABLES = sa.MetaData()
about = sa.Table("dbcare", TABLES, sa.Column("version", sa.Integer, nullable=False))
studies = sa.Table(
    "studies",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String, nullable=False, unique=True),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
)
events = sa.Table(
    "events",
    TABLES,
    sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("study", sa.ForeignKey("studies.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("trial", sa.Integer, nullable=False),
    sa.Column("arm", sa.Integer, nullable=False),
    sa.Column("reward", sa.Double),
    sa.Column("charged", sa.Boolean, nullable=False),
    sa.Column("expires", sa.Double),
    sa.Column("worker", sa.String),
    sa.Column("note", sa.String),
    sa.Index("events_in_order", "study", "position"),
    sa.Index("events_of_trials", "study", "trial"),
)
summaries = sa.Table(
    "summaries",
    TABLES,
    sa.Column("study", sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
)
FIELDS = [column for column in events.columns if column.name not in ("position", "study")]


class SqlSession(Session):
    """A transaction on one study."""

    def __init__(self, connection: sa.Connection, study: int) -> None:
        self.connection = connection
        self.study = study

    def since(self, position: int) -> list[Placed]:
        found = self.connection.execute(
            sa.select(events.c.position, *FIELDS)
            .where(events.c.study == self.study, events.c.position > position)
            .order_by(events.c.position)
        )
        return [(row[0], _event(row[1:])) for row in found]

    def of_trial(self, trial: int) -> list[Event]:
        found = self.connection.execute(
            sa.select(*FIELDS).where(events.c.study == self.study, events.c.trial == trial).order_by(events.c.position)
        )
        return [_event(row) for row in found]

    def append(self, listed: list[Event]) -> list[int]:
        rows = [{"study": self.study, **asdict(each), "kind": str(each.kind)} for each in listed]
        inserted = self.connection.execute(
            sa.insert(events).returning(events.c.position, sort_by_parameter_order=True), rows
        )
        return [int(position) for (position,) in inserted]

    def summary(self) -> tuple[int, dict[str, Any]] | None:
        row = self.connection.execute(
            sa.select(summaries.c.position, summaries.c.state).where(summaries.c.study == self.study)
        ).first()
        return None if row is None else (int(row[0]), json.loads(row[1]))

    def save_summary(self, position: int, plain: dict[str, Any]) -> None:
        values = {"position": position, "state": json.dumps(plain, allow_nan=False)}
        changed = self.connection.execute(sa.update(summaries).where(summaries.c.study == self.study).values(**values))
        if changed.rowcount == 0:
            self.connection.execute(sa.insert(summaries).values(study=self.study, **values))


def _event(row: Any) -> Event:
    kind, *rest = row
    return Event(Kind(kind), *rest)


class SqlStore(Store):
    """Studies behind an SQLAlchemy address, such as sqlite:///ads.db or postgresql+psycopg://me@host/studies."""

    def __init__(self, address: str) -> None:
        try:
            self.engine = _engine(address)
        except (ArgumentError, NoSuchModuleError, ImportError) as failure:
            raise StorageError(
                f"`storage` must be an address such as sqlite:///ads.db but got {address!r}: {failure}."
            ) from None
        with self._transaction(write=True) as connection:
            TABLES.create_all(connection)
            stored = connection.execute(sa.select(about.c.version)).scalar()
            if stored is None:
                connection.execute(sa.insert(about).values(version=VERSION))
        if stored not in (None, VERSION):
            raise StorageError(
                f"{self.engine.url.render_as_string()} must have version {VERSION} of the tables but got {stored}."
            )

    def create(self, name: str, settings: dict[str, Any], at: float) -> None:
        try:
            with self._transaction(write=True) as connection:
                connection.execute(sa.insert(studies).values(name=name, settings=json.dumps(settings), created=at))
        except IntegrityError:
            raise StudyExistsError(f"A study must have a name of its own but got {name!r}, which exists.") from None

    def settings(self, name: str) -> dict[str, Any]:
        with self._transaction(write=False) as connection:
            text = connection.execute(sa.select(studies.c.settings).where(studies.c.name == name)).scalar()
        if text is None:
            raise _missing(name)
        plain: dict[str, Any] = json.loads(text)
        return plain

    def names(self) -> list[str]:
        with self._transaction(write=False) as connection:
            return list(connection.execute(sa.select(studies.c.name).order_by(studies.c.id)).scalars())

    def delete(self, name: str) -> None:
        with self._transaction(write=True) as connection:
            if connection.execute(sa.delete(studies).where(studies.c.name == name)).rowcount == 0:
                raise _missing(name)

    @contextmanager
    def session(self, name: str, *, write: bool) -> Iterator[Session]:
        with self._transaction(write=write) as connection:
            found = sa.select(studies.c.id).where(studies.c.name == name)
            # In SQLite a transaction for writing is alone anyway; elsewhere the study's row is the lock.
            study = connection.execute(found.with_for_update() if write else found).scalar()
            if study is None:
                raise _missing(name)
            yield SqlSession(connection, study)

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sa.Connection]:
        try:
            with self.engine.connect().execution_options(dbcare_write=write) as connection, connection.begin():
                yield connection
        except IntegrityError:
            raise
        except DBAPIError as failure:
            shown = self.engine.url.render_as_string(hide_password=True)
            raise StorageError(f"{shown} must answer but said: {failure.orig}.") from failure


def _missing(name: str) -> StudyNotFoundError:
    return StudyNotFoundError(f"A study must be stored before it is used but got {name!r}, which is not.")


def _engine(address: str) -> sa.Engine:
    url = sa.make_url(address)
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True)
    engine = sa.create_engine(url, connect_args={"timeout": PATIENCE})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {setting}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        write = connection.get_execution_options().get("dbcare_write", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine
