"""Sweeps: compute the passes of an experiment that are not on disk yet, and store them one by one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children
from typing import Protocol

from dbcare.engines.workers import available_threads, start_processes
from dbcare.errors import EngineError
from dbcare.lab.points import Pass, Point
from dbcare.lab.result_store import ResultStore
from dbcare.lab.results import Record, Result, compute
from dbcare.lab.work_estimates import estimate_seconds, name_kernel
from dbcare.policies.policy import ships

Watcher = Callable[[Record], None]

MIN_SECONDS_FOR_PROCESSES = 20.0  # of estimated work; starting processes takes two or three


class Workers(Protocol):
    """Computes passes; starts them in the order given, and yields each when it is finished."""

    @property
    def count(self) -> int:
        """How many passes are computed at once; 0 while workers are not connected yet."""

    def __call__(self, passes: list[Pass]) -> Iterator[Record]:
        """Compute all passes."""


def sweep(missing: Sequence[Pass], store: ResultStore, workers: Workers, watch: Watcher) -> None:
    """Compute passes in the order given, and store them; call `watch` with each one once it is stored."""
    for record in workers(list(missing)):
        store.add(record)
        watch(record)


def collect_results(passes: Iterable[Pass], store: ResultStore) -> dict[Point, Result]:
    """Return the stored result of every point of some passes."""
    return {
        point: result
        for work in passes
        for point, result in zip(work.points, store.records[work.key].results, strict=True)
    }


def list_missing(passes: Iterable[Pass], store: ResultStore) -> list[Pass]:
    """List the passes that are not stored, the longest first, so that all workers finish at about the same time.

    The longest pass of each kind comes before all others.
    """
    missing = [work for work in passes if work.key not in store.records]
    return lead_with_kernels(sorted(missing, key=lambda work: (-estimate_seconds(work), work.key)))


def lead_with_kernels(passes: Sequence[Pass]) -> list[Pass]:
    """Move the first pass of each kind to the front, so that workers compile different kernels at the same time."""
    first = {name_kernel(work): work.key for work in reversed(passes)}
    leading = set(first.values())
    return sorted(passes, key=lambda work: work.key not in leading)


@dataclass(frozen=True)
class LocalWorkers:
    """Threads of this process, or processes of their own where the work is worth starting them.

    Compiled loops release the interpreter's lock, so threads serve well; but only one of them can compile at a time.
    Policies of your own stay in this process: another one might not find their code.
    """

    count: int

    def __call__(self, passes: list[Pass]) -> Generator[Record]:
        """Compute all passes."""
        others = active_children()
        with self.start(passes) as pool:
            try:
                for future in as_completed([pool.submit(compute, task) for task in passes]):
                    yield future.result()
            except BrokenProcessPool:
                raise EngineError(
                    "A worker process was killed, perhaps because memory ran out; finished work is kept. "
                    "Run the same command again, with --threads 1 if it happens again."
                ) from None
            except BaseException:
                for process in set(active_children()).difference(others):
                    process.terminate()  # a pass in progress is not worth waiting for
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def start(self, passes: list[Pass]) -> Executor:
        """Start the workers for these passes."""
        seconds = sum(estimate_seconds(work) for work in passes)
        if (
            self.count == 1
            or seconds < MIN_SECONDS_FOR_PROCESSES
            or not all(ships(work.points[0].policy) for work in passes)
        ):
            return ThreadPoolExecutor(self.count)
        return start_processes(self.count, signal.SIG_IGN)  # they leave Ctrl-C to this process


def make_local_workers(threads: int | None = None) -> Workers:
    """Return that many workers. Default: all CPUs."""
    return LocalWorkers(available_threads() if threads is None else threads)
