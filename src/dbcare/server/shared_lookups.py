"""Lookups in the database that several requests share: a busy key or study is not looked up by each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

Found = TypeVar("Found")


class SharedLookups(Generic[Found]):
    """Lookups in threads; whoever wants what is being looked up waits for the same thread."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Task[Found]] = {}

    async def run(self, wanted: str, look_up: Callable[[], Found]) -> Found:
        """Return what `look_up` finds, in a thread.

        That something was not found is not shared: it may have been created after that lookup began.
        """
        earlier = self._under_way.get(wanted)
        if earlier is not None:
            await asyncio.wait([earlier])
            if earlier.exception() is None and (found := earlier.result()) is not None:
                return found
        task = self._under_way[wanted] = asyncio.create_task(run_in_threadpool(look_up))
        task.add_done_callback(lambda done: self._forget(wanted, done))
        return await asyncio.shield(task)  # a cancelled caller must not cancel the shared lookup

    def _forget(self, wanted: str, done: asyncio.Task[Found]) -> None:
        if self._under_way.get(wanted) is done:
            del self._under_way[wanted]
