"""API keys, for programs, and sessions, for browsers, and how both are hashed."""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import re
import secrets
import shlex
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex

from dbcare.base import checks
from dbcare.base.times import Lease, parse_lease
from dbcare.errors import DbcareError, InvalidValueError
from dbcare.server.access.records import AccessRecords, KeyRecord, SessionRecord
from dbcare.server.access.roles import Role

SECRET_BYTES = 32


def make_secret() -> str:
    """Return 256 random bits, as text without `_` or `-`."""
    return token_hex(SECRET_BYTES)


def make_digest(salt: str, secret: str) -> str:
    """Return the hash of a secret; a slow hash is not needed, since secrets are long and random."""
    return hashlib.sha256(f"{salt}:{secret}".encode()).hexdigest()


PREFIX = "dbc"
LOG = logging.getLogger("dbcare")
USE_SECONDS = 60.0  # between two times of storing when keys were used
DAY = 86400.0
WARNING_SECONDS = 7.0 * DAY  # before a key expires
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
    used: str | None = None  # to the minute or so

    def seconds_left(self) -> float:
        """Return the seconds until the key expires; infinite if it never does."""
        return math.inf if self.expires is None else _read_time(self.expires) - time.time()

    def expires_soon(self) -> bool:
        """Return whether the key expires within a tenth of its time, and within a week."""
        left = self.seconds_left()
        return 0.0 < left < min(WARNING_SECONDS, 0.1 * (left + time.time() - _read_time(self.created)))

    def why_invalid(self) -> str | None:
        """Return why the key is not valid, as the end of a sentence; None if it is valid."""
        if self.revoked is not None:
            return f"was revoked at {self.revoked}"
        return None if self.seconds_left() > 0.0 else f"expired at {self.expires}"


class Keys:
    """The keys of a service."""

    def __init__(self, records: AccessRecords, use_seconds: float = USE_SECONDS) -> None:
        self._records = records
        self._any = False
        self._use_seconds = use_seconds
        self._used: dict[str, float] = {}  # keys used since that was last stored, and when
        self._warned: dict[str, float] = {}  # keys that expire soon, and when the log last said so
        self._lock = threading.Lock()

    def create(self, name: str, role: str, expires: Lease = None) -> tuple[Key, str]:
        """Create a key; return it with its text, PREFIX_id_secret, which is stored nowhere.

        `expires` is how long the key is valid, such as "90d". Default: until it is revoked.
        """
        checks.text("name", name)
        checks.one_of("role", role, list(Role))
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
        return make_key(record), f"{PREFIX}_{identity}_{secret}"

    def list_all(self) -> list[Key]:
        """List all keys, oldest first, including revoked and expired ones."""
        return [make_key(record) for record in self._records.list_keys()]

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
        """Return the active key matching `text`, or None."""
        key = self.recognize(text)
        return key if key is not None and key.why_invalid() is None else None

    def recognize(self, text: str) -> Key | None:
        """Return the key matching `text`, even if it has expired or was revoked; None if there is none.

        A wrong secret takes as long to reject as a right one.
        """
        match = KEY_TEXT.fullmatch(text)
        if match is None:
            return None
        identity, secret = match.groups()
        record = self._records.find_key(identity)
        salt, stored = ("", "") if record is None else (record.salt, record.hash)
        is_right = hmac.compare_digest(make_digest(salt, secret), stored)
        return None if record is None or not is_right else make_key(record)

    def note_use(self, key: Key) -> None:
        """Remember that a key was used, which is stored once a minute; warn once a day if it expires soon."""
        now = time.time()
        with self._lock:
            if not self._used:
                timer = threading.Timer(self._use_seconds, self._store_uses)
                timer.daemon = True
                timer.start()
            self._used[key.id] = now
            warns = key.expires_soon() and now - self._warned.get(key.id, -math.inf) >= DAY
            if warns:
                self._warned[key.id] = now
        if warns:
            LOG.warning(
                "The key %s of %r expires at %s; create another one: dbcare keys create --role %s --name %s",
                key.id,
                key.name,
                key.expires,
                key.role,
                shlex.quote(key.name),
            )

    def _store_uses(self) -> None:
        with self._lock:
            used, self._used = self._used, {}
        with suppress(DbcareError):  # whoever needs the database reports it
            self._records.note_uses(used)


def make_key(record: KeyRecord) -> Key:
    """Return a key, without its secret."""
    times = (record.revoked, record.expires, record.used)
    return Key(
        record.id,
        record.name,
        Role(record.role),
        _iso_time(record.created),
        *(None if at is None else _iso_time(at) for at in times),
    )


def _iso_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _read_time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


SESSION_SECONDS = 12 * 3600.0


@dataclass(frozen=True)
class BrowserSession:
    """Who is signed in, and the token that their forms must carry."""

    key: Key
    csrf: str

    def issued(self, token: str | None) -> bool:
        """Return whether a form's token is that of this session."""
        return token is not None and hmac.compare_digest(token.encode(), self.csrf.encode())


class Sessions:
    """The sessions of a service."""

    def __init__(self, records: AccessRecords) -> None:
        self._records = records

    def open(self, key: Key) -> str:
        """Open a session; return the text of its cookie, which is stored nowhere."""
        text, now = make_secret(), time.time()
        self._records.add_session(
            SessionRecord(make_digest("", text), key.id, make_secret(), now + SESSION_SECONDS), now
        )
        return text

    def find(self, text: str) -> BrowserSession | None:
        """Return the session of a cookie; None if it has ended, or its key was revoked or has expired."""
        session, now = self._records.find_session(make_digest("", text)), time.time()
        if session is None or session.expires < now:
            return None
        key = self._records.find_key(session.key)
        return None if key is None or not key.is_active(now) else BrowserSession(make_key(key), session.csrf)

    def close(self, text: str) -> None:
        """End the session of a cookie."""
        self._records.remove_session(make_digest("", text))
