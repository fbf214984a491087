"""A study keeps its promises wherever it is: in memory, in SQLite, and on a server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.api_client import Running

import dbcare
from dbcare import Study
from dbcare.testing.study_suite import StudySuite


class TestMemory(StudySuite):
    repeats = 20

    def make(self, **settings: Any) -> Study:
        return dbcare.create_study(**settings)


class TestSqlite(StudySuite):
    moment = 0.2

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make(self, **settings: Any) -> Study:
        return dbcare.create_study(**settings, storage=f"sqlite:///{self.folder / 'studies.db'}")


class TestServer(StudySuite):
    moment = 0.5

    @pytest.fixture(autouse=True)
    def _client(self, server: Running) -> Iterator[None]:
        with dbcare.connect(server.url, server.keys["admin"]) as self.client:
            yield

    def make(self, **settings: Any) -> Study:
        return self.client.create_study(**settings)
