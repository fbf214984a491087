"""The tables of `SqlStore`, and whether a database has them."""

from __future__ import annotations

import sqlalchemy as sa

from dbcare.errors import StorageError

LAYOUT = 8  # raised by every change of what is stored; there is no upgrade until the first release
CREATION_LOCK = 0xDBCA2E  # any number, as long as everyone who creates these tables in PostgreSQL uses it

# Only notes by which trials are found again, which are short: an index limits the size of what it holds.
IS_SOUGHT = sa.text("kind = 'asked' AND note IS NOT NULL")

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
    sa.Column("created_by", sa.String),
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
    sa.Column("block", sa.Integer),
    sa.Column("price", sa.Double),
    sa.Column("number", sa.BigInteger),
    sa.Column("tag", sa.String),
    sa.Index("events_of_trials", "study", "trial"),
    sa.Index("asks_with_notes", "study", "note", sqlite_where=IS_SOUGHT),
    sqlite_with_rowid=False,  # stored in the order of the key, without a separate index
)
summaries = sa.Table(
    "summaries",
    TABLES,
    sa.Column("study", sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
)

# How each study stands, for lists: small rows, since a changed row is written as a whole.
standings = sa.Table(
    "standings",
    TABLES,
    sa.Column("study", sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("asked", sa.BigInteger, nullable=False),
    sa.Column("rewards", sa.BigInteger, nullable=False),
    sa.Column("spent", sa.Double, nullable=False),
    sa.Column("expected_loss", sa.Double),
    sa.Column("recommended", sa.String, nullable=False),
    sa.Column("verdict", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
    sa.Column("curve", sa.String, nullable=False),
)


def exist(connection: sa.Connection, shown: str) -> bool:
    """Return whether the database has the tables; raise if it has tables of another layout, or of somebody else."""
    names = set(sa.inspect(connection).get_table_names())
    if about.name not in names:
        if foreign := sorted(names & set(TABLES.tables)):
            raise StorageError(
                f"{shown} already has tables named {', '.join(foreign)} that dbcare did not create; "
                "use another database."
            )
        return False
    check_layout(connection, shown)
    return True


def check_layout(connection: sa.Connection, shown: str) -> None:
    """Raise if the tables have another layout."""
    found = connection.execute(sa.select(about.c.version)).scalar()
    if found != LAYOUT:
        raise layout_error(found, shown)


def layout_error(found: int | None, shown: str) -> StorageError:
    """Return the error to raise if the tables have another layout."""
    return StorageError(
        f"{shown} has layout {found} of the tables, but this dbcare reads layout {LAYOUT} only; "
        "open it with the dbcare that created it, or use another database."
    )


def lock_creation(connection: sa.Connection) -> None:
    """Let those who create tables in PostgreSQL take turns; in SQLite, all who write do."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(CREATION_LOCK)))


def create(connection: sa.Connection, shown: str) -> bool:
    """Create the tables, all or none, unless they exist; return whether they were created."""
    lock_creation(connection)
    if exist(connection, shown):
        return False
    if connection.dialect.name == "postgresql":  # above, it would load that dialect for every user of SQLite
        (with_notes,) = (index for index in events.indexes if index.name == "asks_with_notes")
        with_notes.dialect_options["postgresql"]["where"] = IS_SOUGHT
    TABLES.create_all(connection)
    connection.execute(sa.insert(about).values(version=LAYOUT))
    return True


def change_nothing(connection: sa.Connection) -> None:
    """Write something that is there already, with the locks and about the pages that a change of a study takes."""
    connection.execute(sa.update(about).values(version=about.c.version))
    if connection.dialect.name == "postgresql":  # where the rows of a study may be locked for a while
        names = ", ".join(table.name for table in (studies, events, standings, summaries))
        connection.execute(sa.text(f"LOCK TABLE {names} IN ROW EXCLUSIVE MODE"))
        return
    first = sa.select(sa.func.min(studies.c.id)).scalar_subquery()
    connection.execute(sa.update(studies).where(studies.c.id == first).values(created=studies.c.created))
    connection.execute(sa.update(standings).where(standings.c.study == first).values(state=standings.c.state))
    one = (events.c.study == first) & (events.c.position == 1)
    connection.execute(sa.update(events).where(one).values(at=events.c.at))
