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
            loop.run_until_complete(task)
        except BaseException as failure:  # raised again by the caller
            failures.append(failure)
        finally:
            _close(loop)

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


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left and close a loop, without waiting for threads that users' functions left hanging."""
    loop.run_until_complete(_cancel(asyncio.all_tasks(loop)))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def _cancel(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
