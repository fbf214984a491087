"""A service with keys and limits of one's choice, whose metrics say what it refused."""

import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx

from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.server.access.roles import Role
from dbcare.studies.stores.open import open_store
from tests.helpers.api_client import STUDY
from tests.helpers.service_process import Service, run_limited_service

ROLES = {"admin": Role.ADMIN, "worker": Role.WORKER, "one": Role.VIEWER, "two": Role.VIEWER}


@dataclass(frozen=True)
class LimitedServer:
    """A running service with the study "ads", and keys by the names of their owners."""

    service: Service
    keys: dict[str, str]

    def client(self, key: str) -> httpx.Client:
        """Return a client with a key."""
        headers = {"Authorization": f"Bearer {self.keys[key]}"}
        return httpx.Client(base_url=self.service.address, headers=headers, timeout=30.0)

    def sign_in(self, key: str) -> httpx.Client:
        """Return a browser with a new session."""
        browser = httpx.Client(base_url=self.service.address, timeout=30.0)
        assert browser.post("/login", data={"key": self.keys[key]}).status_code == 303
        return browser

    def count_refusals(self, reason: str) -> float:
        """Return how many connections and requests were refused for a reason."""
        with self.client("admin") as client:
            text = client.get("/metrics").text
        found = re.search(rf'^dbcare_refusals_total\{{reason="{reason}"\}} (\S+)$', text, re.MULTILINE)
        return 0.0 if found is None else float(found[1])


def start_server(folder: Path, stack: ExitStack, trusted_proxies: str = "", **limits: float) -> LimitedServer:
    """Start a service that ends with the stack."""
    storage = f"sqlite:///{folder / 'studies.db'}"
    keys = Keys(open_records(open_store(storage, create=True)))
    texts = {name: keys.create(name, role)[1] for name, role in ROLES.items()}
    server = LimitedServer(stack.enter_context(run_limited_service(storage, trusted_proxies, **limits)), texts)
    with server.client("admin") as client:
        client.post("/v1/studies", json=STUDY).raise_for_status()
    return server
