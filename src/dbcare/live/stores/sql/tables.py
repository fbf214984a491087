"""The tables of `SqlStore`, and whether a database has them."""

from __future__ import annotations

import sqlalchemy as sa

from dbcare.errors import StorageError

VERSION = 1
CREATION_LOCK = 0xDBCA2E  # any number, as long as everyone who creates these tables in PostgreSQL uses it

TABLES = sa.MetaData()
about = sa.Table("dbcare", TABLES, sa.Column("version", sa.Integer, nullable=False))
studies = sa.Table(
    "studies",
    TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String, nullable=False, unique=True),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("identity", sa.BigInteger, nullable=False),  # random, so that it differs even in a file created again
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
    sqlite_with_rowid=False,  # stored in the order of the key, without a separate index
)
summaries = sa.Table(
    "summaries",
    TABLES,
    sa.Column("study", sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
)


def exist(connection: sa.Connection, shown: str) -> bool:
    """Return whether the tables exist; raise if they are another version's, or not ours. Changes nothing."""
    names = set(sa.inspect(connection).get_table_names())
    if about.name not in names:
        if foreign := sorted(names & set(TABLES.tables)):
            raise StorageError(
                f"{shown} already has tables named {', '.join(foreign)} that dbcare did not create; "
                "use another database."
            )
        return False
    version = connection.execute(sa.select(about.c.version)).scalar()
    if version != VERSION:
        raise StorageError(
            f"{shown} has version {version} of the tables, and this dbcare reads version {VERSION}; "
            "open it with the dbcare that created it."
        )
    return True


def create(connection: sa.Connection, shown: str) -> None:
    """Create the tables, all or none, unless they exist."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(CREATION_LOCK)))
    if not exist(connection, shown):
        TABLES.create_all(connection)
        connection.execute(sa.insert(about).values(version=VERSION))
