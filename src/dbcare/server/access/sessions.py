"""Browser sessions: opened with a key; they end when the user signs out, after some hours, or with their key."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass

from dbcare.server.access.keys import Key, make_key
from dbcare.server.access.records import AccessRecords, SessionRecord
from dbcare.server.access.secrets import make_digest, make_secret

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
