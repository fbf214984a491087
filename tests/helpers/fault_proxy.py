"""Between a client and the service: passes requests on, unless it is told to lose an answer or to make one up."""

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
class Says:
    """An answer that is made up; the service hears nothing of the request."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


LOSE = None  # the request is passed on, and the answer is lost


class Unruly(ThreadingHTTPServer):
    """What is in `plan` happens to the next requests, one each; `seen` has the request lines so far."""

    daemon_threads = True

    def __init__(self, behind: str) -> None:
        self.plan: deque[Says | None] = deque()
        self.seen: list[str] = []
        self.service = httpx2.Client(base_url=behind)
        super().__init__(("127.0.0.1", 0), Between)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Between(BaseHTTPRequestHandler):
    """One connection."""

    server: Unruly

    def do_GET(self) -> None:
        self.server.seen.append(self.requestline)
        step = self.server.plan.popleft() if self.server.plan else "pass on"
        if isinstance(step, Says):
            self._answer(step.status, step.headers, step.body)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name: value for name, value in self.headers.items() if name != "Host"}
        answer = self.server.service.request(self.command, self.path, content=body, headers=headers)
        if step is not LOSE:
            self._answer(answer.status_code, {"Content-Type": answer.headers.get("content-type", "")}, answer.content)

    do_POST = do_DELETE = do_GET  # noqa: N815  # as the library wants it

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing on the screen."""


@contextmanager
def unruly(behind: str) -> Iterator[Unruly]:
    """One in front of the service at an address."""
    with Unruly(behind) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()
            made.service.close()
