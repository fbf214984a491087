"""Passes on a Dask cluster instead of local threads (extra `dbcare[dask]`)."""

from __future__ import annotations

from collections.abc import Iterator

import dbcare
from dbcare.errors import EngineError
from dbcare.lab.points import Pass, code_digest
from dbcare.lab.results import Record, compute
from dbcare.lab.sweep import Workers

SECONDS_FOR_A_WORKER = 30


def dask_workers(address: str) -> Workers:
    """Passes done by the workers of the scheduler at `address`; those of a lost worker are done again by another."""
    try:
        from distributed import Client, as_completed  # noqa: PLC0415  # an extra
    except ImportError:
        raise EngineError("A Dask cluster needs the extra: pip install 'dbcare[dask]'.") from None

    def work(passes: list[Pass]) -> Iterator[Record]:
        if not passes:
            return
        try:
            client = Client(address, timeout="5s", set_as_default=False)
        except (OSError, ValueError) as failure:
            raise EngineError(
                f"`dask` must be the address of a running scheduler but got {address}: {failure}."
            ) from None
        with client:
            try:
                client.wait_for_workers(1, timeout=SECONDS_FOR_A_WORKER)
            except TimeoutError:
                raise EngineError(f"The scheduler at {address} must have a worker but has none.") from None
            futures = client.map(compute, passes, key=[f"dbcare-{each.key}" for each in passes])
            for future in as_completed(futures, loop=client.loop):
                record = future.result()
                if record.code != code_digest():
                    raise EngineError(
                        f"The workers must run dbcare {dbcare.__version__} with this code but they run "
                        f"{record.versions['dbcare']} with other code."
                    )
                yield record
                future.release()

    return work
