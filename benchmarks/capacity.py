"""Measure how many trials per second one server handles, each asked and told over HTTP.

`python benchmarks/capacity.py [ADDRESS]`. ADDRESS is a database for studies, such as
postgresql://dbcare@host/dbcare; the study created there is deleted in the end, and the key revoked. Default: an SQLite
file in the current folder. Server and clients share the machine's CPUs. The medians of five loads are printed.
"""

import argparse
import os
import statistics
import tempfile
import uuid
from pathlib import Path

from http_load import Server, apply_load

import dbcare

ROUNDS = 5
PAIRS = 1_600  # per load


def measure(address: str) -> None:
    """Print the rates of a server of the studies at an address."""
    name = f"capacity-{uuid.uuid4().hex[:8]}"
    dbcare.create_study(name, ("A", "B", "C"), cost=1e-15, sigma=1.0, storage=address)
    server = Server(address)
    server.start()
    try:
        apply_load(server, name, 8, PAIRS // 8)  # warm up
        for clients in (8, 32):
            loads = [apply_load(server, name, clients, PAIRS // clients) for _ in range(ROUNDS)]
            seconds = statistics.median(second for load in loads for second in load.request_seconds)
            rate = statistics.median(load.rate for load in loads)
            print(f"{clients:>3} clients: {rate:>6,.0f} trials per second, {seconds * 1000.0:.1f} ms per request")
    finally:
        server.kill()
        server.revoke_key()
        dbcare.delete_study(name, storage=address)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", nargs="?", metavar="ADDRESS")
    address = parser.parse_args().address
    print(f"{os.cpu_count()} CPUs, {'SQLite' if address is None else address.partition(':')[0]}")
    if address is not None:
        measure(address)
        return
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk; /tmp may be in memory
        measure(f"sqlite:///{folder}/studies.db")


if __name__ == "__main__":
    main()
