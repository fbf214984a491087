"""What several integration tests share."""

from collections.abc import Iterator

import pytest
from postgres import Server, server


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests of a process, which must not kill it."""
    with server(tmp_path_factory.mktemp("postgres")) as running:
        yield running
