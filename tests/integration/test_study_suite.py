"""A study keeps its promises wherever it is: in memory, in SQLite, and on a server.

A store that is passed as an object leads to the same study as one in memory: see tests/unit/test_custom_store.py.
"""

import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helpers.api_client import ApiServer

import dbcare
from dbcare import Study
from dbcare.testing import StudySuite, store_suite, study_suite


def read_example(suite: ModuleType) -> str:
    """Return the example in the module's docstring."""
    documentation = inspect.getdoc(suite)
    assert documentation is not None
    lines = [line for line in documentation.splitlines() if line.startswith("    ") or not line]
    return textwrap.dedent("\n".join(lines))


def run_example(suite: ModuleType) -> dict[str, Any]:
    """Run the example as printed, and return what it defines."""
    defined: dict[str, Any] = {"__name__": suite.__name__}
    exec(read_example(suite), defined)
    return defined


class TestMemory(run_example(study_suite)["TestInMemory"]):  # type: ignore[misc]  # the example passes every check
    repeats = 2


class TestExampleOfStores(run_example(store_suite)["TestSqlite"]):  # type: ignore[misc]  # as above
    """The example passes every check, too."""


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


def test_pytest_finds_the_examples_in_the_docstrings(tmp_path: Path) -> None:
    """As printed, in files of their own, with every check; the classes above show that the checks pass."""
    suites = {store_suite: store_suite.StoreSuite, study_suite: StudySuite}
    for module in suites:
        (tmp_path / f"test_{module.__name__.rpartition('.')[2]}.py").write_text(read_example(module))
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins of others take seconds to load
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=plain)
    assert result.returncode == 0, result.stdout + result.stderr
    for module, suite in suites.items():
        checks = {name for name in dir(suite) if name.startswith("test_")}
        file = f"test_{module.__name__.rpartition('.')[2]}.py"
        assert set(re.findall(rf"^{file}::\w+::(\w+)$", result.stdout, re.MULTILINE)) == checks
