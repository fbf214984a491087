"""A study keeps its promises wherever it is: in memory, in SQLite, and on a server.

A store that is passed as an object leads to the same study as one in memory: see tests/testing/test_stores.py.
"""

import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare import Study
from dbcare.testing import StoreSuite, stores
from tests.helpers.api_client import ApiServer
from tests.suites.studies import StudySuite

pytestmark = pytest.mark.service


def read_example() -> str:
    """Return the example of a store's suite, in its module's docstring."""
    documentation = inspect.getdoc(stores)
    assert documentation is not None
    lines = [line for line in documentation.splitlines() if line.startswith("    ") or not line]
    return textwrap.dedent("\n".join(lines))


def run_example() -> dict[str, Any]:
    """Run the example as printed, and return what it defines."""
    defined: dict[str, Any] = {"__name__": stores.__name__}
    exec(read_example(), defined)
    return defined


class TestExampleOfStores(run_example()["TestSqlite"]):  # type: ignore[misc]  # a class that is made here
    """The example passes every check."""


class TestMemory(StudySuite):
    repeats = 2

    def make(self, **settings: Any) -> Study:
        return dbcare.create_study(**settings)


class TestSqlite(StudySuite):
    lease_seconds = 0.2
    address: str

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _set_address(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        """One file for all checks: their studies have names of their own."""
        cls.address = f"sqlite:///{tmp_path_factory.mktemp('suite') / 'studies.db'}"

    def make(self, **settings: Any) -> Study:
        return dbcare.create_study(**settings, storage=self.address)


class TestServer(StudySuite):
    lease_seconds = 0.5

    @pytest.fixture(autouse=True)
    def _connect(self, server: ApiServer) -> Iterator[None]:
        with dbcare.connect(server.url, server.keys["admin"]) as self.client:
            yield

    def make(self, **settings: Any) -> Study:
        return self.client.create_study(**settings)


def test_pytest_finds_the_example_in_the_docstring(tmp_path: Path) -> None:
    """As printed, in a file of its own, with every check; the class above shows that the checks pass."""
    (tmp_path / "test_store_suite.py").write_text(read_example())
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins of others take seconds to load
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=plain)
    assert result.returncode == 0, result.stdout + result.stderr
    checks = {name for name in dir(StoreSuite) if name.startswith("test_")}
    assert set(re.findall(r"^test_store_suite.py::\w+::(\w+)$", result.stdout, re.MULTILINE)) == checks
