"""Runs spread over threads, with results that do not depend on how.

A kernel releases the interpreter's lock and writes each run's result to its place, so threads only share a counter.
They take blocks of runs sized to about a twentieth of a second, so that Ctrl-C is obeyed at once.
"""

import os
import threading
import time
from collections.abc import Callable

from dbcare.engines.outcomes import Outcomes

BLOCK_SECONDS = 0.05

Block = Callable[[Outcomes, int], None]  # fill all of these outcomes; the first run's number


def available_threads() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fill(outcomes: Outcomes, blocks: list[Block], first: int, largest_block: int = 65_536) -> None:
    """Run `first`, `first` + 1, ... into `outcomes`, one thread for each of `blocks` (each owns its scratch memory)."""
    runs = len(outcomes.pulls)
    lock = threading.Lock()
    stop = threading.Event()
    # Waited for instead of the threads: a join that Ctrl-C interrupts may take a running thread for a stopped one.
    finished = threading.Semaphore(0)
    failures: list[BaseException] = []
    taken = 0

    def work(block: Block) -> None:
        nonlocal taken
        size = 1
        try:
            while not stop.is_set():
                with lock:
                    start, taken = taken, min(runs, taken + size)
                    end = taken
                if start == end:
                    return
                began = time.perf_counter()
                block(outcomes.part(start, end), first + start)
                pace = BLOCK_SECONDS / max(time.perf_counter() - began, 1e-9)
                size = max(1, min(int(size * min(pace, 8.0)), largest_block, (runs - taken) // len(blocks) + 1))
        except BaseException as failure:
            failures.append(failure)
            stop.set()
        finally:
            finished.release()

    if len(blocks) == 1:  # in the caller's own thread, which then also counts its time
        work(blocks[0])
        if failures:
            raise failures[0]
        return
    threads = [threading.Thread(target=work, args=(block,), daemon=True) for block in blocks]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            while not finished.acquire(timeout=0.1):
                pass
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if failures:
        raise failures[0]
