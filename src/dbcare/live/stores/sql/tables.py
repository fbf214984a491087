"""The tables behind `SqlStore`, and whether a database has them."""

from __future__ import annotations

import sqlalchemy as sa

from dbcare.errors import StorageError

VERSION = 1
CREATION_LOCK = 0xDBCA2E  # any number, the same for all that create these tables in PostgreSQL

TABLES = sa.MetaData()
about = sa.Table("dbcare", TABLES, sa.Column("version", sa.Integer, nullable=False))
studies = sa.Table(
    "studies",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String, nullable=False, unique=True),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("identity", sa.BigInteger, nullable=False),  # by chance: another one even in a file made anew
)
events = sa.Table(
    "events",
    TABLES,
    sa.Column("study", sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("trial", sa.Integer, nullable=False),
    sa.Column("arm", sa.Integer, nullable=False),
    sa.Column("reward", sa.Double),
    sa.Column("charged", sa.Boolean, nullable=False),
    sa.Column("expires", sa.Double),
    sa.Column("worker", sa.String),
    sa.Column("note", sa.String),
    sa.Index("events_of_trials", "study", "trial"),
    sa.Index(
        "events_with_notes",
        "study",
        "note",
        sqlite_where=sa.text("note IS NOT NULL"),
        postgresql_where=sa.text("note IS NOT NULL"),
    ),
    sqlite_with_rowid=False,  # kept in the order of the key, without an index beside it
)
summaries = sa.Table(
    "summaries",
    TABLES,
    sa.Column("study", sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
)


def are_there(connection: sa.Connection, shown: str) -> bool:
    """Whether the tables exist; an error if they are of another version, or not ours. Changes nothing."""
    found = set(sa.inspect(connection).get_table_names())
    if about.name not in found:
        if foreign := sorted(found & set(TABLES.tables)):
            raise StorageError(
                f"{shown} must be empty or made by dbcare but got tables of something else called "
                f"{', '.join(foreign)}: give another database."
            )
        return False
    version = connection.execute(sa.select(about.c.version)).scalar()
    if version != VERSION:
        raise StorageError(
            f"{shown} must have version {VERSION} of the tables but got {version}: use the dbcare that made it."
        )
    return True


def create(connection: sa.Connection, shown: str) -> None:
    """Make the tables, all or none, unless they are there."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(CREATION_LOCK)))
    if not are_there(connection, shown):
        TABLES.create_all(connection)
        connection.execute(sa.insert(about).values(version=VERSION))
