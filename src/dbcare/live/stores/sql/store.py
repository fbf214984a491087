"""Studies in a database: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from dbcare.errors import StudyExistsError, StudyNotFoundError
from dbcare.live.events import Event, EventKind
from dbcare.live.stores.base import PlacedEvent, Store, StoreSession
from dbcare.live.stores.sql import tables
from dbcare.live.stores.sql.engine import Engines
from dbcare.live.stores.sql.errors import corruption_error, show_url, storage_error
from dbcare.live.stores.sql.tables import events, studies, summaries

FIELDS = [field.name for field in fields(Event)]
stored_fields = attrgetter(*("kind.value" if name == "kind" else name for name in FIELDS))


class Statements:
    """The statements of a session as text for one kind of database: compiling them takes longer than running them.

    Parameters are positional.
    """

    def __init__(self, dialect: sa.Dialect) -> None:
        self.dialect = dialect
        study = sa.select(studies.c.id, studies.c.identity).where(studies.c.name == sa.bindparam("name"))
        self.find = self._text(study)
        # In SQLite a transaction for writing is alone anyway; elsewhere the study's row is the lock.
        self.lock = self._text(study.with_for_update())
        columns = [events.c.position, *(events.columns[name] for name in FIELDS)]
        own = sa.select(*columns).where(events.c.study == sa.bindparam("own")).order_by(events.c.position)
        self.events_after = self._text(own.where(events.c.position > sa.bindparam("after")))
        in_range = events.c.trial.between(sa.bindparam("first"), sa.bindparam("last"))
        by_trial = own.where(in_range).order_by(None).order_by(events.c.trial, events.c.position)
        self.events_of_trials = self._text(by_trial, "events_of_trials")
        self.events_with_note = self._text(own.where(events.c.note == sa.bindparam("words")), "events_with_notes")
        self.last = self._text(sa.select(sa.func.max(events.c.position)).where(events.c.study == sa.bindparam("own")))
        self.append = self._text(sa.insert(events))

    def _text(self, statement: sa.Executable, index: str | None = None) -> str:
        text = str(statement.compile(dialect=self.dialect))  # type: ignore[attr-defined]  # all of these have it
        if index is not None and self.dialect.name == "sqlite":  # which would rather read the whole study
            text = text.replace(f"FROM {events.name}", f"FROM {events.name} INDEXED BY {index}")
        return text


class SqlSession(StoreSession):
    """A transaction on one study."""

    def __init__(self, store: SqlStore, connection: sa.Connection, study: int, identity: int) -> None:
        super().__init__(identity)
        self.study = study
        self.store = store
        self.connection = connection
        self.last: int | None = None  # no event comes after this position

    def events_after(self, position: int) -> list[PlacedEvent]:
        placed = self._events(self.store.statements.events_after, position)
        self.last = placed[-1][0] if placed else max(position, self.last or 0)
        return placed

    def events_of_trials(self, first: int, last: int) -> list[Event]:
        return [event for _, event in self._events(self.store.statements.events_of_trials, first, last)]

    def events_with_note(self, note: str) -> list[Event]:
        return [event for _, event in self._events(self.store.statements.events_with_note, note)]

    def append(self, events: list[Event]) -> list[int]:
        if not events:
            return []
        if self.last is None:
            self.last = self._run(self.store.statements.last, (self.study,)).scalar() or 0
        first = self.last + 1
        rows = [(self.study, place, *stored_fields(event)) for place, event in enumerate(events, first)]
        self._run(self.store.statements.append, rows if len(rows) > 1 else rows[0])
        self.last += len(rows)
        return list(range(first, first + len(rows)))

    def summary(self) -> tuple[int, dict[str, Any]] | None:
        row = self.connection.execute(
            sa.select(summaries.c.position, summaries.c.state).where(summaries.c.study == self.study)
        ).first()
        return None if row is None else (int(row[0]), self.store.parse(row[1]))

    def save_summary(self, position: int, plain: dict[str, Any]) -> None:
        values = {"position": position, "state": json.dumps(plain, allow_nan=False)}
        changed = self.connection.execute(sa.update(summaries).where(summaries.c.study == self.study).values(**values))
        if changed.rowcount == 0:
            self.connection.execute(sa.insert(summaries).values(study=self.study, **values))

    def _events(self, statement: str, *conditions: int | str) -> list[PlacedEvent]:
        rows: Iterable[Any] = self._run(statement, (self.study, *conditions))
        try:
            return [
                (position, Event(EventKind(kind), at, trial, arm, reward, bool(charged), expires, worker, note))
                for position, kind, at, trial, arm, reward, charged, expires, worker, note in rows
            ]
        except ValueError as failure:
            raise corruption_error(self.store.url, failure) from failure

    def _run(self, statement: str, parameters: tuple[Any, ...] | list[tuple[Any, ...]]) -> sa.CursorResult[Any]:
        return self.connection.exec_driver_sql(statement, parameters)


class SqlStore(Store):
    """Studies at an address such as sqlite:///ads.db or postgresql://me@host/studies."""

    def __init__(self, address: str) -> None:
        self.engines = Engines(address)
        self.url = self.engines.url
        if self.url.get_backend_name() == "sqlite":
            self.max_writers = 1  # SQLite has one writer at a time: more threads would only block each other
        self.statements = Statements(self.engines.get(write=False).dialect)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Create the tables unless they exist; a database of another application is not changed."""
        with self.transaction(write=False) as connection:
            ready = tables.exist(connection, show_url(self.url))
        if not ready:
            with self._translate_errors():
                self.engines.use_write_ahead_log()
            with self.transaction(write=True) as connection:
                tables.create(connection, show_url(self.url))

    def create(self, name: str, settings: dict[str, Any], at: float) -> None:
        try:
            with self.transaction(write=True) as connection:
                tables.create(connection, show_url(self.url))  # in case they were removed
                connection.execute(
                    sa.insert(studies).values(
                        name=name, settings=json.dumps(settings), created=at, identity=secrets.randbits(62)
                    )
                )
        except IntegrityError:
            raise StudyExistsError(f"Study {name!r} already exists.") from None

    def identity(self, name: str) -> int:
        with self.transaction(write=False) as connection:
            row = connection.exec_driver_sql(self.statements.find, (name,)).first()
        if row is None:
            raise _not_found(name)
        return int(row[1])

    def settings(self, name: str) -> dict[str, Any]:
        with self.transaction(write=False) as connection:
            text = connection.execute(sa.select(studies.c.settings).where(studies.c.name == name)).scalar()
        if text is None:
            raise _not_found(name)
        return self.parse(text)

    def names(self) -> list[str]:
        with self.transaction(write=False) as connection:
            return list(connection.execute(sa.select(studies.c.name).order_by(studies.c.id)).scalars())

    def delete(self, name: str) -> None:
        with self.transaction(write=True) as connection:
            if connection.execute(sa.delete(studies).where(studies.c.name == name)).rowcount == 0:
                raise _not_found(name)

    @contextmanager
    def session(self, name: str, *, write: bool) -> Iterator[StoreSession]:
        with self.transaction(write=write) as connection:
            statement = self.statements.lock if write else self.statements.find
            row = connection.exec_driver_sql(statement, (name,)).first()
            if row is None:
                raise _not_found(name)
            yield SqlSession(self, connection, *row)

    def close(self) -> None:
        self.engines.dispose()

    def parse(self, text: str) -> dict[str, Any]:
        """Parse what was stored as JSON."""
        try:
            plain: dict[str, Any] = json.loads(text)
        except ValueError as failure:
            raise corruption_error(self.url, failure) from failure
        return plain

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sa.Connection]:
        """Begin a transaction on the database as a whole, for what is kept next to the studies."""
        with self._translate_errors(), self.engines.get(write=write).connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of the database as errors of dbcare."""
        try:
            yield
        except IntegrityError:
            raise
        except (SQLAlchemyError, sqlite3.Error) as failure:
            raise storage_error(self.url, failure) from failure


def _not_found(name: str) -> StudyNotFoundError:
    return StudyNotFoundError(f"Study {name!r} not found.")
