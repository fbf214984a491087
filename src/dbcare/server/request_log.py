"""One line for each request, with its status and its time.

A line has the route's pattern instead of the URL, no headers and no body: keys, cookies and tokens cannot get into it.
Every line that is written for a request begins with the request's id.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dbcare.server.access.gate import KEY, VISITOR
from dbcare.server.access.keys import Key
from dbcare.server.request_trace import RequestTrace, begin_trace, get_trace


class WatchedResponse:
    """Passes messages on through `send`, and remembers the status; 500 if the application fails before it sends one."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 500

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


LOG = logging.getLogger("dbcare.requests")
STUDY = "dbcare.study"  # where a request's scope has the name of a study that is not in the path
NOTHING = "-"
MAX_SHOWN = 200  # characters of a name; a path may have thousands
BURST_SECONDS = 1.0  # in which equal errors are counted
MAX_BURSTS = 100  # counted at a time; a thread waits for the end of each


def log_request(
    visitor: str | None,
    key: str | None,
    method: str,
    route: str | None,
    study: str | None,
    status: int,
    seconds: float,
    client: str,
    trace: RequestTrace,
) -> None:
    """Log a request; `visitor` is the name of its key or session, `key` the key's id, `study` what it is about.

    If the request was refused, its trial and the reason follow.
    """
    if LOG.isEnabledFor(logging.INFO):
        names = f"{_quote(visitor)} {key or NOTHING} {method} {route or NOTHING} {_quote(study)}"
        text = f"{names} {status} {seconds * 1000.0:.1f} ms {_show_address(client)}"
        if trace.reason is not None:
            text += f" {NOTHING if trace.trial is None else trace.trial} {_quote(trace.reason)}"
        # What `LOG.info` would do, without looking for the line of code that called it, which takes as long again.
        LOG.handle(logging.LogRecord(LOG.name, logging.INFO, "", 0, text, None, None))


def _quote(name: str | None) -> str:
    """Return a name in quotes, with escapes for anything that could end the line or control a terminal."""
    if name is None:
        return NOTHING
    shown = name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}..."
    if shown.isprintable() and '"' not in shown and "\\" not in shown:
        return f'"{shown}"'
    return json.dumps(shown)


def _show_address(client: str) -> str:
    """Return an address as it is; a proxy may pass on anything for one, which is quoted."""
    return client if client.replace(".", "").replace(":", "").isalnum() else _quote(client)


class RequestLog:
    """Traces every request, and logs it once its response is complete."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        trace = begin_trace(scope)
        if not LOG.isEnabledFor(logging.INFO):
            await self.app(scope, receive, send)
            return
        start, response = time.perf_counter(), WatchedResponse(send)
        try:
            await self.app(scope, receive, response.send)
        finally:
            key: Key | None = scope.get(KEY)
            log_request(
                scope.get(VISITOR) if key is None else key.name,
                None if key is None else key.id,
                scope["method"],
                getattr(scope.get("route"), "path", None),
                scope.get("path_params", {}).get("name") or scope.get(STUDY),
                response.status,
                time.perf_counter() - start,
                (scope.get("client") or (NOTHING, 0))[0],
                trace,
            )


class UtcFormatter(logging.Formatter):
    """Begins each line with the time in UTC, to the millisecond, and the id of the request that it belongs to."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # its name in logging
        """Return the line; for a failure, logging adds the traceback."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        trace = get_trace()
        return f"{at} {record.levelname} {NOTHING if trace is None else trace.id} {record.message}"


class BurstHandler(logging.StreamHandler[TextIO]):
    """Writes the first of equal errors, and then once per second how many more there were."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._more: dict[tuple[str, str], int] = {}  # equal errors since the last line about them

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record unless it is an error that was written within the last second. Called with the lock held."""
        if record.levelno >= logging.ERROR:
            error = (record.getMessage(), repr(record.exc_info and record.exc_info[1]))
            if error in self._more:
                self._more[error] += 1
                return
            if len(self._more) < MAX_BURSTS:
                self._count(error, record)
        super().emit(record)

    def _count(self, error: tuple[str, str], record: logging.LogRecord) -> None:
        self._more[error] = 0
        timer = threading.Timer(BURST_SECONDS, self._write_count, [error, record])
        timer.daemon = True
        timer.start()

    def _write_count(self, error: tuple[str, str], record: logging.LogRecord) -> None:
        with self.lock or nullcontext():
            more = self._more.pop(error)
            if not more:
                return
            self._count(error, record)
            text = f"{error[0]} ({more:,} more within {BURST_SECONDS:g} s)"
            super().emit(logging.LogRecord(record.name, record.levelno, "", 0, text, None, None))


def log_to_stderr(*, requests: bool) -> None:
    """Write the log of this process to standard error: warnings, what the webhook does, and requests if wanted."""
    handler = BurstHandler(sys.stderr)
    handler.setFormatter(UtcFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("dbcare").setLevel(logging.INFO)
    LOG.setLevel(logging.INFO if requests else logging.WARNING)
