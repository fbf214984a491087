"""One call of a function: on the event loop or in a thread, with a time limit and a rate limit."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError


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


SECONDS_PER_MINUTE = 60.0


class RateLimit:
    """Lets at most so many calls begin per minute, in the order in which they come."""

    def __init__(self, per_minute: float) -> None:
        self._interval = SECONDS_PER_MINUTE / per_minute
        self._free_at = 0.0

    async def wait(self) -> None:
        """Wait for the turn of a call."""
        now = asyncio.get_running_loop().time()
        turn = max(now, self._free_at)
        self._free_at = turn + self._interval
        if turn > now:
            await asyncio.sleep(turn - now)


def make_rate_limits(rate_limit: float | Mapping[str, float] | None, arms: Sequence[str]) -> dict[str, RateLimit]:
    """Return the limit of each arm that has one: a single one that all share, or one each."""
    if rate_limit is None:
        return {}
    if isinstance(rate_limit, Mapping):
        for name in rate_limit:
            if name not in arms:
                raise InvalidValueError(f"`rate_limit` must name arms ({', '.join(arms)}) but got {show(name)}.")
        return {name: RateLimit(_check_rate(f"rate_limit of {name}", rate)) for name, rate in rate_limit.items()}
    return dict.fromkeys(arms, RateLimit(_check_rate("rate_limit", rate_limit)))


def _check_rate(name: str, rate: Any) -> float:
    return checks.positive(name, rate)


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
