"""Measure what strangers can do to the service: how much memory they take, and how long a worker waits meanwhile.

`make bench`, or `python benchmarks/strangers.py [--out DIR]`. The server is a separate process with its usual limits.
Strangers have no key, and come from 127.0.0.2.
"""

import contextlib
import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bars import Bars

import dbcare
from dbcare.live.stores.open import open_store
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.server.access.roles import Role
from dbcare.server.open_files import allow_connections

SCRIPT = "import sys; from dbcare.server.serve import serve; serve(sys.argv[1], '127.0.0.1', int(sys.argv[2]))"
STRANGER = ("127.0.0.2", 0)
HEADERS = 1_000_000_000  # bytes
HALF_OPEN = 2_000
ASKS = 500


def read_memory(pid: int, kind: str = "VmRSS") -> float:
    """Return the memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1024


def send_headers(port: int) -> int:
    """Send headers of 1 GB on one connection; return how many bytes were taken before the server refused them."""
    sent, part = 0, b"x" * 65536
    with (
        socket.create_connection(("127.0.0.1", port), source_address=STRANGER) as connection,
        contextlib.suppress(ConnectionError),
    ):
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        while sent < HEADERS:
            sent += connection.send(part)
    return sent


class Server:
    """The service, in a process of its own."""

    def __init__(self, storage: str) -> None:
        self.key = Keys(open_records(open_store(storage))).create("worker", Role.WORKER)[1]
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = int(taken.getsockname()[1])
        self.process = subprocess.Popen([sys.executable, "-c", SCRIPT, storage, str(self.port)])
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionError:
                time.sleep(0.05)


class HalfOpen(threading.Thread):
    """A stranger with thousands of connections whose headers never end; what the server closes is opened again."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.stopped = threading.Event()
        self.all_opened = threading.Event()
        self.opened = 0

    def run(self) -> None:
        with contextlib.ExitStack() as stack:
            while not self.stopped.is_set():
                connection = stack.enter_context(socket.socket())
                connection.bind(STRANGER)
                connection.connect(("127.0.0.1", self.port))
                with contextlib.suppress(ConnectionError):
                    connection.sendall(b"GET / HTTP/1.1\r\nX: ")
                self.opened += 1
                if self.opened >= HALF_OPEN:
                    self.all_opened.set()
                    time.sleep(0.01)  # from then on, 100 more per second


def ask_repeatedly(server: Server, study: str) -> list[float]:
    """Ask on one connection, and now and then on a new one; return the seconds of each."""
    seconds = []
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.key}"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60.0)
    for number in range(ASKS):
        if number % 10 == 0:
            connection.close()
        began = time.perf_counter()
        connection.request("POST", f"/v1/studies/{study}/ask", "{}", headers)
        response = connection.getresponse()
        text = response.read()
        seconds.append(time.perf_counter() - began)
        assert response.status == 200, text
        told = {"trial": json.loads(text)["trials"][0]["id"], "reward": 0.5}
        connection.request("POST", f"/v1/studies/{study}/tell", json.dumps(told), headers)
        connection.getresponse().read()
    connection.close()
    return seconds


def main() -> None:
    bars = Bars(__doc__)
    allow_connections(2 * HALF_OPEN)  # the stranger's side of them
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        storage = f"sqlite:///{Path(name) / 'strangers.db'}"
        dbcare.create_study("study", ("A", "B"), cost=1e-15, sigma=1.0, storage=storage)
        server = Server(storage)
        quiet = ask_repeatedly(server, "study")
        before = read_memory(server.process.pid)
        taken = send_headers(server.port)
        growth = read_memory(server.process.pid, "VmHWM") - before
        bars.report("MB that a stranger's headers of 1 GB take", growth, 5.0, sent=taken)
        stranger = HalfOpen(server.port)
        stranger.start()
        stranger.all_opened.wait()
        busy = ask_repeatedly(server, "study")
        stranger.stopped.set()
        stranger.join()
        p99 = statistics.quantiles(busy, n=100)[98]
        bars.report(
            "s, p99 of an ask while 2,000 connections are half-open", p99, 1.0,
            p99_before=statistics.quantiles(quiet, n=100)[98], slowest=max(busy), opened=stranger.opened,
        )  # fmt: skip
        server.process.kill()
        server.process.wait()
        open_store(storage).close()
    bars.save()


if __name__ == "__main__":
    main()
