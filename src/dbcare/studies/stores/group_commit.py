"""Operations that arrive while a commit is under way share the next one; Ctrl-C leaves none half done.

A durable commit waits for the disk, and takes as long for one event as for a hundred. The first operation to arrive
leads: its thread carries out every operation that is waiting, commits once, and tells each how it went. Meanwhile
others queue up; the first of them leads the next group. Alone, an operation pays nothing for this.
"""

from __future__ import annotations

import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from types import FrameType
from typing import Any, Generic, TypeVar

from dbcare.errors import StorageError
from dbcare.studies.record.forks import renew_after_fork


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Let Ctrl-C take effect at the end of the block; a second one takes effect at once.

    Does nothing outside the main thread, the only one that Ctrl-C interrupts.
    """
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    received: list[tuple[int, FrameType | None]] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if received:
            previous(number, frame)
        received.append((number, frame))

    signal.signal(signal.SIGINT, receive)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if received:
            previous(*received[0])


MAX_WEIGHT = 256  # of a group, in events: whoever waits for the next group does not wait long

Result = TypeVar("Result")


class Operation(ABC, Generic[Result]):
    """Something to do in a transaction that others may share, and how it went.

    Parameters
    ----------
    lane : Hashable
        What it changes; operations of different lanes get equal shares of a group.
    weight : int
        Roughly how many events it records.
    """

    def __init__(self, lane: Hashable, weight: int = 1) -> None:
        self.lane = lane
        self.weight = weight
        self.began = time.monotonic()
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.is_done = False
        self.leads = False  # whether it is to carry out the next group
        self.executor: Executor | None = None  # who leads for an operation that no thread waits for
        self.deliver: Callable[[], None] | None = None
        self._signal = threading.Lock()  # held until the operation is done, or is to lead
        self._signal.acquire()

    @staticmethod
    @abstractmethod
    def carry_out(group: list[Any]) -> None:
        """Carry out a group of operations of this kind in one transaction, and note how each of them went."""

    def fail(self, failure: BaseException) -> None:
        """Record a failure; if the leading thread was interrupted (Ctrl-C), the others get a StorageError."""
        if not isinstance(failure, Exception):
            failure = StorageError("The change was interrupted, and may not have been stored; check before retrying.")
        self.result, self.error = None, failure

    def wait(self) -> None:
        """Wait until the operation is done or is to lead."""
        self._signal.acquire()

    def signal(self) -> None:
        """End the wait."""
        self._signal.release()

    def outcome(self) -> Result:
        """Return the result, or raise the operation's own error."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # set unless there is an error


class FairQueue:
    """Operations in order of arrival, taken from all lanes in turn."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[Hashable, deque[Operation[Any]]] = OrderedDict()

    def add(self, operation: Operation[Any]) -> None:
        """Add an operation behind the others of its lane."""
        self._lanes.setdefault(operation.lane, deque()).append(operation)

    def first(self) -> Operation[Any] | None:
        """Return the operation that the next group begins with."""
        return next(iter(self._lanes.values()))[0] if self._lanes else None

    def remove(self, operation: Operation[Any]) -> bool:
        """Remove an operation; return whether it was still waiting."""
        lane = self._lanes.get(operation.lane, deque())
        if operation not in lane:
            return False
        lane.remove(operation)
        if not lane:
            del self._lanes[operation.lane]
        return True

    def take(self) -> list[Operation[Any]]:
        """Take the next group: up to MAX_WEIGHT events, or a single operation that is heavier than that."""
        group: list[Operation[Any]] = []
        weight = 0
        while (operation := self.first()) is not None and (not group or weight + operation.weight <= MAX_WEIGHT):
            weight += operation.weight
            group.append(operation)
            lane = self._lanes.pop(operation.lane)
            lane.popleft()
            if lane:
                self._lanes[operation.lane] = lane  # behind the others
        return group


class GroupCommit:
    """Carries out operations in groups, one group at a time."""

    def __init__(self) -> None:
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Start anew: in a child process, nobody carries out what was waiting in its parent."""
        self._lock = threading.Lock()
        self._queue = FairQueue()
        self._led = False

    def run(self, operation: Operation[Result]) -> Result:
        """Carry out an operation together with what else is waiting; return its result or raise its error."""
        try:
            if not self._enqueue(operation):
                operation.wait()
            if not operation.is_done:
                with deferred_interrupt():  # whoever leads does so for others too
                    self._lead()
        except BaseException:  # such as Ctrl-C
            self._leave(operation)
            raise
        return operation.outcome()

    def submit(self, operation: Operation[Any], executor: Executor, deliver: Callable[[], None]) -> None:
        """Carry out an operation in a thread of `executor`, and call `deliver` there once it is done."""
        operation.executor, operation.deliver = executor, deliver
        if self._enqueue(operation):
            self._let_lead(operation)

    def _enqueue(self, operation: Operation[Any]) -> bool:
        """Add an operation; return whether it is to lead at once."""
        with self._lock:
            self._queue.add(operation)
            operation.leads = not self._led
            self._led = True
        return operation.leads

    def _lead(self) -> None:
        """Carry out the next group, and let the first waiting operation lead."""
        group: list[Operation[Any]] = []
        try:
            with self._lock:
                group += self._queue.take()
            if group:
                group[0].carry_out(group)
        except BaseException as failure:  # nobody may take silence for success
            for operation in group:
                if operation.error is None:
                    operation.fail(failure)
            raise
        finally:
            for operation in group:
                operation.is_done = True
            self._pass_on()  # before the results are delivered, so that the next commit starts at once
            for operation in group:
                if operation.deliver is None:
                    operation.signal()
                else:
                    operation.deliver()

    def _pass_on(self) -> None:
        with self._lock:
            following = self._queue.first()
            self._led = following is not None
            if following is not None:
                following.leads = True
                self._let_lead(following)

    def _let_lead(self, operation: Operation[Any]) -> None:
        """Let an operation lead: in the thread that waits for it, or in one of its executor."""
        if operation.executor is None:
            operation.signal()
            return
        try:
            operation.executor.submit(self._lead)
        except RuntimeError:  # it has been shut down, but others may be waiting
            threading.Thread(target=self._lead, daemon=True).start()

    def _leave(self, operation: Operation[Any]) -> None:
        """Give up waiting: what has not begun is not carried out, and somebody else leads."""
        with self._lock:
            was_waiting = self._queue.remove(operation)
        if was_waiting and operation.leads:
            self._pass_on()
