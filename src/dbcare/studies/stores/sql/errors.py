"""Errors of databases, as one sentence that says what to do and shows no password."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from dbcare.errors import InvalidValueError, StorageError

BUSY = "is locked by another process; retry when it finishes"
FULL = "is on a full disk; free some space and retry"
READ_ONLY = "is read-only; allow writing to it and its folder"
CORRUPT = "is corrupted; restore a backup"
LOST = "dropped the connection; retry (it's safe to tell a reward twice)"
NO_TABLES = "has lost its tables; restore a backup, or create the study again"
NO_DATABASE = "does not exist; create the database first"
NO_ENTRY = "does not admit this user; check the user name and password"
NO_SERVER = "does not respond; start the server, or correct the address"
SLOW = "took too long; find out what keeps the database busy, and retry"
NOT_READY = "is starting or stopping; retry in a moment"

# By the prefix of SQLite's error names and PostgreSQL's error codes.
BY_CODE = {
    "SQLITE_BUSY": BUSY,
    "SQLITE_FULL": FULL,
    "SQLITE_READONLY": READ_ONLY,
    "SQLITE_CANTOPEN": "cannot be opened for writing; check that its folder exists, and the permissions of both",
    "SQLITE_NOTADB": "is not an SQLite database; use another file",
    "SQLITE_CORRUPT": CORRUPT,
    "SQLITE_IOERR": "is on a disk that fails; check the disk and retry",
    "25006": READ_ONLY,
    "28": NO_ENTRY,
    "3D000": NO_DATABASE,
    "42P01": NO_TABLES,
    "42501": "does not let this user create and write tables; ask for that permission",
    "53100": FULL,
    "55P03": BUSY,
    "57014": SLOW,  # by its statement_timeout
    "57P03": NOT_READY,
    "57P": LOST,
    "XX001": CORRUPT,
}
# A failed connection has no code, and some SQLite errors share a generic one.
BY_TEXT = {
    "no such table": NO_TABLES,
    "authentication failed": NO_ENTRY,
    "no password supplied": NO_ENTRY,
    "does not exist": NO_DATABASE,
    "starting up": NOT_READY,
    "in recovery mode": NOT_READY,
    "shutting down": NOT_READY,
    "closed the connection": LOST,
    "connection is lost": LOST,
    "QueuePool limit": "keeps all connections of this process busy; find out what does, or raise pool_size",
    "Connection refused": NO_SERVER,
    "timeout expired": NO_SERVER,
    "No such file or directory": NO_SERVER,
    "resolve host": NO_SERVER,
    "translate host name": NO_SERVER,
}


# A value that cannot be stored, in the words of a driver or by a limit or rule of the database.
REFUSALS = (
    "22",
    "23514",
    "54",
    "SQLITE_TOOBIG",
    "SQLITE_MISMATCH",
    "SQLITE_CONSTRAINT_CHECK",
    "SQLITE_CONSTRAINT_TRIGGER",
)


def show_url(url: sa.URL) -> str:
    """Return an address without its password, which may also be among its options."""
    secret = [name for name in url.query if "pass" in name]
    return url.difference_update_query(secret).render_as_string(hide_password=True)


def show_unreadable(address: str) -> str:
    """Return an address that cannot be parsed, without what may be a password in it."""
    start = address.find("//") + 2 if "//" in address else 0
    return repr(f"{address[:start]}..." if set(address[start:]) & set(":@=") else address)


def translate_error(url: sa.URL, failure: Exception, refusal: type[Exception]) -> StorageError | InvalidValueError:
    """Return the error to raise instead of the database's own.

    `refusal` is the driver's error for a value that it does not take (PEP 249's DataError).
    """
    original = failure.orig if isinstance(failure, DBAPIError) else failure
    message = " ".join(str(original).split())
    code = getattr(original, "sqlite_errorname", None) or getattr(original, "sqlstate", None)
    if isinstance(original, refusal | UnicodeEncodeError) or (code or "").startswith(REFUSALS):
        reason = str(original).partition("\n")[0]  # the lines after it quote what is stored
        return InvalidValueError(f"The database refuses a value: {_without_password(reason, url)}.")
    if code in (None, "SQLITE_ERROR"):
        explanations = [explanation for mark, explanation in BY_TEXT.items() if mark in message]
    else:
        explanations = [explanation for mark, explanation in BY_CODE.items() if code.startswith(mark)]
    if explanations:
        return StorageError(f"{show_url(url)} {explanations[0]}.")
    return StorageError(f"{show_url(url)} failed: {_without_password(message, url)}.")


def corruption_error(url: sa.URL, failure: Exception) -> StorageError:
    """Return the error to raise if the stored data cannot be what dbcare wrote."""
    return StorageError(f"{show_url(url)} {CORRUPT} ({failure}).")


def _without_password(message: str, url: sa.URL) -> str:
    secrets = [url.password, *(value for name, value in url.query.items() if "pass" in name)]
    for secret in secrets:
        if secret and isinstance(secret, str):
            message = message.replace(secret, "***")
    return message
