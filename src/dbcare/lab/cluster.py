"""Workers on a Dask cluster instead of local threads (extra `dbcare[dask]`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import dbcare
from dbcare.base.extras import say_how_to_install
from dbcare.errors import EngineError
from dbcare.lab.points import Pass, digest_code
from dbcare.lab.results import Record, compute
from dbcare.lab.sweep import Workers

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
