"""Runs spread over threads, with results that do not depend on how.

A kernel releases the interpreter's lock and writes each run's result to its place, so threads only share a counter.
They take blocks of runs sized to about a twentieth of a second, so that Ctrl-C is obeyed at once.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLOCK_SECONDS = 0.05

Block = Callable[["Outcomes", int], None]  # fill all of these outcomes; the first run's number


@dataclass(frozen=True)
class Outcomes:
    """What each run came to; by run and by cap where several caps on the pulls were followed."""

    recommended: npt.NDArray[np.int32]
    pulls: npt.NDArray[np.int64]
    undecided: npt.NDArray[np.bool_]  # stopped with more than one arm left
    leader: npt.NDArray[np.int32]  # the control variate's arm, where there is one
    spent: npt.NDArray[np.float64]  # the cost of all pulls, where arms differ in it

    @classmethod
    def empty(cls, runs: int, *, control: bool = False, charged: bool = False, caps: int | None = None) -> "Outcomes":
        """Places for the results of `runs` runs, at each of so many `caps` if that is given."""
        shape = runs if caps is None else (runs, caps)
        return cls(
            np.empty(shape, np.int32),
            np.empty(shape, np.int64),
            np.empty(shape, np.bool_),
            np.empty(runs if control else 0, np.int32),
            np.empty(runs if charged else 0),
        )

    def part(self, start: int, stop: int) -> "Outcomes":
        """The runs from `start` to `stop`, sharing memory."""
        return Outcomes(
            self.recommended[start:stop],
            self.pulls[start:stop],
            self.undecided[start:stop],
            self.leader[start:stop],
            self.spent[start:stop],
        )

    @property
    def paid(self) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
        """What each run cost: pulls, or money where arms differ."""
        return self.spent if len(self.spent) else self.pulls

    @property
    def caps(self) -> int | None:
        """How many caps were followed, if several could have been."""
        return self.pulls.shape[1] if self.pulls.ndim == 2 else None

    def at_cap(self, place: int) -> "Outcomes":
        """The runs as they ended at one of the caps."""
        return Outcomes(
            self.recommended[:, place].copy(),
            self.pulls[:, place].copy(),
            self.undecided[:, place].copy(),
            self.leader,
            self.spent,
        )

    def take(self, done: "Outcomes") -> None:
        """Copy finished runs to the front."""
        for mine, theirs in zip(vars(self).values(), vars(done).values(), strict=True):
            mine[: len(theirs)] = theirs


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
