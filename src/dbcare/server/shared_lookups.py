"""Lookups in the database that several requests share: a busy key or study is not looked up by each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

Found = TypeVar("Found")


class SharedLookups(Generic[Found]):
    """Lookups in threads; whoever wants the same thing while it is looked up waits for the same thread."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Task[Found]] = {}

    async def run(self, wanted: str, look_up: Callable[[], Found]) -> Found:
        """Return what `look_up` returns, in a thread, for everyone who wants it now."""
        task = self._under_way.get(wanted)
        if task is None:
            task = self._under_way[wanted] = asyncio.create_task(run_in_threadpool(look_up))
            task.add_done_callback(lambda _: self._under_way.pop(wanted, None))
        return await asyncio.shield(task)  # whoever gives up waiting does not end it for the others
