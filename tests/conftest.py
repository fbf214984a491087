"""The order of tests, and fixtures of several files."""

import signal
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import httpcore2
import httpx2 as httpx
import pytest

import tests.helpers.built_commands  # noqa: F401  # speeds up tests of commands
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.server.access.roles import Role
from dbcare.studies.stores.open import open_store
from tests.helpers.api_client import STUDY, ApiServer
from tests.helpers.postgres import Server, run_server
from tests.helpers.service_process import run_service

# A shell makes background processes and their children ignore Ctrl-C, but some tests send it to a child.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Every new client would read all certificates of the system again, which takes longer than most of its requests.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the files marked as `long`, so that no worker is still busy with one of them at the end.

    Tests of the service mostly wait for processes, disks, browsers and clocks; all others compute. The two kinds are
    spread evenly, so that at any time some workers wait while others compute.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    places: dict[Path, float] = {}
    for waits in (False, True):
        kind = [path for path, (item, *_) in files.items() if bool(item.get_closest_marker("service")) is waits]
        places |= {path: (number + 0.5) / len(kind) for number, path in enumerate(kind)}
    places |= {path: 0.0 for path, (item, *_) in files.items() if item.get_closest_marker("long")}
    items[:] = [item for path in sorted(files, key=places.__getitem__) for item in files[path]]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Run one server for all tests of a process; they must not kill it."""
    with run_server() as running:
        yield running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Run a service with a key for each role, and keys that must not work."""
    storage = f"sqlite:///{tmp_path_factory.mktemp('api') / 'studies.db'}"
    keys = Keys(open_records(open_store(storage, create=True)))
    texts = {str(role): keys.create(str(role), role)[1] for role in Role}
    revoked, texts["revoked"] = keys.create("revoked", Role.ADMIN)
    keys.revoke(revoked.id)
    texts["wrong secret"] = texts["admin"][:-1] + ("0" if texts["admin"][-1] != "0" else "1")
    texts["no key"] = "dbc"
    with run_service(storage) as url:
        yield ApiServer(url, storage, texts)


@pytest.fixture
def admin(server: ApiServer, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """Return an admin's client, whose base URL is a new study named after the test."""
    with server.client() as client:
        client.post("/v1/studies", json=STUDY | {"name": request.node.name}).raise_for_status()
        client.base_url = client.base_url.join(f"/v1/studies/{request.node.name}/")
        yield client
