"""The studies that are open in this process, each looked up once for all who ask at the same time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

from dbcare.studies.api import check_name
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.base import Store

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


MAX_OPEN_STUDIES = 1000
IDLE_SECONDS = 600.0  # after which a study that nobody uses is closed
FRESH_SECONDS = 0.25  # during which a study is not looked up again


@dataclass
class OpenedStudy:
    """A study, and when it was last looked up by its name."""

    study: StoredStudy
    seen: float


class OpenStudies:
    """Studies by name; a study that was deleted and re-created is a different one.

    The name is looked up again after a moment. Until then a `StoredStudy` notices by itself, and raises
    StudyNotFoundError, upon which the service forgets it. Each lookup closes the studies that nobody has used for
    IDLE_SECONDS, so that their memory is free for others.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.writers = ThreadPoolExecutor(store.max_writers, "writer")
        self._lookups: SharedLookups[StoredStudy] = SharedLookups()
        self._lock = threading.Lock()
        self._open: OrderedDict[str, OpenedStudy] = OrderedDict()

    def find(self, name: str) -> StoredStudy | None:
        """Return the study of that name if it was looked up just now; never waits."""
        opened = self._open.get(name)
        return opened.study if opened is not None and time.monotonic() - opened.seen < FRESH_SECONDS else None

    async def open(self, name: str) -> StoredStudy:
        """Return the study of that name, looked up in a thread if need be."""
        study = self.find(name)
        return await self._lookups.run(name, lambda: self.get(name)) if study is None else study

    def get(self, name: str) -> StoredStudy:
        """Return the study of that name."""
        if (study := self.find(name)) is not None:
            return study
        now = time.monotonic()
        identity = self.store.record(check_name(name)).identity
        opened = self._open.get(name)
        if opened is None or opened.study.record.identity != identity:
            opened = OpenedStudy(StoredStudy(self.store, name).open(), now)
        opened.seen = now
        with self._lock:
            self._open[name] = opened
            self._open.move_to_end(name)
            self._close_unused(now)
        return opened.study

    def _close_unused(self, now: float) -> None:
        """Close the studies that were used least recently: those that are idle, and those beyond the largest number."""
        while len(self._open) > MAX_OPEN_STUDIES or now - next(iter(self._open.values())).seen > IDLE_SECONDS:
            self._open.popitem(last=False)

    def list_open(self) -> list[StoredStudy]:
        """List the studies that are open."""
        with self._lock:
            return [opened.study for opened in self._open.values()]

    def forget(self, name: str) -> None:
        """Drop the study, so that it is looked up when it is next needed."""
        with self._lock:
            self._open.pop(name, None)
