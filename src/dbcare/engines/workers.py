"""Threads and processes that share the work of runs.

A kernel releases the interpreter's lock and writes each run's result to that run's own slot, so threads share only a
counter. They take blocks of runs that last about a twentieth of a second, so Ctrl-C takes effect promptly.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process

from dbcare.engines.simulate.halt import current_halt
from dbcare.engines.simulate.outcomes import Outcomes


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


BLOCK_SECONDS = 0.05

Block = Callable[[Outcomes, int], None]  # fills all of the given outcomes; takes the number of the first run


def available_threads() -> int:
    """Return the number of CPUs available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fill(outcomes: Outcomes, blocks: list[Block], first: int, max_block_runs: int = 65_536) -> None:
    """Simulate runs `first`, `first` + 1, ... into `outcomes`, one thread per block; each block owns its memory.

    Once the switch that applies is set (`engines.simulate.halt`), no thread begins another block, and this raises.
    """
    runs = len(outcomes.pulls)
    halt = current_halt()
    lock = threading.Lock()
    stop = threading.Event()
    # Wait for this rather than joining threads: a join interrupted by Ctrl-C may take a running thread for stopped.
    finished = threading.Semaphore(0)
    failures: list[BaseException] = []
    next_run = 0

    def work(block: Block) -> None:
        nonlocal next_run
        size = 1
        try:
            while not stop.is_set():
                with lock:
                    start, next_run = next_run, min(runs, next_run + size)
                    end = next_run
                if start == end:
                    return
                halt.check()
                began = time.perf_counter()
                block(outcomes.part(start, end), first + start)
                pace = BLOCK_SECONDS / max(time.perf_counter() - began, 1e-9)
                size = max(1, min(int(size * min(pace, 8.0)), max_block_runs, (runs - next_run) // len(blocks) + 1))
        except BaseException as failure:
            failures.append(failure)
            stop.set()
        finally:
            finished.release()

    if len(blocks) == 1:  # stay in the caller's thread, so that its CPU time is counted there
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
