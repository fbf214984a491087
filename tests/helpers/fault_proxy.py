"""A proxy between a client and the service that can lose a response, or send one of its own."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2

HTML = {"Content-Type": "text/html"}
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class FakeResponse:
    """A response sent instead of the service's, which never sees the request."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


LOSE_RESPONSE = None  # forward the request, but not the response


class FaultProxy(ThreadingHTTPServer):
    """Applies the faults in `plan` to the next requests, one each; `seen` lists the request lines so far."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        self.plan: deque[FakeResponse | None] = deque()
        self.seen: list[str] = []
        self.service = httpx2.Client(base_url=target, timeout=120.0)
        super().__init__(("127.0.0.1", 0), ProxyHandler)

    @property
    def address(self) -> str:
        """Where clients reach the proxy."""
        return f"http://127.0.0.1:{self.server_port}"


class ProxyHandler(BaseHTTPRequestHandler):
    """Handles one connection."""

    server: FaultProxy

    def do_GET(self) -> None:
        """Forward a request, unless the plan says otherwise."""
        self.server.seen.append(self.requestline)
        step = self.server.plan.popleft() if self.server.plan else "forward"
        if isinstance(step, FakeResponse):
            self._respond(step.status, step.headers, step.body)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name: value for name, value in self.headers.items() if name != "Host"}
        response = self.server.service.request(self.command, self.path, content=body, headers=headers)
        if step is not LOSE_RESPONSE:
            content_type = {"Content-Type": response.headers.get("content-type", "")}
            self._respond(response.status_code, content_type, response.content)

    do_POST = do_DELETE = do_GET  # noqa: N815  # the names that the base class looks for

    def _respond(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def run_fault_proxy(target: str) -> Iterator[FaultProxy]:
    """Run a proxy in front of the service at an address."""
    with FaultProxy(target) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
            proxy.service.close()
