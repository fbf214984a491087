"""A real PostgreSQL server for tests, from a wheel that carries one."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of a server with its data in `folder`, stopped in the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on folders that it falls back to
        from pgserver.postgres_server import get_server  # noqa: PLC0415  # its import warns

        running = get_server(folder, cleanup_mode="stop")
    try:
        yield running.get_uri().replace("postgresql://", "postgresql+psycopg://")
    finally:
        running.cleanup()
