"""What a database complains about, said in one sentence with what to do about it, and without passwords."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from dbcare.errors import StorageError

BUSY = "must be free in time but another process holds it: try again once that one has ended"
FULL = "must have room but its disk is full: make room and do it again"
READ_ONLY = "must be writable but is read-only: allow writing to it"
DAMAGED = "must be a sound database but is damaged: put a backup in its place"
LOST = "must stay connected but the connection was lost: do it again, what was told just then may be told twice"
NO_TABLES = "must have the tables of dbcare but they are gone: put a backup in their place, or create the study anew"
NO_DATABASE = "must name a database but there is none of that name: create it first"
NO_ENTRY = "must be open to this user but is not: check user and password"
NO_SERVER = "must be the address of a running server but none answers there: start it, or correct the address"

# How names of SQLite's errors and numbers of PostgreSQL's begin.
TROUBLES = {
    "SQLITE_BUSY": BUSY,
    "SQLITE_FULL": FULL,
    "SQLITE_READONLY": READ_ONLY,
    "SQLITE_CANTOPEN": "must be a file that can be opened and written, as must its folder, but is not: check both",
    "SQLITE_NOTADB": "must be a database of SQLite but is another kind of file: give another address",
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_IOERR": "must be on a disk that reads and writes but this one fails: see to it and do it again",
    "25006": READ_ONLY,
    "28": NO_ENTRY,
    "3D000": NO_DATABASE,
    "42P01": NO_TABLES,
    "42501": "must let this user create and write tables but does not: ask for that right",
    "53100": FULL,
    "55P03": BUSY,
    "57P03": "must be ready but is starting or stopping: do it again in a moment",
    "57P": LOST,
    "XX001": DAMAGED,
}
# A connection that failed has no number, and some errors of SQLite have none of their own.
UNNUMBERED = {
    "no such table": NO_TABLES,
    "authentication failed": NO_ENTRY,
    "no password supplied": NO_ENTRY,
    "does not exist": NO_DATABASE,
    "starting up": TROUBLES["57P03"],
    "shutting down": TROUBLES["57P03"],
    "closed the connection": LOST,
    "connection is lost": LOST,
    "Connection refused": NO_SERVER,
    "No such file or directory": NO_SERVER,
    "resolve host": NO_SERVER,
    "translate host name": NO_SERVER,
}


def shown(url: sa.URL) -> str:
    """An address without its password, which may also be among its options."""
    secret = [name for name in url.query if "pass" in name]
    return url.difference_update_query(secret).render_as_string(hide_password=True)


def shown_as_given(address: str) -> str:
    """An address that cannot be read, without what may be a password in it."""
    start = address.find("//") + 2 if "//" in address else 0
    return repr(f"{address[:start]}..." if set(address[start:]) & set(":@=") else address)


def storage_error(url: sa.URL, failure: Exception) -> StorageError:
    """What to raise instead."""
    original = failure.orig if isinstance(failure, DBAPIError) else failure
    said = " ".join(str(original).split())
    number = getattr(original, "sqlite_errorname", None) or getattr(original, "sqlstate", None)
    fitting = (
        [trouble for mark, trouble in UNNUMBERED.items() if mark in said]
        if number in (None, "SQLITE_ERROR")
        else [trouble for mark, trouble in TROUBLES.items() if number.startswith(mark)]
    )
    if fitting:
        return StorageError(f"{shown(url)} {fitting[0]}.")
    return StorageError(f"{shown(url)} must answer but said: {_without_password(said, url)}.")


def damaged(url: sa.URL, failure: Exception) -> StorageError:
    """What to raise where something is stored that was never written."""
    return StorageError(f"{shown(url)} {DAMAGED} ({failure}).")


def _without_password(said: str, url: sa.URL) -> str:
    secrets = [url.password, *(value for name, value in url.query.items() if "pass" in name)]
    for secret in secrets:
        if secret and isinstance(secret, str):
            said = said.replace(secret, "***")
    return said
