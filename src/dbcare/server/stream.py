"""Server-sent events: what a page shows, sent again whenever it has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

EVERY = 0.5  # seconds between looks
STILL_THERE = 30  # looks without news after which a comment says that all is well


def stream(request: Request, look: Callable[[], str | None]) -> StreamingResponse:
    """Send what `look` gives, in one line, when it is new; end when it gives None."""

    async def events() -> AsyncIterator[str]:
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
