"""A sweep: the passes of an experiment that are not on disk yet, done and written down one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from dbcare.engines.threads import available_threads
from dbcare.lab.points import Pass, Point
from dbcare.lab.result_store import ResultStore
from dbcare.lab.results import Record, Result, compute

Workers = Callable[[list[Pass]], Iterator[Record]]  # does passes, in any order
Watcher = Callable[[Record], None]


def sweep(passes: Sequence[Pass], store: ResultStore, workers: Workers, watch: Watcher) -> dict[Point, Result]:
    """The result of every point of `passes`, computed unless it is stored; `watch` sees each pass that was computed."""
    for record in workers(waiting(passes, store)):
        store.add(record)
        watch(record)
    return {
        point: result
        for work in passes
        for point, result in zip(work.points, store.records[work.key].results, strict=True)
    }


def waiting(passes: Iterable[Pass], store: ResultStore) -> list[Pass]:
    """The passes that are not stored, in an order unrelated to their cost, so that progress is even."""
    return sorted((work for work in passes if work.key not in store.records), key=lambda work: work.key)


def local_workers(threads: int | None = None) -> Workers:
    """Passes on the threads of this process; the compiled loops run outside the interpreter's lock."""
    width = available_threads() if threads is None else threads

    def work(passes: list[Pass]) -> Iterator[Record]:
        with ThreadPoolExecutor(width) as pool:
            try:
                for done in as_completed([pool.submit(compute, each) for each in passes]):
                    yield done.result()
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    return work
