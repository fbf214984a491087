"""The tables of keys and webhooks: created once by many servers, and then left alone."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from dbcare.server.access.keys import Keys
from dbcare.server.access.records import SqlRecords
from dbcare.server.webhook import SqlDeliveries
from dbcare.studies.stores.sql.store import SqlStore
from dbcare.studies.stores.sql.tables import CREATION_LOCK
from tests.helpers.postgres import Server

OPENERS = 10
NAMES = {"dbcare_keys", "dbcare_sessions", "dbcare_webhook_deliveries"}


@pytest.fixture(params=["sqlite", "postgresql"])
def create_database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """A function that returns the address of a new database."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path / f'{len(list(tmp_path.iterdir()))}.db'}"
    server: Server = request.getfixturevalue("postgres")
    return server.create_database


@pytest.mark.parametrize("_round", range(2))
def test_many_servers_start_at_once_on_a_new_database(create_database: Callable[[], str], _round: int) -> None:
    """Each with connections of its own: none fails, and all see the keys of the others."""
    address, ready = create_database(), threading.Barrier(OPENERS)
    stores: list[SqlStore] = []

    def start(number: int) -> str:
        store = SqlStore(address)
        stores.append(store)
        ready.wait(timeout=60)
        records = SqlRecords(store)
        SqlDeliveries(store)
        return Keys(records).create(f"key {number}", "worker")[1]

    with ThreadPoolExecutor(OPENERS) as pool:
        texts = list(pool.map(start, range(OPENERS)))
    found = [Keys(SqlRecords(stores[0])).find(text) for text in texts]
    assert [key.name for key in found if key is not None] == [f"key {number}" for number in range(OPENERS)]
    with stores[0].transaction(write=False) as connection:
        assert set(sa.inspect(connection).get_table_names()) >= NAMES
    for store in stores:
        store.close()


@contextmanager
def hold_write_lock(store: SqlStore) -> Iterator[None]:
    """Hold the locks that anybody needs who writes to an SQLite file, or creates tables in PostgreSQL."""
    if store.url.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(str(store.url.database))) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
        return
    engine = sa.create_engine(store.url)
    with engine.begin() as transaction:
        transaction.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": CREATION_LOCK})
        for name in NAMES:
            transaction.execute(sa.text(f"LOCK TABLE {name} IN SHARE MODE"))
        yield
    engine.dispose()


def test_tables_that_exist_are_only_looked_at(create_database: Callable[[], str]) -> None:
    """A server starts while another process writes for a long time."""
    store = SqlStore(create_database())
    _, text = Keys(SqlRecords(store)).create("me", "admin")
    SqlDeliveries(store)
    with hold_write_lock(store), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: Keys(SqlRecords(store)).find(text)).result(timeout=20) is not None
        assert pool.submit(lambda: SqlDeliveries(store).list_delivered("http://host")).result(timeout=20) == set()
    store.close()
