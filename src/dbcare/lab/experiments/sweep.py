"""Run the passes of an experiment, on this machine or on a cluster, and resume after a crash."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import active_children
from pathlib import Path
from typing import Protocol

import dbcare
from dbcare.base.extras import say_how_to_install
from dbcare.engines.workers import available_threads, start_processes
from dbcare.errors import EngineError
from dbcare.lab.experiments.passes import Pass, Point, digest_code
from dbcare.lab.experiments.results import Record, Result, ResultStore, compute
from dbcare.lab.experiments.work_estimates import estimate_seconds, name_kernel
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


WORKER_TIMEOUT_SECONDS = 30


class DaskWorkers:
    """The workers of the scheduler at `address`; if one is lost, another repeats its passes.

    They are sent the modules that this process has imported from `folder`: policies next to an experiment's file.
    """

    def __init__(self, address: str, folder: Path | None = None) -> None:
        self.address = address
        self.folder = folder
        self.count = 0  # until connected

    def __call__(self, passes: list[Pass]) -> Iterator[Record]:
        """Compute all passes."""
        from distributed import Client, as_completed  # noqa: PLC0415  # an extra
        from distributed.comm.addressing import resolve_address  # noqa: PLC0415  # an extra

        if not passes:
            return
        try:
            resolve_address(self.address)  # closing a client that could not start takes 10 s
            client = Client(self.address, timeout="5s", set_as_default=False)
        except (OSError, ValueError) as failure:
            raise EngineError(f"Cannot connect to a Dask scheduler at {self.address}: {failure}.") from None
        with client:
            try:
                client.wait_for_workers(1, timeout=WORKER_TIMEOUT_SECONDS)
            except TimeoutError:
                raise EngineError(
                    f"The Dask scheduler at {self.address} has no workers; start one and retry."
                ) from None
            for load in (False, True):  # all are there before one is imported, since they may import each other
                for path in list_modules(self.folder):
                    client.upload_file(str(path), load=load)
            self.count = max(1, sum(client.nthreads().values()))
            futures = client.map(compute, passes, key=[f"dbcare-{task.key}" for task in passes])
            for future in as_completed(futures, loop=client.loop):
                try:
                    record = future.result()
                except (ImportError, RuntimeError) as failure:  # raised by a worker, or by the scheduler
                    raise EngineError(
                        "The Dask scheduler and its workers must be able to import the code of all policies but "
                        f"cannot: {failure.__cause__ or failure}. Install the policy's package there, or move its "
                        "module next to the experiment's file."
                    ) from failure
                if record.code != digest_code():
                    raise EngineError(
                        f"The Dask workers must run the same code as this process, dbcare {dbcare.__version__}, but "
                        f"they run different code, dbcare {record.versions['dbcare']}."
                    )
                yield record
                future.release()


def list_modules(folder: Path | None) -> list[Path]:
    """List the files of all modules that this process has imported from a folder, the latest import first.

    A module thus comes after those that it imported, so that workers that had an older version load the new ones.
    """
    if folder is None:
        return []
    files = [Path(file) for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))]
    return [path for path in reversed(files) if path.suffix == ".py" and path.parent.resolve() == folder.resolve()]


def make_dask_workers(address: str, folder: Path | None = None) -> Workers:
    """Return the workers of the scheduler at `address`, which get the modules imported from `folder`."""
    if find_spec("distributed") is None:
        raise EngineError(f"Dask requires an extra: {say_how_to_install('dask')}.")
    return DaskWorkers(address, folder)
