"""Measure how much memory it takes to export a study of a million trials to CSV, locally and from a server.

Each export runs in a process of its own, which has read the first trials before; extra memory is the most that it, or
the server, then has beyond what it had. Linux only.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.parts.bars import Bars
from benchmarks.parts.http_load import Server
from benchmarks.parts.process_memory import forget_peak, measure_growth
from benchmarks.parts.study_load import grow_study
from dbcare.studies.stores.open import open_store

TRIALS = 1_000_000
MAX_MEGABYTES = 100.0
SCRIPT = """
import json, sys, time
import dbcare
from benchmarks.parts.process_memory import forget_peak, measure_growth
address, name, path = sys.argv[1:]
if address.startswith("http"):
    study = dbcare.connect(address).load_study(name)
else:
    study = dbcare.load_study(name, address)
next(study.trials())
before, began, cpu_before = forget_peak("self"), time.perf_counter(), time.process_time()
study.export(path)
seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_before
print(json.dumps([measure_growth("self", before), seconds, cpu_seconds]))
"""


def export(address: str, name: str, path: Path, trials: int, key: str = "") -> tuple[float, dict[str, float]]:
    """Export a study in a process of its own; return its extra megabytes, and how long it took."""
    environment = {**os.environ, "DBCARE_KEY": key, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", SCRIPT, address, name, str(path)]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    with path.open() as file:
        assert sum(1 for _ in file) == trials + 1
    extra, seconds, cpu_seconds = json.loads(result.stdout)
    return extra, {"seconds": seconds, "cpu_seconds": cpu_seconds}


def main() -> None:
    bars = Bars(__doc__)
    trials = bars.size(TRIALS, 50_000)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:  # on a disk; /tmp may be in memory
        folder = Path(name)
        grow_study(folder, "million", trials)
        storage = f"sqlite:///{folder / 'million.db'}"
        local, times = export(storage, "million", folder / "local.csv", trials)
        bars.report(f"exporting {trials:,} trials, extra MB", local, MAX_MEGABYTES, **times)
        server = Server(storage)
        server.start()
        try:
            address = f"http://127.0.0.1:{server.port}"
            before = forget_peak(server.process.pid)
            client, times = export(address, "million", folder / "remote.csv", trials, server.key)
            served = measure_growth(server.process.pid, before)
        finally:
            server.kill()
        bars.report("from a server: extra MB of the client", client, MAX_MEGABYTES, **times)
        bars.report("from a server: extra MB of the server", served, MAX_MEGABYTES)
        assert (folder / "remote.csv").read_bytes() == (folder / "local.csv").read_bytes()
        open_store(storage).close()
    bars.save()
