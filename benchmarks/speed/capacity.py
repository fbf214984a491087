"""Measure how many trials per second one server handles, each asked and told over HTTP.

`python -m benchmarks capacity [ADDRESS]`. ADDRESS is a database for studies, such as
postgresql://dbcare@host/dbcare; the study created there is deleted in the end, and the key revoked. Default: an SQLite
file in the current folder. Server and clients share the machine's CPUs. The figures are medians of five loads.
"""

import os
import statistics
import tempfile
import uuid
from pathlib import Path

import dbcare
from benchmarks.parts.bars import Bars, make_parser
from benchmarks.parts.http_load import Server, apply_load

ROUNDS = 5
PAIRS = 1_600  # per load


def measure(bars: Bars, address: str) -> None:
    """Report the rates of a server of the studies at an address."""
    name = f"capacity-{uuid.uuid4().hex[:8]}"
    dbcare.create_study(name, ("A", "B", "C"), cost=1e-15, sigma=1.0, storage=address)
    server = Server(address)
    server.start()
    try:
        rounds, pairs = bars.size((ROUNDS, PAIRS), (1, 320))
        apply_load(server, name, 8, pairs // 8)  # warm up
        for clients in (8, 32):
            loads = [apply_load(server, name, clients, pairs // clients) for _ in range(rounds)]
            seconds = statistics.median(second for load in loads for second in load.request_seconds)
            rate = statistics.median(load.rate for load in loads)
            bars.report(f"trials per second, {clients} clients", rate, milliseconds=1000.0 * seconds)
    finally:
        server.kill()
        server.revoke_key()
        dbcare.delete_study(name, storage=address)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("address", nargs="?", metavar="ADDRESS")
    bars = Bars(__doc__, options := parser.parse_args())
    address = options.address
    print(f"{os.cpu_count()} CPUs, {'SQLite' if address is None else address.partition(':')[0]}")
    if address is not None:
        measure(bars, address)
        bars.save()
        return
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk; /tmp may be in memory
        measure(bars, f"sqlite:///{folder}/studies.db")
    bars.save()
