"""Tables for keys and sessions, in the database that holds the studies, and how any such tables are created."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn

from dbcare.live.stores.sql.store import SqlStore
from dbcare.live.stores.sql.tables import lock_creation

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
    sa.Column("expires", sa.Double),  # databases from before have no such column
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
    """Create the tables, and columns that an older version did not have; write nothing if all exist."""
    with store.transaction(write=False) as connection:
        if not _missing_columns(connection, tables):
            return
    with store.transaction(write=True) as connection:
        lock_creation(connection)
        tables.create_all(connection)
        for column in _missing_columns(connection, tables):
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {definition}")


def _missing_columns(connection: sa.Connection, tables: sa.MetaData) -> list[sa.Column[object]]:
    """Return the columns that the database does not have, including all of a table that it does not have."""
    inspector = sa.inspect(connection)
    existing = set(inspector.get_table_names())
    missing: list[sa.Column[object]] = []
    for table in tables.sorted_tables:
        names = {column["name"] for column in inspector.get_columns(table.name)} if table.name in existing else set()
        missing += [column for column in table.columns if column.name not in names]
    return missing
