"""Sessions of browsers: opened with a key, kept as hashes, ended by signing out, by time, or with the key."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass

import sqlalchemy as sa

from dbcare.live.stores.sql.store import SqlStore
from dbcare.server.access.keys import Key
from dbcare.server.access.roles import Role
from dbcare.server.access.tables import digest, keys, new_secret, sessions

LASTS = 12 * 3600.0  # seconds


@dataclass(frozen=True)
class BrowserSession:
    """Who looks, and the token that forms have to bring along."""

    role: Role
    name: str
    csrf: str

    def wrote(self, token: str | None) -> bool:
        """Whether a form comes from a page of this session."""
        return token is not None and hmac.compare_digest(token.encode(), self.csrf.encode())


class Sessions:
    """The sessions in a database."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def open(self, key: Key) -> str:
        """A new session; its text goes into the cookie and nowhere else."""
        text, now = new_secret(), time.time()
        with self._store.transaction(write=True) as connection:
            connection.execute(sa.delete(sessions).where(sessions.c.expires < now))
            connection.execute(
                sa.insert(sessions).values(hash=digest("", text), key=key.id, csrf=new_secret(), expires=now + LASTS)
            )
        return text

    def known(self, text: str) -> BrowserSession | None:
        """The session of a cookie, if it goes on."""
        with self._store.transaction(write=False) as connection:
            row = connection.execute(
                sa.select(keys.c.role, keys.c.name, sessions.c.csrf)
                .join_from(sessions, keys)
                .where(sessions.c.hash == digest("", text), sessions.c.expires >= time.time(), keys.c.revoked.is_(None))
            ).first()
        return None if row is None else BrowserSession(Role(row.role), row.name, row.csrf)

    def close(self, text: str) -> None:
        """Sign out."""
        with self._store.transaction(write=True) as connection:
            connection.execute(sa.delete(sessions).where(sessions.c.hash == digest("", text)))
