"""Workers on a Dask cluster instead of local threads (extra `dbcare[dask]`)."""

from __future__ import annotations

from collections.abc import Iterator

import dbcare
from dbcare.errors import EngineError
from dbcare.lab.points import Pass, digest_code
from dbcare.lab.results import Record, compute
from dbcare.lab.sweep import Workers

WORKER_TIMEOUT_SECONDS = 30


def make_dask_workers(address: str) -> Workers:
    """Return the workers of the scheduler at `address`; if one is lost, another repeats its passes."""
    try:
        from distributed import Client, as_completed  # noqa: PLC0415  # an extra
    except ImportError:
        raise EngineError("Dask requires an extra: pip install 'dbcare[dask]'.") from None

    def work(passes: list[Pass]) -> Iterator[Record]:
        if not passes:
            return
        try:
            client = Client(address, timeout="5s", set_as_default=False)
        except (OSError, ValueError) as failure:
            raise EngineError(f"Cannot connect to a Dask scheduler at {address}: {failure}.") from None
        with client:
            try:
                client.wait_for_workers(1, timeout=WORKER_TIMEOUT_SECONDS)
            except TimeoutError:
                raise EngineError(f"The Dask scheduler at {address} has no workers; start one and retry.") from None
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

    return work
