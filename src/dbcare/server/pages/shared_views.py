"""The views of studies, each rendered once per change for everybody who looks at it."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

from starlette.concurrency import run_in_threadpool

from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages.study_view import StudyView, make_view
from dbcare.server.turns import Turns

MAX_VIEWS = 64  # kept at a time
KEPT_SECONDS = 60.0  # since the last look, so that studies that nobody looks at can be closed
REDRAW_SECONDS = 10.0  # after which the ages of trials are updated although nothing has happened
MIN_PAUSE_SECONDS = 0.5  # between two looks at a study for its open pages
PAUSE_PER_LOOK = 4.0  # times what a look takes, so that open pages take a fifth of a processor at most


@dataclass(frozen=True)
class SharedLook:
    """A view that was up to date when the look began, and how long the look took."""

    view: StudyView
    began: float
    seconds: float


class SharedViews:
    """The views of studies that somebody looked at lately."""

    def __init__(self, studies: OpenStudies, looks: Turns) -> None:
        self._studies = studies
        self._turns = looks
        self._looks: OrderedDict[str, SharedLook] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[None]] = {}

    async def get(self, name: str) -> StudyView:
        """Return what a study's page shows now."""
        return await self._get_since(name, time.monotonic())

    async def watch(self, name: str) -> StudyView:
        """Return what a study's page shows now or showed a moment ago; the longer a look takes, the fewer there are."""
        last = self._looks.get(name)
        pause = 0.0 if last is None else max(MIN_PAUSE_SECONDS, PAUSE_PER_LOOK * last.seconds)
        return await self._get_since(name, time.monotonic() - pause)

    async def _get_since(self, name: str, since: float) -> StudyView:
        while (last := self._looks.get(name)) is None or last.began < since:
            earlier = self._under_way.get(name)
            if earlier is not None:  # it may have begun too early, or fail for a reason that is gone
                await asyncio.wait([earlier])
                continue
            task = self._under_way[name] = asyncio.create_task(self._look(name))
            task.add_done_callback(partial(self._forget, name))
            await asyncio.shield(task)  # a client that leaves must not end what others wait for
        return last.view

    def _forget(self, name: str, done: asyncio.Task[None]) -> None:
        del self._under_way[name]
        if not done.cancelled():
            done.exception()  # known, even if whoever waited has left

    async def _look(self, name: str) -> None:
        try:
            async with self._turns.take(f"page of {name}"):
                look = await run_in_threadpool(self._look_now, name, self._looks.get(name))
        except BaseException:
            self._looks.pop(name, None)
            raise
        self._looks[name] = look
        self._looks.move_to_end(name)
        while len(self._looks) > MAX_VIEWS or next(iter(self._looks.values())).began < look.began - KEPT_SECONDS:
            self._looks.popitem(last=False)

    def _look_now(self, name: str, last: SharedLook | None) -> SharedLook:
        began = time.monotonic()
        study = self._studies.get(name)
        view = None if last is None or last.view.study is not study else last.view
        if view is None or began - view.rendered > REDRAW_SECONDS or view.position != study.position():
            view = make_view(study)
        return SharedLook(view, began, time.monotonic() - began)
