"""Defer Ctrl-C until the work in progress is complete."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
