"""Server-sent events: what a page shows, sent whenever it changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from dbcare.server.problems import RefusalError

POLL_SECONDS = 0.5
MAX_STREAMS = 200  # per process: each costs some of its time
POLLS_PER_COMMENT = 30  # after so many without news, a comment keeps the connection alive


class Streams:
    """The open streams of one service, of which there is a limited number."""

    def __init__(self) -> None:
        self._open: set[object] = set()

    def stream(self, request: Request, look: Callable[[], str | None]) -> StreamingResponse:
        """Send what `look` returns, a line of text, whenever it changes; end when it returns None."""
        if len(self._open) >= MAX_STREAMS:
            raise RefusalError(
                HTTPStatus.SERVICE_UNAVAILABLE, f"Too many open pages: at most {MAX_STREAMS} can be updated live."
            )

        async def events() -> AsyncIterator[str]:
            self._open.add(look)
            try:
                async for event in _news(request, look):
                    yield event
            finally:
                self._open.discard(look)

        return StreamingResponse(events(), media_type="text/event-stream")


async def _news(request: Request, look: Callable[[], str | None]) -> AsyncIterator[str]:
    sent, quiet = "", 0
    while not await request.is_disconnected():
        now = await run_in_threadpool(look)
        if now is None:
            yield "event: gone\ndata: \n\n"
            return
        quiet = 0 if now != sent else quiet + 1
        if now != sent:
            sent = now
            yield f"data: {now}\n\n"
        elif quiet % POLLS_PER_COMMENT == 0:
            yield ": still here\n\n"
        await asyncio.sleep(POLL_SECONDS)
