"""One call of a user's function: on the event loop if it is asynchronous, else in a thread, with a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any


class InterruptedCallError(BaseException):
    """A function wants the program to end, by `interruption`; it takes this form as an event loop breaks otherwise."""

    def __init__(self, interruption: KeyboardInterrupt | SystemExit) -> None:
        super().__init__(repr(interruption))
        self.interruption = interruption


async def call(function: Callable[..., Any], *arguments: Any, timeout: float | None) -> Any:
    """Call a function; raise TimeoutError if it takes longer than `timeout` seconds.

    A coroutine is then cancelled. A thread cannot be: it is abandoned, and does not keep the process from exiting.
    """
    async with asyncio.timeout(timeout):
        try:
            # In a task of its own, a call that cancels itself differs from a comparison that is cancelled.
            return await asyncio.create_task(_call(function, *arguments))
        except asyncio.CancelledError as cancelled:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise RuntimeError("the call cancelled itself") from cancelled


async def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        if is_asynchronous(function):
            return await function(*arguments)
        result = await _call_in_thread(function, *arguments)
        return await result if inspect.isawaitable(result) else result
    except (KeyboardInterrupt, SystemExit) as interruption:
        raise InterruptedCallError(interruption) from interruption


def is_asynchronous(function: Callable[..., Any]) -> bool:
    """Return whether a function, or an object that is called like one, is a coroutine function."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def _call_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a new daemon thread: those of an executor would be waited for at exit."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(set_outcome: Callable[[Any], None], value: Any) -> None:
        if not outcome.done():  # nobody gave up on it
            set_outcome(value)

    def work() -> None:
        try:
            result, deliver_to = context.run(function, *arguments), outcome.set_result
        except BaseException as failure:
            # A future does not take StopIteration.
            stop = isinstance(failure, StopIteration)
            result, deliver_to = RuntimeError(repr(failure)) if stop else failure, outcome.set_exception
        with contextlib.suppress(RuntimeError):  # the comparison is over, and its loop is closed
            loop.call_soon_threadsafe(deliver, deliver_to, result)

    threading.Thread(target=work, name="dbcare-compare-call", daemon=True).start()
    return await outcome
