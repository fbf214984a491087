"""Measure /metrics with 1,000 studies, and how fast health is answered while the database hangs.

The first server has an SQLite file with 1,000 studies of three arms, each opened by an ask and with a trial that is
pending. The second one has a PostgreSQL server from a wheel (the extra `dev`), which is stopped with all its processes
(SIGSTOP) while the three addresses are asked for.
"""

import contextlib
import http.client
import statistics
import sys
import tempfile
import time
from pathlib import Path

import dbcare
from benchmarks.parts.bars import Bars
from benchmarks.parts.http_load import Server
from dbcare.studies.stores.open import open_store

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from helpers.postgres import run_server

STUDIES = 1_000
REFRESH_SECONDS = 60.0  # at most, until all studies are in the figures
REPEATS = 200
HANGING_SECONDS = 30.0


def ask_all(server: Server, studies: int) -> None:
    """Open all studies by an ask each."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.key}"}
    for number in range(studies):
        connection.request("POST", f"/v1/studies/study-{number:04}/ask", "{}", headers)
        response = connection.getresponse()
        assert response.status == http.client.OK, response.read()
        response.read()


def time_request(server: Server, path: str) -> float:
    """Return the seconds for a request, on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60.0)
    began = time.perf_counter()
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {server.key}"})
        connection.getresponse().read()
    return time.perf_counter() - began


def measure_metrics(bars: Bars, folder: Path) -> None:
    """Report the time and size of /metrics with many studies."""
    studies = bars.size(STUDIES, 50)
    storage = f"sqlite:///{folder / 'studies.db'}"
    for number in range(studies):
        dbcare.create_study(f"study-{number:04}", ("A", "B", "C"), cost=1e-15, sigma=1.0, storage=storage)
    server = Server(storage)
    server.start()
    ask_all(server, studies)
    until = time.monotonic() + REFRESH_SECONDS
    text = b""
    while text.count(b"dbcare_study_notes{") < studies and time.monotonic() < until:
        time.sleep(1.0)
        text = server.get("/metrics")
    bars.report(f"studies in /metrics, of {studies:,}", text.count(b"dbcare_study_notes{"), studies, at_least=True)
    seconds = [time_request(server, "/metrics") for _ in range(REPEATS)]
    p99 = statistics.quantiles(seconds, n=100)[98]
    bars.report(f"p99 of /metrics with {studies:,} studies, seconds", p99, 0.05, median=statistics.median(seconds))
    bars.report(f"size of /metrics with {studies:,} studies, MB", len(text) / 1e6, 1.0)
    server.kill()
    open_store(storage).close()


def measure_health(bars: Bars) -> None:
    """Report how long health and metrics take while the database hangs, and when the service says so."""
    with run_server() as postgres:
        server = Server(postgres.create_database())
        server.start()
        while b"ready" not in server.get("/readyz"):
            time.sleep(0.1)
        server.get("/metrics")
        seconds: dict[str, list[float]] = {"/healthz": [], "/readyz": [], "/metrics": []}
        noticed = float("inf")
        with postgres.hanging():
            hung = time.perf_counter()
            while time.perf_counter() - hung < bars.size(HANGING_SECONDS, 12.0):
                for path, times in seconds.items():
                    times.append(time_request(server, path))
                if noticed == float("inf") and b"dbcare_ready 0.0" in server.get("/metrics"):
                    noticed = time.perf_counter() - hung
        for path, times in seconds.items():
            p99 = statistics.quantiles(times, n=100)[98]
            bars.report(f"p99 of {path} while PostgreSQL hangs, seconds", p99, 1.0, most=max(times))
        bars.report("seconds until the service says that PostgreSQL hangs", noticed, 10.0)
        server.kill()
        open_store(server.storage).close()


def main() -> None:
    bars = Bars(__doc__)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        measure_metrics(bars, Path(name))
    measure_health(bars)
    bars.save()
