"""The real service in a process of its own, for tests that talk to it over HTTP."""

import json
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx

from tests.helpers.prepared_process import PreparedProcess

SCRIPT = Path(__file__).with_name("service_main.py")
MAX_START_SECONDS = 60.0  # on a busy machine
FIRST_PORT, PORTS = 20_000, 12_000  # below those that Linux gives to connections, and to whoever binds port 0


@dataclass(frozen=True)
class Service:
    """A server that runs."""

    address: str
    port: int
    pid: int


@contextmanager
def run_service(storage: str) -> Iterator[str]:
    """Run a server for the studies in `storage`, yield its address, and kill it in the end."""
    with run_limited_service(storage) as service:
        yield service.address


@contextmanager
def run_limited_service(storage: str, trusted_proxies: str = "", **limits: float) -> Iterator[Service]:
    """Run a server with limits other than the usual ones, and kill it in the end."""
    port = find_free_port()
    address = f"http://127.0.0.1:{port}"
    with tempfile.NamedTemporaryFile("r") as log:
        process = PreparedProcess(SCRIPT, [storage, str(port), json.dumps(limits), trusted_proxies], log.name)
        try:
            _wait_until_ready(process, address)
            yield Service(address, port, process.pid)
        except BaseException:
            sys.stderr.write(log.read())  # pytest shows it with the failure
            raise
        finally:
            process.kill()
            process.wait()


def find_free_port() -> int:
    """Return a port on which nothing listens, and that the system gives to nobody who asks for any free port."""
    while True:
        port = FIRST_PORT + secrets.randbelow(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _wait_until_ready(process: PreparedProcess, address: str) -> None:
    until = time.monotonic() + MAX_START_SECONDS
    with httpx.Client(base_url=address) as client:
        while time.monotonic() < until:
            assert process.poll() is None, "The server ended before it was ready."
            try:
                client.get("/healthz").raise_for_status()
            except httpx.TransportError:
                time.sleep(0.05)
            else:
                return
    raise TimeoutError(f"The server was not ready within {MAX_START_SECONDS:g} s.")
