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
STARTS_WITHIN = 60.0  # seconds, on a busy machine


@contextmanager
def service(storage: str) -> Iterator[str]:
    """The address of a server for the studies in `storage`; it is killed in the end."""
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, storage, str(port)],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            _wait(process, address)
            yield address
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read())  # pytest shows it with the failure
            raise
        finally:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], address: str) -> None:
    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until:
        assert process.poll() is None, "The server must start but ended at once."
        try:
            httpx.get(f"{address}/healthz").raise_for_status()
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"The server must answer within {STARTS_WITHIN:g} s.")
