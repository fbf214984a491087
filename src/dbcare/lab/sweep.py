"""Sweeps: compute the passes of an experiment that are not on disk yet, and store them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from dbcare.engines.threads import available_threads
from dbcare.lab.points import Pass, Point
from dbcare.lab.result_store import ResultStore
from dbcare.lab.results import Record, Result, compute

Workers = Callable[[list[Pass]], Iterator[Record]]  # computes passes, in any order
Watcher = Callable[[Record], None]


def sweep(passes: Sequence[Pass], store: ResultStore, workers: Workers, watch: Watcher) -> dict[Point, Result]:
    """Return the result of every point, computing what is not stored; call `watch` with each computed pass."""
    for record in workers(list_missing(passes, store)):
        store.add(record)
        watch(record)
    return {
        point: result
        for work in passes
        for point, result in zip(work.points, store.records[work.key].results, strict=True)
    }


def list_missing(passes: Iterable[Pass], store: ResultStore) -> list[Pass]:
    """List the passes that are not stored, in an order unrelated to their cost, so that progress is even."""
    return sorted((work for work in passes if work.key not in store.records), key=lambda work: work.key)


def make_local_workers(threads: int | None = None) -> Workers:
    """Return workers on threads of this process; compiled loops release the interpreter's lock."""
    count = available_threads() if threads is None else threads

    def work(passes: list[Pass]) -> Iterator[Record]:
        with ThreadPoolExecutor(count) as pool:
            try:
                for future in as_completed([pool.submit(compute, task) for task in passes]):
                    yield future.result()
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    return work
