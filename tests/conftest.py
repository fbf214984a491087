"""For all tests: the command line is built once, not at every call of it."""

from collections.abc import Iterator
from functools import cache

import pytest
import typer.testing


@pytest.fixture(scope="session", autouse=True)
def _build_commands_once() -> Iterator[None]:
    """Typer's runner builds all commands anew for each call, which takes longer than most of the calls do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(typer.main.get_command))
        yield
