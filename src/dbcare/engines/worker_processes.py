"""Processes that compute for this one, and end with it."""

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process


def start_processes(count: int, on_interrupt: signal.Handlers) -> ProcessPoolExecutor:
    """Start worker processes that treat Ctrl-C as told, and that end however this process ends."""
    # Started afresh, as threads do not survive a fork.
    return ProcessPoolExecutor(count, get_context("spawn"), initializer=_begin, initargs=(on_interrupt,))


def _begin(on_interrupt: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, on_interrupt)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for the parent's end, which an idle worker would never notice, nor a busy one until its work is done."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
