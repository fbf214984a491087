"""Requests to a server: sent again while that is safe, never for ever, and never to anybody else."""

from __future__ import annotations

import json
import os
import random
import time
from http import HTTPStatus
from typing import Any

import httpx2

from dbcare.client.responses import reported, understood
from dbcare.errors import AnswerLostError, DbcareError, InvalidValueError, StorageError

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.InvalidURL, UnicodeError)
PASSING = (  # what may be over soon; proxies say some of these of a server that restarts
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


class Transport:
    """Connections to one server; safe to use from several threads, and in processes that were forked."""

    def __init__(self, address: str, key: str | None, timeout: float, patience: float) -> None:
        self.address = address
        self.patience = patience
        self._jitter = random.Random()  # of its own: the user's random numbers stay as they are
        self._timeout = timeout
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._of_process: dict[int, httpx2.Client] = {}

    def close(self) -> None:
        """Close all connections; they open again when needed."""
        if (connections := self._of_process.pop(os.getpid(), None)) is not None:
            connections.close()

    def _connections(self) -> httpx2.Client:
        """Those of this process: on a parent's, answers would get mixed up."""
        process = os.getpid()
        if process not in self._of_process:
            made = httpx2.Client(headers=self._headers, timeout=self._timeout, follow_redirects=False)
            return self._of_process.setdefault(process, made)
        return self._of_process[process]

    def call(self, method: str, path: str, body: Any = None, *, key: str | None = None, once: bool = False) -> Any:
        """What the server answers.

        While it does not, or is busy, the request is sent again, for `patience` seconds. One that is to be done `once`
        is an AnswerLostError as soon as it may have been done.
        """
        headers = {} if key is None else {"Idempotency-Key": key}
        content = None
        if body is not None:
            content = _text(body)
            headers["Content-Type"] = "application/json"
        until = time.monotonic() + self.patience
        pause = FIRST_PAUSE
        while True:
            wait = pause * self._jitter.uniform(0.5, 1.0)
            trouble: DbcareError
            try:
                http = self._connections()
                answer = http.request(method, self.address + path, content=content, headers=headers)
            except (httpx2.RequestError, httpx2.InvalidURL, UnicodeError) as failure:
                trouble, may_be_done = self._silent(failure), not isinstance(failure, NOT_SENT)
            except RuntimeError as failure:  # closed by another thread meanwhile
                trouble, may_be_done = self._silent(failure), False
            else:
                if answer.status_code not in PASSING:
                    return understood(answer)
                trouble, may_be_done = reported(answer), answer.status_code != HTTPStatus.TOO_MANY_REQUESTS
                wait = max(wait, _wished(answer))
            if once and may_be_done:
                raise AnswerLostError(
                    f"{method} {path} must be answered but was not, so it may have been done or not: look before doing "
                    f"it again. {trouble}"
                )
            if time.monotonic() + wait > until:
                raise trouble
            time.sleep(wait)
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def _silent(self, failure: Exception) -> StorageError:
        said = str(failure) or type(failure).__name__
        return StorageError(f"The server at {self.address} must answer but did not ({said}).")


def _text(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, default=_listed).encode()
    except (TypeError, ValueError):
        raise InvalidValueError(f"A request must consist of finite numbers and texts but got {body!r}.") from None


def _listed(value: Any) -> Any:
    """Numbers and arrays of numpy, ranges, tuples."""
    return value.tolist() if hasattr(value, "tolist") else list(value)


def _wished(answer: httpx2.Response) -> float:
    """The seconds that a server asks to be left alone."""
    said = answer.headers.get("retry-after", "")
    return float(said) if said.isascii() and said.isdigit() else 0.0
