"""Runs a coroutine in a thread of its own, so that it also works where an event loop is running, as in a notebook."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Coroutine
from typing import Any


def run_in_own_thread(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; Ctrl-C cancels it."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(coroutine)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(_wait_for(task))
        except BaseException as failure:  # raised again by the caller
            failures.append(failure)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="dbcare-compare", daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if failures:
        raise failures[0]


async def _wait_for(task: asyncio.Task[None]) -> None:
    await task
