"""A study keeps its promises wherever it is: in memory, in a store passed as an object, in SQLite, and on a server."""

import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.api_client import ApiServer

import dbcare
from dbcare import Study
from dbcare.live.stores.memory import MemoryStore
from dbcare.testing import StudySuite, store_suite, study_suite


class TestMemory(StudySuite):
    repeats = 20

    def make(self, **settings: Any) -> Study:
        return dbcare.create_study(**settings)


class TestOwnStore(StudySuite):
    store = MemoryStore()

    def make(self, **settings: Any) -> Study:
        return dbcare.create_study(**settings, storage=self.store)


class TestSqlite(StudySuite):
    lease_seconds = 0.2

    @pytest.fixture(autouse=True)
    def _set_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make(self, **settings: Any) -> Study:
        return dbcare.create_study(**settings, storage=f"sqlite:///{self.folder / 'studies.db'}")


class TestServer(StudySuite):
    lease_seconds = 0.5

    @pytest.fixture(autouse=True)
    def _connect(self, server: ApiServer) -> Iterator[None]:
        with dbcare.connect(server.url, server.keys["admin"]) as self.client:
            yield

    def make(self, **settings: Any) -> Study:
        return self.client.create_study(**settings)


def test_the_examples_in_the_docstrings_pass(tmp_path: Path) -> None:
    """pytest collects and passes every check of the examples as printed."""
    suites: dict[Any, type] = {store_suite: store_suite.StoreSuite, study_suite: StudySuite}
    for module in suites:
        documentation = inspect.getdoc(module)
        assert documentation is not None
        lines = [line for line in documentation.splitlines() if line.startswith("    ") or not line]
        example = tmp_path / f"test_{module.__name__.rpartition('.')[2]}.py"
        example.write_text(textwrap.dedent("\n".join(lines)))
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    for module, suite in suites.items():
        checks = [name for name in dir(suite) if name.startswith("test_")]
        passed = re.findall(rf"^test_{module.__name__.rpartition('.')[2]}\.py::.* PASSED", result.stdout, re.MULTILINE)
        assert len(passed) == len(checks)
