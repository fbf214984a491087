"""The service's log: one line per request, with who sent it and what it was for, and never a secret.

A line has the route's pattern instead of the URL, no headers and no body: keys, cookies and tokens cannot get into it.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime

from starlette.types import ASGIApp, Receive, Scope, Send

from dbcare.server.access.gate import VISITOR
from dbcare.server.watched_response import WatchedResponse

LOG = logging.getLogger("dbcare.requests")
STUDY = "dbcare.study"  # where a request's scope has the name of a study that is not in the path
NOTHING = "-"
MAX_SHOWN = 200  # characters of a name; a path may have thousands


def log_request(
    visitor: str | None, method: str, route: str | None, study: str | None, status: int, seconds: float, client: str
) -> None:
    """Log a request; `visitor` is the name of its key or session, and `study` the name of the study it is about."""
    if LOG.isEnabledFor(logging.INFO):
        names = f"{_quote(visitor)} {method} {route or NOTHING} {_quote(study)}"
        text = f"{names} {status} {seconds * 1000.0:.1f} ms {_show_address(client)}"
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
    """Logs every request once its response is complete."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not LOG.isEnabledFor(logging.INFO):
            await self.app(scope, receive, send)
            return
        start, response = time.perf_counter(), WatchedResponse(send)
        try:
            await self.app(scope, receive, response.send)
        finally:
            log_request(
                scope.get(VISITOR),
                scope["method"],
                getattr(scope.get("route"), "path", None),
                scope.get("path_params", {}).get("name") or scope.get(STUDY),
                response.status,
                time.perf_counter() - start,
                (scope.get("client") or (NOTHING, 0))[0],
            )


class UtcFormatter(logging.Formatter):
    """Begins each line with the time in UTC, to the millisecond."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # its name in logging
        """Return the line; for a failure, logging adds the traceback."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return f"{at} {record.levelname} {record.message}"


def log_to_stderr(*, requests: bool) -> None:
    """Write the log of this process to standard error: warnings, what the webhook does, and requests if wanted."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(UtcFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("dbcare").setLevel(logging.INFO)
    LOG.setLevel(logging.INFO if requests else logging.WARNING)
