"""What a request's log line, problem and errors have in common: its id, and why it was refused."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from contextvars import ContextVar

from starlette.types import Scope

HEADER = "X-Request-ID"
ENCODED_HEADER = HEADER.lower().encode()
SANE_ID = re.compile(rb"[A-Za-z0-9._:=/+@-]{1,128}")  # nothing that could end a log's line or a quoted text
# Not the system's random numbers: asking for them lets another thread go on, and the event loop waits to get its turn
# back, which takes a tenth of the throughput. Ids must differ, but need not be secret.
_NUMBERS = random.Random()


class RequestTrace:
    """A request's id and, once it is known, the trial that it is about and why it was refused."""

    __slots__ = ("_headers", "_id", "reason", "trial")

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._headers = headers
        self._id: str | None = None  # until someone wants to know, which few do unless requests are logged
        self.trial: int | None = None
        self.reason: str | None = None

    @property
    def id(self) -> str:
        """The id that the client or a proxy sent, if it is a sane one; else one of our own."""
        if self._id is None:
            sent = (value for name, value in self._headers if name == ENCODED_HEADER and SANE_ID.fullmatch(value))
            found = next(sent, None)
            self._id = f"{_NUMBERS.getrandbits(64):016x}" if found is None else found.decode()
        return self._id


_CURRENT: ContextVar[RequestTrace | None] = ContextVar("request_trace", default=None)


def begin_trace(scope: Scope) -> RequestTrace:
    """Begin to trace a request."""
    trace = RequestTrace(scope["headers"])
    _CURRENT.set(trace)
    return trace


def get_trace() -> RequestTrace | None:
    """Return the trace of the request that this code works for; None if it works for no request."""
    return _CURRENT.get()


def trace_trial(trial: int) -> None:
    """Note which trial the request is about."""
    if (trace := _CURRENT.get()) is not None:
        trace.trial = trial
