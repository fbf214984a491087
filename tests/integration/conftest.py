"""What several integration tests share."""

import signal
import threading
from collections.abc import Iterator

import httpx2 as httpx
import pytest
from helpers.api_client import STUDY, Running
from helpers.postgres import Server
from helpers.postgres import server as postgres_server
from helpers.service_process import service

from dbcare.live.stores.sql.store import SqlStore
from dbcare.server.access.keys import Keys
from dbcare.server.access.roles import Role

# Where tests run in the background, the shell has Ctrl-C ignored, by children too; but some tests send it to a child.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One server for all tests of a process, which must not kill it."""
    with postgres_server() as running:
        yield running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    storage = f"sqlite:///{tmp_path_factory.mktemp('api') / 'studies.db'}"
    keys = Keys(SqlStore(storage))
    texts = {str(role): keys.create(str(role), role)[1] for role in Role}
    revoked, texts["revoked"] = keys.create("revoked", Role.ADMIN)
    keys.revoke(revoked.id)
    texts["wrong secret"] = texts["admin"][:-1] + ("0" if texts["admin"][-1] != "0" else "1")
    texts["no key"] = "dbc"
    with service(storage) as url:
        yield Running(url, storage, texts)


@pytest.fixture
def admin(server: Running, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """An admin, and a study named after the test."""
    with server.client() as client:
        client.post("/v1/studies", json=STUDY | {"name": request.node.name}).raise_for_status()
        client.base_url = client.base_url.join(f"/v1/studies/{request.node.name}/")
        yield client
