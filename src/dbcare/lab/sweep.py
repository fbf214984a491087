"""Sweeps: compute the passes of an experiment that are not on disk yet, and store them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Protocol

from dbcare.engines.threads import available_threads
from dbcare.lab.points import Pass, Point
from dbcare.lab.result_store import ResultStore
from dbcare.lab.results import Record, Result, compute
from dbcare.lab.work_estimates import estimate_seconds

Watcher = Callable[[Record], None]


class Workers(Protocol):
    """Computes passes; starts them in the order given, and yields each when it is finished."""

    @property
    def count(self) -> int:
        """How many passes are computed at once."""

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
    """List the passes that are not stored, the longest first, so that all workers finish at about the same time."""
    missing = [work for work in passes if work.key not in store.records]
    return sorted(missing, key=lambda work: (-estimate_seconds(work), work.key))


@dataclass(frozen=True)
class LocalWorkers:
    """Threads of this process; compiled loops release the interpreter's lock."""

    count: int

    def __call__(self, passes: list[Pass]) -> Iterator[Record]:
        """Compute all passes."""
        with ThreadPoolExecutor(self.count) as pool:
            try:
                for future in as_completed([pool.submit(compute, task) for task in passes]):
                    yield future.result()
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def make_local_workers(threads: int | None = None) -> Workers:
    """Return that many threads. Default: all CPUs."""
    return LocalWorkers(available_threads() if threads is None else threads)
