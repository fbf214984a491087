"""Sends one HTTP request without waiting for long: no redirects, and a limit for all of it, not only for its parts."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult

SILENCE_SECONDS = 10.0  # without a sign of the receiver
ATTEMPT_SECONDS = 20.0  # for a receiver that sends its response byte by byte


class PostError(Exception):
    """The receiver did not accept a request."""


def post(url: SplitResult, body: bytes, headers: dict[str, str]) -> None:
    """Send a body; PostError unless the response has a status of 200 to 299."""
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=SILENCE_SECONDS)
    aborted = threading.Event()
    watchdog = threading.Timer(ATTEMPT_SECONDS, _abort, [connection, aborted])
    watchdog.daemon = True
    watchdog.start()
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    try:
        with closing(connection):
            connection.request("POST", target, body, {**headers, "Connection": "close"})
            with connection.getresponse() as response:
                status = response.status
        if aborted.is_set():  # the response may be half of one
            raise TimeoutError
    except (OSError, HTTPException) as failure:
        # Not all of its text, which may be the receiver's.
        raise PostError(getattr(failure, "strerror", None) or type(failure).__name__) from None
    finally:
        watchdog.cancel()
    if not 200 <= status < 300:
        raise PostError(f"it responded with status {status}")


def _abort(connection: HTTPConnection, aborted: threading.Event) -> None:
    aborted.set()  # first, since the response ends at once
    if (opened := connection.sock) is not None:
        with suppress(OSError):
            opened.shutdown(socket.SHUT_RDWR)
