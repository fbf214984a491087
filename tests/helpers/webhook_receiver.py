"""A real HTTP server that receives what a webhook sends, and fails as it is told."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_WAIT_SECONDS = 60.0  # on a busy machine


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def notice(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)


class Receiver:
    """Keeps what it receives; responds with the statuses that are listed, then with 200."""

    def __init__(self, port: int) -> None:
        self.received: list[Received] = []
        self.statuses: list[int] = []
        self.redirect = ""  # sent as Location
        self.hangs = threading.Event()  # while set, requests are not answered
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(Received(self.path, dict(self.headers), body))
                while receiver.hangs.is_set():
                    time.sleep(0.01)
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
                self.send_header("Location", receiver.redirect)
                self.end_headers()

            def do_GET(self) -> None:  # what a client that follows redirects would send
                receiver.received.append(Received(self.path, dict(self.headers), b"null"))

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in http.server
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/stopped?token=of-the-receiver"

    def wait_for(self, count: int) -> list[Received]:
        """Return what was received, once that are so many requests."""
        until = time.monotonic() + MAX_WAIT_SECONDS
        while len(self.received) < count:
            assert time.monotonic() < until, f"{len(self.received)} of {count} requests arrived"
            time.sleep(0.01)
        return list(self.received)

    def wait_for_studies(self, *names: str) -> list[Received]:
        """Return what was received, once all these studies are among it."""
        until = time.monotonic() + MAX_WAIT_SECONDS
        while not set(names) <= (found := {received.notice["study"] for received in self.received}):
            assert time.monotonic() < until, f"only {found} arrived"
            time.sleep(0.01)
        return list(self.received)


@contextmanager
def run_receiver(port: int = 0) -> Iterator[Receiver]:
    """Run a receiver, on a port that the system chooses unless one is given."""
    receiver = Receiver(port)
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.hangs.clear()
        receiver.server.shutdown()
        receiver.server.server_close()
        thread.join()
