"""Two servers behind nginx, restarted one after the other while clients work: no request fails, and nothing is lost.

HTTP cannot exclude that a server closes an idle connection just when nginx sends a request on it, which then fails with
502. The usual test therefore repeats failed requests, as the Python client does; the long one must see none.
"""

import ssl
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2 as httpx
import pytest

import dbcare
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.studies.stores.open import open_store
from tests.helpers.nginx import run_nginx
from tests.helpers.serve_command import run_serve
from tests.helpers.service_process import find_free_port

pytestmark = pytest.mark.service

CLIENTS = 6
PAIRS_BETWEEN = 60  # asked and told between two restarts
MAX_SECONDS = 60.0  # on a busy machine


@dataclass
class Load:
    """Clients that ask and tell through nginx until they are stopped; they repeat what failed, and note it."""

    url: str
    key: str
    told: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    is_over: bool = False

    def work(self) -> None:
        """Ask and tell."""
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE  # the certificate is our own
        headers = {"Authorization": f"Bearer {self.key}", "Host": "studies.example.com"}
        with httpx.Client(base_url=self.url, verify=tls, headers=headers, timeout=MAX_SECONDS) as client:
            while not self.is_over:
                for trial in self._post(client, "ask", {}).json()["trials"]:
                    self._post(client, "tell", {"trial": trial["id"], "reward": 0.5})  # equal: the study never stops
                    self.told.append(trial["id"])
                time.sleep(0.005)  # nginx limits the requests of an address

    def _post(self, client: httpx.Client, action: str, body: dict[str, object]) -> httpx.Response:
        headers, until = {"Idempotency-Key": uuid.uuid4().hex}, time.monotonic() + MAX_SECONDS
        while True:
            try:
                return client.post(f"/v1/studies/ads/{action}", json=body, headers=headers).raise_for_status()
            except httpx.HTTPError as failure:
                self.failures.append(str(failure))
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Work in several threads."""
        threads = [threading.Thread(target=self.work) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_over = True
            for thread in threads:
                thread.join()

    def wait_for_more(self) -> None:
        """Wait until more trials were told."""
        wanted, until = len(self.told) + PAIRS_BETWEEN, time.monotonic() + MAX_SECONDS
        while len(self.told) < wanted:
            assert time.monotonic() < until, f"no progress after {len(self.told)} trials: {self.failures}"
            time.sleep(0.02)


def restart_under_load(tmp_path: Path, restarts: int) -> Load:
    """Restart the servers in turn while clients work; check that nothing is lost, and return what the clients saw."""
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    _, key = Keys(open_records(open_store(storage, create=True))).create("me", "admin")
    dbcare.create_study("ads", ["A", "B"], cost=1e-15, sigma=1.0, max_ahead=1000, storage=storage)
    ports = find_free_port(), find_free_port()

    def start(number: int) -> AbstractContextManager[str]:
        log = tmp_path / f"log {number}"
        return run_serve(storage, log, "--port", str(ports[number]), "--trusted-proxies", "127.0.0.1")

    with ExitStack() as stack:
        servers = [stack.enter_context(ExitStack()) for _ in ports]
        for number, server in enumerate(servers):
            server.enter_context(start(number))
        nginx = stack.enter_context(run_nginx(tmp_path, *ports))
        load = Load(f"https://127.0.0.1:{nginx}", key)
        with load.running():
            for restart in range(restarts):
                load.wait_for_more()
                server = servers[restart % 2]
                server.close()  # SIGTERM, and wait for the process to end
                server.enter_context(start(restart % 2))
            load.wait_for_more()
    study = dbcare.load_study("ads", storage=storage)
    assert len(set(load.told)) == len(load.told)
    assert study.status().asked == len(load.told)
    study.check()
    return load


def test_servers_restart_one_after_the_other(tmp_path: Path) -> None:
    restart_under_load(tmp_path, 2)


@pytest.mark.soak
def test_servers_restart_one_after_the_other_without_a_failed_request(tmp_path: Path) -> None:
    assert restart_under_load(tmp_path, 6).failures == []
