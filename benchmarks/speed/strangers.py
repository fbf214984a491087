"""Measure what strangers can do to the service: how much memory they take, and how long a worker waits meanwhile.

The server is a separate process with its usual limits. Strangers have no key, and come from 127.0.0.2.
"""

import contextlib
import http.client
import json
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path

import dbcare
from benchmarks.parts.bars import Bars
from benchmarks.parts.http_load import Server
from benchmarks.parts.process_memory import read_memory
from dbcare.server.sockets import allow_connections
from dbcare.studies.stores.open import open_store

STRANGER = ("127.0.0.2", 0)
HEADERS = 1_000_000_000  # bytes
HALF_OPEN = 2_000
ASKS = 500


def send_headers(port: int, length: int) -> int:
    """Send so many bytes of headers on one connection; return how many the server took before it refused them."""
    sent, part = 0, b"x" * 65536
    with (
        socket.create_connection(("127.0.0.1", port), source_address=STRANGER) as connection,
        contextlib.suppress(ConnectionError),
    ):
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        while sent < length:
            sent += connection.send(part)
    return sent


class HalfOpen(threading.Thread):
    """A stranger with thousands of connections whose headers never end; what the server closes is opened again."""

    def __init__(self, port: int, most: int) -> None:
        super().__init__(daemon=True)
        self.port, self.most = port, most
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
                if self.opened >= self.most:
                    self.all_opened.set()
                    time.sleep(0.01)  # from then on, 100 more per second


def ask_repeatedly(server: Server, study: str, asks: int) -> list[float]:
    """Ask on one connection, and now and then on a new one; return the seconds of each."""
    seconds = []
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.key}"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60.0)
    for number in range(asks):
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
        server.start()
        asks = bars.size(ASKS, 100)
        quiet = ask_repeatedly(server, "study", asks)
        before = read_memory(server.process.pid, "VmRSS")
        taken = send_headers(server.port, bars.size(HEADERS, HEADERS // 10))
        growth = read_memory(server.process.pid, "VmHWM") - before
        bars.report("MB that a stranger's endless headers take", growth, 5.0, sent=taken)
        half_open = bars.size(HALF_OPEN, 400)
        stranger = HalfOpen(server.port, half_open)
        stranger.start()
        stranger.all_opened.wait()
        busy = ask_repeatedly(server, "study", asks)
        stranger.stopped.set()
        stranger.join()
        p99 = statistics.quantiles(busy, n=100)[98]
        bars.report(
            f"s, p99 of an ask while {half_open:,} connections are half-open", p99, 1.0,
            p99_before=statistics.quantiles(quiet, n=100)[98], slowest=max(busy), opened=stranger.opened,
        )  # fmt: skip
        server.kill()
        open_store(storage).close()
    bars.save()
