"""Every store passes the same suite: memory, SQLite, and a real PostgreSQL server."""

from pathlib import Path

import pytest

from dbcare.studies.stores.base import Store
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.stores.sql.store import SqlStore
from dbcare.testing import StoreSuite
from tests.helpers.postgres import Server


class TestMemory(StoreSuite):
    def make(self) -> Store:
        return MemoryStore()


class TestSqlite(StoreSuite):
    @pytest.fixture(autouse=True)
    def _set_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make(self) -> Store:
        return SqlStore(f"sqlite:///{self.folder / 'studies.db'}")

    def open_again(self) -> Store:
        return self.make()


class TestPostgres(StoreSuite):
    @pytest.fixture(autouse=True)
    def _set_server(self, postgres: Server) -> None:
        self.server = postgres

    def make(self) -> Store:
        self.address = self.server.create_database()
        return SqlStore(self.address)

    def open_again(self) -> Store:
        return SqlStore(self.address)
