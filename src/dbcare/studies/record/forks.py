"""Forks: a child process has copies of locks and connections, and no thread that would ever release the locks.

SQLite remembers its locks per process: in a child, files that were open in the parent look locked although they are
not, and what the child writes there can be lost. So before a fork, files are closed, once nobody uses them.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Something with locks or connections that must not be used in a child process."""

    def renew(self) -> None:
        """Replace them. Called in the child, before anything else runs there."""


class Suspendable(Renewable, Protocol):
    """Something that must be paused while its process is forked."""

    def suspend(self) -> None:
        """Pause before a fork. Called in the thread that forks."""

    def resume(self) -> None:
        """Resume in the parent, after the fork."""


class Turnstile:
    """Lets every thread in except during a fork, which waits until all others have left."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside: Counter[int] = Counter()  # how often each thread is inside
        self._forking: int | None = None  # the thread for which the others wait

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Be inside; wait for a fork to be over, unless this thread is inside already."""
        thread = threading.get_ident()
        with self._changed:
            while self._forking not in (None, thread) and thread not in self._inside:
                self._changed.wait()
            self._inside[thread] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[thread] -= 1
                if not self._inside[thread]:
                    del self._inside[thread]
                if self._forking is not None:
                    self._changed.notify_all()

    def close(self, seconds: float) -> bool:
        """Let no other thread in; return whether nobody is inside, not even this thread, after at most so long."""
        thread = threading.get_ident()
        with self._changed:
            self._forking = thread
            self._changed.wait_for(lambda: not self._inside.keys() - {thread}, seconds)
            return not self._inside

    def open(self) -> None:
        """Let the others in again."""
        with self._changed:
            self._forking = None
            self._changed.notify_all()


class _Forks:
    """Prepares every fork of this process, and restores state afterwards."""

    def __init__(self) -> None:
        self._renewable: WeakSet[Renewable] = WeakSet()
        self._suspendable: WeakSet[Suspendable] = WeakSet()
        self._suspended: list[Suspendable] = []
        self._lock = threading.Lock()  # held by a thread that forks: one at a time
        if hasattr(os, "register_at_fork"):  # Windows has no forks
            os.register_at_fork(before=self._before, after_in_parent=self._in_parent, after_in_child=self._in_child)

    def renew(self, item: Renewable) -> None:
        self._renewable.add(item)

    def suspend(self, item: Suspendable) -> None:
        with self._lock:  # a fork lists them
            self._suspendable.add(item)
        self._renewable.add(item)

    def _before(self) -> None:
        self._lock.acquire()
        for item in list(self._suspendable):
            self._suspended.append(item)
            item.suspend()

    def _in_parent(self) -> None:
        while self._suspended:
            self._suspended.pop().resume()
        self._lock.release()

    def _in_child(self) -> None:
        self._lock = threading.Lock()
        self._suspended.clear()
        for item in list(self._renewable):
            item.renew()


_FORKS = _Forks()


def renew_after_fork(item: Renewable) -> None:
    """Have `item.renew()` called in every child process that is forked from this one."""
    _FORKS.renew(item)


def suspend_for_fork(item: Suspendable) -> None:
    """Have `item` paused during every fork of this process, and renewed in the child."""
    _FORKS.suspend(item)
