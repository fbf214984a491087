"""Tables for keys and sessions, in the database that holds the studies, and how any such tables are created."""

from __future__ import annotations

import sqlalchemy as sa

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
