"""What a request's log line, problem and errors have in common: its id, and why it was refused."""

from __future__ import annotations

import os
import re
from contextvars import ContextVar

from starlette.types import Scope

HEADER = "X-Request-ID"
ENCODED_HEADER = HEADER.lower().encode()
SANE_ID = re.compile(rb"[A-Za-z0-9._:=/+@-]{1,128}")  # nothing that could end a log's line or a quoted text
ID_BYTES = 8


class RequestTrace:
    """A request's id and, once it is known, the trial that it is about and why it was refused."""

    __slots__ = ("id", "reason", "trial")

    def __init__(self, identity: str) -> None:
        self.id = identity
        self.trial: int | None = None
        self.reason: str | None = None


_CURRENT: ContextVar[RequestTrace | None] = ContextVar("request_trace", default=None)


def begin_trace(scope: Scope) -> RequestTrace:
    """Begin to trace a request, under the id that its client or proxy sent if that is a sane one."""
    identity = None
    for name, value in scope["headers"]:
        if name == ENCODED_HEADER and SANE_ID.fullmatch(value):
            identity = value.decode()
            break
    trace = RequestTrace(identity or os.urandom(ID_BYTES).hex())
    _CURRENT.set(trace)
    return trace


def get_trace() -> RequestTrace | None:
    """Return the trace of the request that this code works for; None if it works for no request."""
    return _CURRENT.get()


def trace_trial(trial: int) -> None:
    """Note which trial the request is about."""
    if (trace := _CURRENT.get()) is not None:
        trace.trial = trial
