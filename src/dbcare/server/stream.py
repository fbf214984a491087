"""Server-sent events: what a page shows, sent whenever it changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from dbcare.server.metrics import Metrics, Refusal
from dbcare.server.problems import make_problem
from dbcare.server.service_limits import ServiceLimits

MEDIA_TYPE = "text/event-stream"
GONE = "event: gone\ndata: \n\n"
POLL_SECONDS = 0.5
POLLS_PER_COMMENT = 30  # after so many without news, a comment keeps the connection alive


class Streams:
    """The open streams of one service, of which there is a limited number, in total and per visitor."""

    def __init__(self, limits: ServiceLimits, metrics: Metrics) -> None:
        self.limits = limits
        self.metrics = metrics
        self.is_closing: Callable[[], bool] = lambda: False  # asked by every stream, which ends with the server
        self._open: Counter[str] = Counter()  # by the visitor's name

    def stream(self, request: Request, visitor: str, look: Callable[[], Awaitable[str | None]]) -> StreamingResponse:
        """Send what `look` returns, a line of text, whenever it changes; end when it returns None."""
        return CountedStream(self, visitor, self._send_news(request, look))

    def find_full(self, visitor: str) -> tuple[Refusal, HTTPStatus, str] | None:
        """Return why a visitor must not open another stream; None if they may."""
        if self._open.total() >= self.limits.streams:
            detail = f"Too many open pages: at most {self.limits.streams} can be updated live."
            return Refusal.STREAMS_FULL, HTTPStatus.SERVICE_UNAVAILABLE, detail
        if self._open[visitor] >= self.limits.streams_per_visitor:
            detail = f"You have too many open pages: at most {self.limits.streams_per_visitor} can be updated live."
            return Refusal.VISITOR_FULL, HTTPStatus.TOO_MANY_REQUESTS, detail
        return None

    def enter(self, visitor: str) -> None:
        """Count a stream."""
        self._open[visitor] += 1

    def leave(self, visitor: str) -> None:
        """Count a stream no more."""
        self._open[visitor] -= 1
        if self._open[visitor] == 0:
            del self._open[visitor]

    async def _send_news(self, request: Request, look: Callable[[], Awaitable[str | None]]) -> AsyncIterator[str]:
        sent, quiet = "", 0
        while not self.is_closing() and not await request.is_disconnected():
            now = await look()
            if now is None:
                yield GONE
                return
            quiet = 0 if now != sent else quiet + 1
            if now != sent:
                sent = now
                yield f"data: {now}\n\n"
            elif quiet % POLLS_PER_COMMENT == 0:
                yield ": still here\n\n"
            await asyncio.sleep(POLL_SECONDS)


class CountedStream(StreamingResponse):
    """A stream that counts from its first byte to its end; refused if there are too many."""

    def __init__(self, streams: Streams, visitor: str, events: AsyncIterator[str]) -> None:
        super().__init__(events, media_type=MEDIA_TYPE)
        self.streams = streams
        self.visitor = visitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream; between the check and the count nothing else runs."""
        full = self.streams.find_full(self.visitor)
        if full is not None:
            reason, status, detail = full
            self.streams.metrics.refuse(reason)
            await make_problem(status, detail)(scope, receive, send)
            return
        self.streams.enter(self.visitor)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.streams.leave(self.visitor)


def tell_gone() -> Response:
    """Return a stream that says only that there is nothing to see."""
    return Response(GONE, media_type=MEDIA_TYPE)
