"""Server-sent events: what a page shows, sent again whenever it has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from dbcare.server.problems import RefusalError

EVERY = 0.5  # seconds between looks
MOST = 200  # streams of one process: each takes some of its time
STILL_THERE = 30  # looks without news after which a comment says that all is well


_open: set[object] = set()


def stream(request: Request, look: Callable[[], str | None]) -> StreamingResponse:
    """Send what `look` gives, in one line, when it is new; end when it gives None."""
    if len(_open) >= MOST:
        raise RefusalError(HTTPStatus.SERVICE_UNAVAILABLE, f"At most {MOST} pages may be kept up to date at a time.")

    async def events() -> AsyncIterator[str]:
        _open.add(look)
        try:
            async for each in news():
                yield each
        finally:
            _open.discard(look)

    async def news() -> AsyncIterator[str]:
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
            elif quiet % STILL_THERE == 0:
                yield ": still here\n\n"
            await asyncio.sleep(EVERY)

    return StreamingResponse(events(), media_type="text/event-stream")
