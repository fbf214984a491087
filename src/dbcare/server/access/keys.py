"""API keys: shown once, stored as salted hashes, valid until they expire or are revoked for good."""

from __future__ import annotations

import hmac
import math
import re
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.live.leases import Lease, parse_lease
from dbcare.server.access.records import AccessRecords, KeyRecord
from dbcare.server.access.roles import Role
from dbcare.server.access.secrets import make_digest, make_secret

PREFIX = "dbc"
KEY_TEXT = re.compile(rf"{PREFIX}_([0-9a-f]{{12}})_([0-9a-f]{{64}})")


@dataclass(frozen=True)
class Key:
    """A key, without its secret."""

    id: str
    name: str
    role: Role
    created: str  # UTC, ISO 8601
    revoked: str | None = None
    expires: str | None = None

    def seconds_left(self) -> float:
        """Return the seconds until the key expires; infinite if it never does."""
        return math.inf if self.expires is None else datetime.fromisoformat(self.expires).timestamp() - time.time()


class Keys:
    """The keys of a service."""

    def __init__(self, records: AccessRecords) -> None:
        self._records = records
        self._any = False

    def create(self, name: str, role: str, expires: Lease = None) -> tuple[Key, str]:
        """Create a key; return it with its text, PREFIX_id_secret, which is stored nowhere.

        `expires` is how long the key is valid, such as "90d". Default: until it is revoked.
        """
        validation.text("name", name)
        validation.one_of("role", role, list(Role))
        duration, now = parse_lease(expires, "expires"), time.time()
        identity, salt, secret = secrets.token_hex(6), secrets.token_hex(16), make_secret()
        record = KeyRecord(
            identity,
            name,
            str(role),
            salt,
            make_digest(salt, secret),
            now,
            expires=None if duration is None else now + duration,
        )
        self._records.add_key(record)
        return _make_key(record), f"{PREFIX}_{identity}_{secret}"

    def list_all(self) -> list[Key]:
        """List all keys, oldest first, including revoked and expired ones."""
        return [_make_key(record) for record in self._records.list_keys()]

    def any(self) -> bool:
        """Return whether a key was ever created; from then on, nobody has access without one."""
        if not self._any:
            self._any = bool(self._records.list_keys())
        return self._any

    def revoke(self, identity: str) -> None:
        """Revoke a key, which ends the sessions that were opened with it."""
        if not self._records.revoke_key(identity, time.time()):
            raise InvalidValueError(f"`key` must be the id of an active key but got {identity!r}.")

    def find(self, text: str) -> Key | None:
        """Return the active key matching `text`, or None; a wrong secret takes as long to reject as a right one."""
        match = KEY_TEXT.fullmatch(text)
        if match is None:
            return None
        identity, secret = match.groups()
        record = self._records.find_key(identity)
        salt, stored = ("", "") if record is None else (record.salt, record.hash)
        is_right = hmac.compare_digest(make_digest(salt, secret), stored)
        if record is None or not is_right or not record.is_active(time.time()):
            return None
        return _make_key(record)


def _make_key(record: KeyRecord) -> Key:
    revoked, expires = (None if at is None else _iso_time(at) for at in (record.revoked, record.expires))
    return Key(record.id, record.name, Role(record.role), _iso_time(record.created), revoked, expires)


def _iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
