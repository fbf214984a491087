"""Requests to a server: retried while that is safe, but not forever, and never sent anywhere else."""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import httpx2

from dbcare.base.checks import show
from dbcare.client.responses import REQUEST_ID, read_error, read_response, require_lines
from dbcare.errors import AnswerLostError, DbcareError, InvalidValueError, StorageError

ID_LENGTH = 16
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.1, 5.0
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.InvalidURL, UnicodeError)
TEMPORARY = (  # proxies send some of these while a server restarts
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


class Transport:
    """Connections to one server; safe to use from several threads, and in forked processes."""

    def __init__(self, address: str, key: str | None, timeout: float, patience: float) -> None:
        self.address = address
        self.patience = patience
        self._jitter = random.Random()  # a generator of its own leaves the user's random numbers alone
        self._timeout = timeout
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._of_process: dict[int, httpx2.Client] = {}
        self._connections()  # now: it takes 30 ms, which a first request in time may not have

    def close(self) -> None:
        """Close all connections; they are opened again when needed."""
        if (connections := self._of_process.pop(os.getpid(), None)) is not None:
            connections.close()

    def _connections(self) -> httpx2.Client:
        """Return the connections of this process; on a parent's, responses would get mixed up."""
        process = os.getpid()
        if process not in self._of_process:
            client = httpx2.Client(headers=self._headers, timeout=self._timeout, follow_redirects=False)
            return self._of_process.setdefault(process, client)
        return self._of_process[process]

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        once: bool = False,
        patience: float | None = None,
    ) -> Any:
        """Send a request and return the response.

        While the server does not respond, or is busy, the request is retried for `patience` seconds. One that must take
        effect only `once` raises AnswerLostError as soon as it may have taken effect. Default of
        `patience`: the transport's own.
        """
        headers = {} if key is None else {"Idempotency-Key": key}
        content = None
        if body is not None:
            content = _to_json(body)
            headers["Content-Type"] = "application/json"
        return read_response(self._send(method, path, content, headers, once=once, patience=patience))

    def stream_lines(self, path: str) -> Iterator[str]:
        """Send a GET request, and yield the lines of the response (JSON Lines) as they arrive.

        The request is retried like any other, but not after the first line.
        """
        response = self._send("GET", path, stream=True)
        try:
            require_lines(response)
            yield from response.iter_lines()
        except (httpx2.RequestError, RuntimeError) as failure:  # the latter: closed by another thread
            message = str(failure) or type(failure).__name__
            raise StorageError(f"The response to GET {path} ended early ({message}); retry.") from None
        finally:
            response.close()

    def _send(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
        *,
        once: bool = False,
        stream: bool = False,
        patience: float | None = None,
    ) -> httpx2.Response:
        """Return the first response that is not temporary; with `stream`, without its body if it is a success."""
        identity = uuid.uuid4().hex[:ID_LENGTH]  # the same for all attempts
        headers = {**(headers or {}), REQUEST_ID: identity}
        until = time.monotonic() + (self.patience if patience is None else patience)
        pause = MIN_PAUSE_SECONDS
        while True:
            wait = pause * self._jitter.uniform(0.5, 1.0)
            error: DbcareError
            try:
                http = self._connections()
                request = http.build_request(method, self.address + path, content=content, headers=headers)
                response = http.send(request, stream=stream)
                if not response.is_success:  # what it says is short
                    response.read()
            except (httpx2.RequestError, httpx2.InvalidURL, UnicodeError) as failure:
                error, may_be_done = self._no_response(failure, identity), not isinstance(failure, NOT_SENT)
            except RuntimeError as failure:  # closed by another thread meanwhile
                error, may_be_done = self._no_response(failure, identity), False
            else:
                if response.status_code not in TEMPORARY and not (once and response.is_server_error):
                    return response
                error, may_be_done = read_error(response), response.status_code != HTTPStatus.TOO_MANY_REQUESTS
                wait = max(wait, _retry_after(response))
            if once and may_be_done:
                raise AnswerLostError(
                    f"No response to {method} {path}; check whether it took effect before retrying. {error}"
                )
            if time.monotonic() + wait > until:
                raise error
            time.sleep(wait)
            pause = min(2.0 * pause, MAX_PAUSE_SECONDS)

    def _no_response(self, failure: Exception, identity: str) -> StorageError:
        message = str(failure) or type(failure).__name__
        return StorageError(f"The server at {self.address} does not respond ({message}). (Request {identity})")


def _to_json(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, default=_to_plain).encode()
    except (TypeError, ValueError):
        raise InvalidValueError(f"A request must consist of finite numbers and strings but got {show(body)}.") from None


def _to_plain(value: Any) -> Any:
    """Convert NumPy numbers and arrays, mappings, and other iterables such as ranges."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if hasattr(value, "tolist") else list(value)


def _retry_after(response: httpx2.Response) -> float:
    """Return the seconds that a server asks to wait."""
    seconds = response.headers.get("retry-after", "")
    return float(seconds) if seconds.isascii() and seconds.isdigit() else 0.0
