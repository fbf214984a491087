"""What the server keeps beside the studies, in the same database: no key and no session as it was given out."""

from __future__ import annotations

import hashlib
import secrets

import sqlalchemy as sa

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
)
sessions = sa.Table(
    "dbcare_sessions",
    TABLES,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("key", sa.ForeignKey("dbcare_keys.id", ondelete="CASCADE"), nullable=False),
    sa.Column("csrf", sa.String(64), nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
)


def new_secret() -> str:
    """256 bits of chance, as text without `_` or `-`."""
    return secrets.token_hex(32)


def digest(salt: str, secret: str) -> str:
    """Of a secret that is itself random and long, so that no slow hash is needed."""
    return hashlib.sha256(f"{salt}:{secret}".encode()).hexdigest()
