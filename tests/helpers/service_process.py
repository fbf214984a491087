"""The real service in a process of its own, for tests that talk to it over HTTP."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2 as httpx

SCRIPT = "import sys; from dbcare.server.serve import serve; serve(sys.argv[1], '127.0.0.1', int(sys.argv[2]))"
MAX_START_SECONDS = 60.0  # on a busy machine


@contextmanager
def run_service(storage: str) -> Iterator[str]:
    """Run a server for the studies in `storage`, yield its address, and kill it in the end."""
    port = find_free_port()
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, storage, str(port)],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            _wait_until_ready(process, address)
            yield address
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read())  # pytest shows it with the failure
            raise
        finally:
            process.kill()
            process.wait()


def find_free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], address: str) -> None:
    until = time.monotonic() + MAX_START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, "The server ended before it was ready."
        try:
            httpx.get(f"{address}/healthz").raise_for_status()
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"The server was not ready within {MAX_START_SECONDS:g} s.")
