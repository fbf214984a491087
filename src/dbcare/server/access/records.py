"""Where keys and sessions are kept, and their tables in a database.

The service uses `AccessRecords` and nothing more. If the studies are in a database, the records are next to them; with
any other store they are in the memory of the process, unless you pass records of your own to `make_app`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from dbcare.studies.stores.base import Store
from dbcare.studies.stores.sql.store import SqlStore
from dbcare.studies.stores.sql.tables import lock_creation

TABLES = sa.MetaData()
keys = sa.Table(
    "dbcare_keys",
    TABLES,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("role", sa.String(10), nullable=False),
    sa.Column("salt", sa.String(32), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("revoked", sa.Double),
    sa.Column("expires", sa.Double),
    sa.Column("used", sa.Double),
)
sessions = sa.Table(
    "dbcare_sessions",
    TABLES,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("key", sa.ForeignKey("dbcare_keys.id", ondelete="CASCADE"), nullable=False),
    sa.Column("csrf", sa.String(64), nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
)


def ensure(store: SqlStore, tables: sa.MetaData) -> None:
    """Create the tables; write nothing if all exist."""
    with store.transaction(write=False) as connection:
        if set(tables.tables) <= set(sa.inspect(connection).get_table_names()):
            return
    with store.transaction(write=True) as connection:
        lock_creation(connection)
        tables.create_all(connection)


@dataclass(frozen=True)
class KeyRecord:
    """A key as it is stored. Times are in seconds since 1970."""

    id: str
    name: str
    role: str
    salt: str
    hash: str
    created: float
    revoked: float | None = None
    expires: float | None = None
    used: float | None = None

    def is_active(self, now: float) -> bool:
        """Return whether the key is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)


@dataclass(frozen=True)
class SessionRecord:
    """A browser's session as it is stored: hash of its cookie, id of its key, and the token that its forms carry."""

    hash: str
    key: str
    csrf: str
    expires: float


class AccessRecords(ABC):
    """Keys and sessions; safe to use from several threads."""

    @abstractmethod
    def add_key(self, record: KeyRecord) -> None:
        """Add a key."""

    @abstractmethod
    def list_keys(self) -> list[KeyRecord]:
        """List all keys, oldest first, including revoked and expired ones."""

    @abstractmethod
    def find_key(self, identity: str) -> KeyRecord | None:
        """Return the key with that id, active or not; None if there is none."""

    @abstractmethod
    def revoke_key(self, identity: str, at: float) -> bool:
        """Revoke a key; return whether it had not been revoked."""

    @abstractmethod
    def note_uses(self, used: dict[str, float]) -> None:
        """Remember when keys were last used, by their ids."""

    @abstractmethod
    def add_session(self, record: SessionRecord, now: float) -> None:
        """Add a session, and remove those that have expired."""

    @abstractmethod
    def find_session(self, session_hash: str) -> SessionRecord | None:
        """Return the session with that hash, expired or not; None if there is none."""

    @abstractmethod
    def remove_session(self, session_hash: str) -> None:
        """Remove a session, if it exists."""


class MemoryRecords(AccessRecords):
    """Records in memory, which are lost when the process ends."""

    def __init__(self) -> None:
        self._keys: dict[str, KeyRecord] = {}
        self._sessions: dict[str, SessionRecord] = {}
        self._lock = threading.Lock()

    def add_key(self, record: KeyRecord) -> None:
        with self._lock:
            self._keys[record.id] = record

    def list_keys(self) -> list[KeyRecord]:
        with self._lock:
            return sorted(self._keys.values(), key=lambda record: (record.created, record.id))

    def find_key(self, identity: str) -> KeyRecord | None:
        return self._keys.get(identity)

    def revoke_key(self, identity: str, at: float) -> bool:
        with self._lock:
            record = self._keys.get(identity)
            if record is None or record.revoked is not None:
                return False
            self._keys[identity] = replace(record, revoked=at)
            return True

    def note_uses(self, used: dict[str, float]) -> None:
        with self._lock:
            for identity, at in used.items():
                self._keys[identity] = replace(self._keys[identity], used=at)

    def add_session(self, record: SessionRecord, now: float) -> None:
        with self._lock:
            valid = {key: session for key, session in self._sessions.items() if session.expires >= now}
            self._sessions = {**valid, record.hash: record}

    def find_session(self, session_hash: str) -> SessionRecord | None:
        return self._sessions.get(session_hash)

    def remove_session(self, session_hash: str) -> None:
        with self._lock:
            self._sessions.pop(session_hash, None)


class SqlRecords(AccessRecords):
    """Records in the database that holds the studies."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        ensure(store, TABLES)

    def add_key(self, record: KeyRecord) -> None:
        self._change(sa.insert(keys).values(**vars(record)))

    def list_keys(self) -> list[KeyRecord]:
        with self._store.transaction(write=False) as connection:
            rows = connection.execute(sa.select(keys).order_by(keys.c.created, keys.c.id)).all()
        return [KeyRecord(**row._mapping) for row in rows]

    def find_key(self, identity: str) -> KeyRecord | None:
        row = self._first(sa.select(keys).where(keys.c.id == identity))
        return None if row is None else KeyRecord(**row._mapping)

    def revoke_key(self, identity: str, at: float) -> bool:
        is_active = (keys.c.id == identity) & keys.c.revoked.is_(None)
        return self._change(sa.update(keys).where(is_active).values(revoked=at)) > 0

    def note_uses(self, used: dict[str, float]) -> None:
        with self._store.transaction(write=True) as connection:
            for identity, at in sorted(used.items()):  # in the same order in every process, so that none can deadlock
                is_later = (keys.c.id == identity) & (keys.c.used.is_(None) | (keys.c.used < at))
                connection.execute(sa.update(keys).where(is_later).values(used=at))

    def add_session(self, record: SessionRecord, now: float) -> None:
        with self._store.transaction(write=True) as connection:
            connection.execute(sa.delete(sessions).where(sessions.c.expires < now))
            connection.execute(sa.insert(sessions).values(**vars(record)))

    def find_session(self, session_hash: str) -> SessionRecord | None:
        row = self._first(sa.select(sessions).where(sessions.c.hash == session_hash))
        return None if row is None else SessionRecord(**row._mapping)

    def remove_session(self, session_hash: str) -> None:
        self._change(sa.delete(sessions).where(sessions.c.hash == session_hash))

    def _first(self, query: sa.Select[Any]) -> sa.Row[Any] | None:
        with self._store.transaction(write=False) as connection:
            return connection.execute(query).first()

    def _change(self, statement: sa.Insert | sa.Update | sa.Delete) -> int:
        with self._store.transaction(write=True) as connection:
            return connection.execute(statement).rowcount


def open_records(store: Store) -> AccessRecords:
    """Return the records that belong to a store: in its database, or else in memory."""
    return SqlRecords(store) if isinstance(store, SqlStore) else MemoryRecords()
