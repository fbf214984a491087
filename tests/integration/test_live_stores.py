"""Every store passes the same suite: memory, SQLite, and a real PostgreSQL server."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from postgres import server

from dbcare.live.memory import MemoryStore
from dbcare.live.sql import SqlStore
from dbcare.live.store import Store
from dbcare.testing.store_suite import StoreSuite

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("postgres")) as address:
        yield address


class TestMemory(StoreSuite):
    def make(self) -> Store:
        return MemoryStore()


class TestSqlite(StoreSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make(self) -> Store:
        return SqlStore(f"sqlite:///{self.folder / 'studies.db'}")


class TestPostgres(StoreSuite):
    numbers = itertools.count()

    @pytest.fixture(autouse=True)
    def _server(self, postgres: str) -> None:
        self.address = postgres

    def make(self) -> Store:
        name = f"suite{next(self.numbers)}"
        engine = sa.create_engine(self.address, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
        return SqlStore(self.address.replace("/postgres?", f"/{name}?"))
