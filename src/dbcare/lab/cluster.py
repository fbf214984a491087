"""Workers on a Dask cluster instead of local threads (extra `dbcare[dask]`)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import dbcare
from dbcare.errors import EngineError
from dbcare.lab.points import Pass, digest_code
from dbcare.lab.results import Record, compute
from dbcare.lab.sweep import Workers

WORKER_TIMEOUT_SECONDS = 30


class DaskWorkers:
    """The workers of the scheduler at `address`; if one is lost, another repeats its passes."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.count = 1  # known once connected

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
            self.count = max(1, sum(client.nthreads().values()))
            futures = client.map(compute, passes, key=[f"dbcare-{task.key}" for task in passes])
            for future in as_completed(futures, loop=client.loop):
                record = future.result()
                if record.code != digest_code():
                    raise EngineError(
                        f"The Dask workers must run the same code as this process, dbcare {dbcare.__version__}, but "
                        f"they run different code, dbcare {record.versions['dbcare']}."
                    )
                yield record
                future.release()


def make_dask_workers(address: str) -> Workers:
    """Return the workers of the scheduler at `address`."""
    if find_spec("distributed") is None:
        raise EngineError("Dask requires an extra: pip install 'dbcare[dask]'.")
    return DaskWorkers(address)
