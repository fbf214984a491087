"""Turns: requests that only look at studies wait in line, so that they never take the service from those who work.

Python runs one thread at a time. Where many threads compute, an ask or a tell waits for all of them. Only one view or
piece of an export is therefore made at a time, and only one check, replay or plan; visitors who wait take turns.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from typing import TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread
from fastapi import Request
from starlette.types import Receive

from dbcare.engines.simulate.halt import Halt
from dbcare.errors import WorkCancelledError
from dbcare.server.access.gate import VISITOR
from dbcare.server.metrics import Metrics, Refusal
from dbcare.server.problems import RefusalError

CLIENT_LEFT = HTTPStatus.REQUEST_TIMEOUT  # for the metrics; nobody receives it
RETRY_SECONDS = 5
REFUSAL_SECONDS = 1.0  # before a refusal is sent, since some clients retry at once

Result = TypeVar("Result")
CancellableWork = Callable[[Halt], Result]  # which is set once the client has disconnected


class Turns:
    """A place for work of one kind, with a line per visitor; when it becomes free, it goes to the next line.

    At most `longest` requests of a visitor wait; more are refused with 429, and counted as `refusal`.
    """

    def __init__(self, longest: int, metrics: Metrics, refusal: Refusal) -> None:
        self.longest = longest
        self._is_free = True
        self._threads = CapacityLimiter(1)
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # of those who wait
        self._metrics = metrics
        self._refusal = refusal

    @asynccontextmanager
    async def take(self, line: str) -> AsyncIterator[None]:
        """Wait for a turn in a visitor's line, however long that is, and hold it."""
        await self._wait(line)
        try:
            yield
        finally:
            self._pass_on()

    @asynccontextmanager
    async def take_for(self, request: Request) -> AsyncIterator[None]:
        """Hold a turn for a request; refuse it if its visitor's line is full, or its client disconnects in line."""
        visitor, has_turn = await self._check_line(request), False
        with _cancelling(request.receive):
            await self._wait(visitor)
            has_turn = True
        if not has_turn:
            raise RefusalError(CLIENT_LEFT, "The client disconnected.")
        try:
            yield
        finally:
            self._pass_on()

    async def run_for(self, request: Request, work: CancellableWork[Result]) -> Result:
        """Run `work` in a thread when its turn comes, until it is done or the client has disconnected.

        `work` takes a switch that is set once the client has disconnected, and raises WorkCancelledError then.
        """
        visitor = await self._check_line(request)
        with _cancelling(request.receive) as halt, suppress(WorkCancelledError):
            async with self.take(visitor):
                # The thread ends soon after the client has left; until then it keeps its place.
                return await to_thread.run_sync(work, halt, limiter=self._threads)
        raise RefusalError(CLIENT_LEFT, "The client disconnected.")

    async def _check_line(self, request: Request) -> str:
        """Return whose line a request joins; refuse it if the line is full."""
        visitor: str = request.scope[VISITOR]
        if len(self._lines.get(visitor, ())) >= self.longest:
            self._metrics.refuse(self._refusal)
            await asyncio.sleep(REFUSAL_SECONDS)
            raise RefusalError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{self.longest} such requests of yours are waiting; retry in {RETRY_SECONDS} seconds.",
                {"Retry-After": str(RETRY_SECONDS)},
            )
        return visitor

    async def _wait(self, line: str) -> None:
        if self._is_free:
            self._is_free = False
            return
        turn = asyncio.get_running_loop().create_future()
        self._lines.setdefault(line, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it came just then
                self._pass_on()
            elif turn in self._lines.get(line, ()):
                self._lines[line].remove(turn)
                if not self._lines[line]:
                    del self._lines[line]
            raise

    def _pass_on(self) -> None:
        """Give the place to the line whose last turn was longest ago."""
        while self._lines:
            line, turns = self._lines.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._lines[line] = turns  # behind all others
            if not turn.done():  # else its client has just left
                turn.set_result(None)
                return
        self._is_free = True


@contextmanager
def _cancelling(receive: Receive) -> Iterator[Halt]:
    """Cancel what the block awaits once the client disconnects; yield a switch that is set then."""
    left = Halt()

    async def wait_for_disconnect() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()
        scope.cancel()

    with CancelScope() as scope:
        watcher = asyncio.create_task(wait_for_disconnect())
        try:
            yield left
        finally:
            left.set()  # also if the server itself cancels the request
            watcher.cancel()
