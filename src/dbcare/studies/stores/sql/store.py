"""Studies in a database: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from dbcare.errors import StorageError, StudyExistsError, StudyNotFoundError
from dbcare.studies.stores.base import STATES, Standing, Store, StoreSession, StudyRecord
from dbcare.studies.stores.group_commit import GroupCommit
from dbcare.studies.stores.sql import tables
from dbcare.studies.stores.sql.connections import Engines
from dbcare.studies.stores.sql.errors import corruption_error, show_url, translate_error
from dbcare.studies.stores.sql.session import STANDING_FIELDS, SqlSession, Statements, parse_json
from dbcare.studies.stores.sql.tables import standings, studies

RECORD = sa.select(
    studies.c.name, studies.c.identity, studies.c.settings, studies.c.created, studies.c.created_by,
    *(standings.columns[name] for name in STANDING_FIELDS),
).select_from(studies.join(standings))  # fmt: skip


class SqlStore(Store):
    """Studies at an address such as sqlite:///ads.db or postgresql://me@host/studies.

    With `create`, an SQLite file and the tables are created unless they exist; `is_new` then says whether they were.
    """

    def __init__(self, address: str, *, create: bool = True) -> None:
        self.engines = Engines(address)
        self.url = self.engines.url
        dialect = self.engines.get().reading.dialect
        self.statements = Statements(dialect)
        driver: Any = dialect.dbapi
        self._driver_error: type[Exception] = driver.Error
        self._driver_refusal: type[Exception] = driver.DataError
        self.is_new = False
        self.max_wait = self.engines.max_wait
        if self.engines.file is not None:
            self.max_writers = 1  # SQLite has one writer at a time: more threads would only block each other
            self.commits = GroupCommit()
        try:
            if create:
                self.create_database()
            else:
                self._require_tables()
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """The address, without its password."""
        return show_url(self.url)

    def create_database(self) -> None:
        """Create the file and the tables unless they exist; a database of another application is not changed."""
        with self._translate_errors():
            is_new_file = self.engines.create_file()
        if not self._has_tables():
            with self._translate_errors(), self.engines.begin(write=True) as connection:
                self.is_new = tables.create(connection, self.address) or is_new_file

    def _require_tables(self) -> None:
        if not self._has_tables():
            raise StorageError(f"{self.address} has no studies; create one, or correct the address.")

    def _has_tables(self) -> bool:
        with self.transaction(write=False) as connection:
            return tables.exist(connection, self.address)

    def create(
        self, name: str, settings: dict[str, Any], at: float, by: str | None = None, standing: Standing = Standing()
    ) -> None:
        row = {"name": name, "settings": json.dumps(settings), "created": at, "created_by": by}
        try:
            with self.transaction(write=True) as connection:
                inserted = connection.execute(sa.insert(studies).values(**row, identity=secrets.randbits(62)))
                study = inserted.inserted_primary_key[0]  # type: ignore[index]  # it has one
                connection.execute(sa.insert(standings).values(study=study, **asdict(standing)))
        except IntegrityError:
            raise StudyExistsError(f"Study {name!r} already exists.") from None

    def record(self, name: str) -> StudyRecord:
        with self.transaction(write=False) as connection:
            row = connection.execute(RECORD.where(studies.c.name == name)).first()
        if row is None:
            raise _not_found(name)
        return self._make_record(row)

    def names(self) -> list[str]:
        with self.transaction(write=False) as connection:
            return list(connection.execute(sa.select(studies.c.name).order_by(studies.c.id)).scalars())

    def find(
        self, search: str = "", *, after: str | None = None, limit: int | None = None, by_state: bool = False
    ) -> list[StudyRecord]:
        ranks = {state: rank for rank, state in enumerate(STATES)}
        rank = sa.case(ranks, value=standings.c.state) if by_state else sa.literal(0)
        order = -studies.c.id if by_state else studies.c.id
        query = RECORD.order_by(rank, order).limit(limit)
        if search:
            query = query.where(_contains(search))
        with self.transaction(write=False) as connection:
            if after is not None:
                place = sa.select(rank, order).select_from(studies.join(standings)).where(studies.c.name == after)
                found = connection.execute(place).first()
                if found is None:
                    raise _not_found(after)
                query = query.where((rank > found[0]) | ((rank == found[0]) & (order > found[1])))
            rows = connection.execute(query).all()
        return [self._make_record(row) for row in rows]

    def count(self, search: str = "") -> int:
        query = sa.select(sa.func.count()).select_from(studies)
        with self.transaction(write=False) as connection:
            return int(connection.execute(query.where(_contains(search)) if search else query).scalar_one())

    def _make_record(self, row: sa.Row[Any]) -> StudyRecord:
        name, identity, settings, created, created_by, *fields = tuple(row)
        standing = Standing(*fields)
        if standing.state not in STATES:
            raise corruption_error(self.url, ValueError(f"a study's state is {standing.state!r}"))
        return StudyRecord(name, int(identity), parse_json(self.url, settings), created, created_by, standing)

    def delete(self, name: str) -> None:
        with self.transaction(write=True) as connection:
            if connection.execute(sa.delete(studies).where(studies.c.name == name)).rowcount == 0:
                raise _not_found(name)

    @contextmanager
    def session(self, name: str, *, write: bool) -> Iterator[StoreSession]:
        with self._translate_errors(), self.engines.begin_plainly(write=write) as connection:
            session = self._begin(connection, name, self.statements.lock if write else self.statements.find)
            if session is None:
                raise _not_found(name)
            yield session

    @contextmanager
    def group(self, names: Sequence[str]) -> Iterator[dict[str, StoreSession]]:
        with self._translate_errors(), self.engines.begin_plainly(write=True) as connection:
            sessions = {name: self._begin(connection, name, self.statements.lock) for name in names}
            yield {name: session for name, session in sessions.items() if session is not None}

    def _begin(self, connection: Any, name: str, statement: str) -> SqlSession | None:
        row = connection.execute(statement, (name,)).fetchone()
        if row is None:
            return None
        layout, *study = row
        if layout != tables.LAYOUT:  # it was right when this process opened the database
            raise tables.layout_error(layout, self.address)
        return SqlSession(self.statements, self.url, connection, *study)

    def try_write(self) -> None:
        with self._translate_errors(), self.engines.begin(write=True, probe=True) as connection:
            tables.check_layout(connection, self.address)
            tables.change_nothing(connection)

    def close(self) -> None:
        self.engines.dispose()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sa.Connection]:
        """Begin a transaction on the database as a whole, for what is kept next to the studies."""
        with self._translate_errors(), self.engines.begin(write=write) as connection:
            if write:
                tables.check_layout(connection, self.address)
            yield connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of the database as errors of dbcare."""
        try:
            yield
        except IntegrityError:
            raise
        except (SQLAlchemyError, sqlite3.Error, self._driver_error, UnicodeEncodeError) as failure:
            raise translate_error(self.url, failure, self._driver_refusal) from failure
        except UnicodeDecodeError as failure:  # of a text in a damaged file
            raise corruption_error(self.url, failure) from failure


def _contains(search: str) -> sa.ColumnElement[bool]:
    return studies.c.name.icontains(search, autoescape=True)


def _not_found(name: str) -> StudyNotFoundError:
    return StudyNotFoundError(f"Study {name!r} not found.")
