"""Tables for keys and sessions, in the database that holds the studies."""

from __future__ import annotations

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
