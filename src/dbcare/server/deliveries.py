"""Which stops of studies a webhook has been told, remembered next to the keys."""

from __future__ import annotations

import hashlib
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dbcare.server.access.tables import ensure
from dbcare.studies.stores.base import Store
from dbcare.studies.stores.sql.store import SqlStore


class StudyStop(NamedTuple):
    """A stop of a study, which may stop again, or with another arm recommended, once an arm is retired."""

    identity: int  # the study's
    asked: int  # trials by then
    recommended: str


FIRST_USE = StudyStop(0, -1, "")  # remembered for every URL that has been used; no study stops like this

TABLES = sa.MetaData()
deliveries = sa.Table(
    "dbcare_webhook_deliveries",
    TABLES,
    sa.Column("url", sa.String(64), primary_key=True),  # its hash: a URL may contain a secret
    sa.Column("identity", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("asked", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("recommended", sa.String, primary_key=True),
)


class Deliveries(ABC):
    """What each URL has been told.

    `source` distinguishes identities of studies that are only unique within one process.
    """

    source = ""

    @abstractmethod
    def list_delivered(self, url: str) -> set[StudyStop]:
        """Return all stops that a URL has been told; empty if it was never used."""

    @abstractmethod
    def begin(self, url: str, stops: Iterable[StudyStop]) -> None:
        """Take the stops as told, if the URL was never used before; all of them or none."""

    @abstractmethod
    def has(self, url: str, stop: StudyStop) -> bool:
        """Return whether a URL has been told a stop, by this process or another one."""

    @abstractmethod
    def add(self, url: str, stop: StudyStop) -> None:
        """Remember that a URL has been told a stop, unless that is known."""


class MemoryDeliveries(Deliveries):
    """Deliveries in memory, for stores that are not databases; lost when the process ends."""

    def __init__(self) -> None:
        self.source = secrets.token_hex(8)
        self._stops: dict[str, set[StudyStop]] = {}
        self._lock = threading.Lock()

    def list_delivered(self, url: str) -> set[StudyStop]:
        with self._lock:
            return set(self._stops.get(url, ()))

    def begin(self, url: str, stops: Iterable[StudyStop]) -> None:
        with self._lock:
            self._stops.setdefault(url, {FIRST_USE, *stops})

    def has(self, url: str, stop: StudyStop) -> bool:
        with self._lock:
            return stop in self._stops.get(url, ())

    def add(self, url: str, stop: StudyStop) -> None:
        with self._lock:
            self._stops.setdefault(url, set()).add(stop)


class SqlDeliveries(Deliveries):
    """Deliveries in the database that holds the studies."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        ensure(store, TABLES)

    def list_delivered(self, url: str) -> set[StudyStop]:
        columns = [deliveries.columns[name] for name in StudyStop._fields]
        with self._store.transaction(write=False) as connection:
            rows = connection.execute(sa.select(*columns).where(deliveries.c.url == _hash(url)))
            return {StudyStop(*row) for row in rows}

    def begin(self, url: str, stops: Iterable[StudyStop]) -> None:
        self._insert(url, [FIRST_USE, *stops])

    def has(self, url: str, stop: StudyStop) -> bool:
        row = {"url": _hash(url), **stop._asdict()}
        query = sa.select(deliveries.c.url).filter_by(**row)
        with self._store.transaction(write=False) as connection:
            return connection.execute(query).first() is not None

    def add(self, url: str, stop: StudyStop) -> None:
        self._insert(url, [stop])

    def _insert(self, url: str, stops: list[StudyStop]) -> None:
        """Insert all rows, or none if one exists: another process was faster."""
        rows = [{"url": _hash(url), **stop._asdict()} for stop in stops]
        try:
            with self._store.transaction(write=True) as connection:
                connection.execute(sa.insert(deliveries), rows)
        except IntegrityError:
            return


def _hash(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def open_deliveries(store: Store) -> Deliveries:
    """Return the deliveries that belong to a store: in its database, or else in memory."""
    return SqlDeliveries(store) if isinstance(store, SqlStore) else MemoryDeliveries()
