"""Measure the service under load: against the disk itself, beside another writer, and whether it loses rewards.

Clients with their own connections and a worker's key ask for trials, each with an idempotency key, and tell rewards.
The server is a separate process, killed once in the middle (SIGKILL) and restarted. Server and clients share the
machine's CPUs. "The disk itself" is two durable commits of one row each, measured right before each load, since the
pace of a disk varies.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dbcare
from benchmarks.parts.bars import Bars
from benchmarks.parts.http_load import Load, Server, apply_load, count_lost_or_duplicated
from benchmarks.parts.study_load import disk_seconds_per_pair
from dbcare.studies.stores.open import open_store

ROUNDS = 5
PAIRS = 1_200  # per load
WRITER = """
import sys, dbcare
study = dbcare.load_study("beside", sys.argv[1])
while True:
    study.tell(study.ask(), 0.5)
"""


class Bench:
    """A server with studies in a folder of its own, and the loads it was put under."""

    def __init__(self, folder: Path, rounds: int, pairs: int) -> None:
        self.rounds, self.pairs = rounds, pairs  # pairs per load
        self.folder = folder
        self.storage = f"sqlite:///{folder / 'load.db'}"
        for name in ("service", "beside", "killed"):
            dbcare.create_study(name, ("A", "B", "C"), cost=1e-15, sigma=1.0, storage=self.storage)
        self.server = Server(self.storage)
        self.loads: list[Load] = []

    def measure(self, clients: int) -> tuple[float, Load]:
        """Put the server under load; return its rate over that of the disk, and the load."""
        disk = disk_seconds_per_pair(self.folder / f"disk {time.monotonic_ns()}.db", 200)
        load = apply_load(self.server, "service", clients, self.pairs // clients)
        self.loads.append(load)
        return load.rate * disk, load

    def measure_often(self, clients: int) -> tuple[float, float, float, float]:
        """Return the medians over some loads: of the ratio and the rate, and of the median and p99 of a request."""
        measured = [self.measure(clients) for _ in range(self.rounds)]
        quantiles = [statistics.quantiles(load.request_seconds, n=100) for _, load in measured]
        return (
            statistics.median(ratio for ratio, _ in measured),
            statistics.median(load.rate for _, load in measured),
            statistics.median(parts[49] for parts in quantiles),
            statistics.median(parts[98] for parts in quantiles),
        )


def main() -> None:
    bars = Bars(__doc__)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        rounds, pairs = bars.size((ROUNDS, PAIRS), (1, 384))
        bench = Bench(Path(name), rounds, pairs)
        bench.server.start()
        bench.measure(8)  # warm up
        rates = {}
        for clients, bar in ((1, 0.3), (8, 0.55), (32, 0.9), (128, 0.9)):
            before, told = bench.server.cpu_seconds(), sum(len(load.told) for load in bench.loads)
            ratio, rates[clients], median, p99 = bench.measure_often(clients)
            counted = sum(len(load.told) for load in bench.loads) - told
            cpu = (bench.server.cpu_seconds() - before) / counted
            bars.report(
                f"ask+tell over HTTP / two durable commits, {clients} clients", ratio, bar, at_least=True,
                rate=rates[clients], median=median, p99=p99, cpu_per_pair=cpu,
            )  # fmt: skip
            if clients == 32:
                bars.report("p99 of a request / median, 32 clients", p99 / median, 10.0, median=median, p99=p99)
        bars.report("rate with 128 clients / with 32", rates[128] / rates[32], 1.0, at_least=True)
        lost = count_lost_or_duplicated(bench.storage, "service", bench.loads)
        bars.report("trials lost or duplicated under load", lost, 0)
        writer = subprocess.Popen([sys.executable, "-c", WRITER, bench.storage])
        time.sleep(2.0)
        load = apply_load(bench.server, "service", 8, pairs // 8)
        assert writer.poll() is None
        writer.kill()
        writer.wait()
        p99 = statistics.quantiles(load.request_seconds, n=100)[98]
        bars.report("p99 of a request beside another writer, seconds", p99, 0.3, rate=load.rate)
        killed = apply_load(bench.server, "killed", 8, pairs // 8, kill_after=pairs // 3)
        lost = count_lost_or_duplicated(bench.storage, "killed", [killed])
        bars.report("acknowledged rewards lost by a restart under load", lost, 0)
        bench.server.kill()
        open_store(bench.storage).close()
    bars.save()
