"""What several integration tests share."""

from collections.abc import Iterator

import pytest
from postgres import Server, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One server for all tests of a process, which must not kill it."""
    with server() as running:
        yield running
