"""API keys: given out once, kept as salted hashes, revoked for good."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.live.stores.sql.store import SqlStore
from dbcare.server.access.roles import Role
from dbcare.server.access.tables import TABLES, digest, keys, new_secret

PREFIX = "dbc"
WRITTEN = re.compile(rf"{PREFIX}_([0-9a-f]{{12}})_([0-9a-f]{{64}})")


@dataclass(frozen=True)
class Key:
    """A key, without what makes it one."""

    id: str
    name: str
    role: Role
    created: str  # UTC, ISO 8601
    revoked: str | None = None


class Keys:
    """The keys in a database."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._any = False
        with store.transaction(write=True) as connection:
            TABLES.create_all(connection)

    def create(self, name: str, role: str) -> tuple[Key, str]:
        """A new key, and its text: PREFIX_id_secret. The text is nowhere else."""
        checked = validation.text("name", name)
        of_role = Role(validation.one_of("role", role, list(Role)))
        identity, salt, secret = secrets.token_hex(6), secrets.token_hex(16), new_secret()
        now = time.time()
        with self._store.transaction(write=True) as connection:
            connection.execute(
                sa.insert(keys).values(
                    id=identity, name=checked, role=str(of_role), salt=salt, hash=digest(salt, secret), created=now
                )
            )
        return Key(identity, checked, of_role, _time(now)), f"{PREFIX}_{identity}_{secret}"

    def listed(self) -> list[Key]:
        """All keys, the oldest first, revoked ones too."""
        with self._store.transaction(write=False) as connection:
            rows = connection.execute(sa.select(keys).order_by(keys.c.created, keys.c.id)).all()
        return [
            Key(row.id, row.name, Role(row.role), _time(row.created), row.revoked and _time(row.revoked))
            for row in rows
        ]

    def any(self) -> bool:
        """Whether a key was ever made: from then on nobody gets in without one."""
        if not self._any:
            with self._store.transaction(write=False) as connection:
                self._any = connection.execute(sa.select(keys.c.id).limit(1)).first() is not None
        return self._any

    def revoke(self, identity: str) -> None:
        """End a key, and the sessions that were opened with it."""
        with self._store.transaction(write=True) as connection:
            ended = connection.execute(
                sa.update(keys).where(keys.c.id == identity, keys.c.revoked.is_(None)).values(revoked=time.time())
            )
            if ended.rowcount == 0:
                raise InvalidValueError(f"`key` must be the id of a key that is in use but got {identity!r}.")

    def known(self, text: str) -> Key | None:
        """The key that a text is, unless it is none or revoked; takes as long for a wrong secret as for a right one."""
        written = WRITTEN.fullmatch(text)
        if written is None:
            return None
        identity, secret = written.groups()
        with self._store.transaction(write=False) as connection:
            row = connection.execute(sa.select(keys).where(keys.c.id == identity)).first()
        salt, stored = ("", "") if row is None else (row.salt, row.hash)
        same = hmac.compare_digest(digest(salt, secret), stored)
        if row is None or not same or row.revoked is not None:
            return None
        return Key(row.id, row.name, Role(row.role), _time(row.created))


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
