"""Measure asks with many pending trials, and whether assignments keep their time limit.

Bars are ratios of one run, except that an assignment with a fallback keeps its stated limit whatever the service does:
down, hung (SIGSTOP), or slow (behind a proxy that waits). Times of a thread that is due depend on how busy the machine
is, so the slack is stated with the result.
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import dbcare
from benchmarks.parts.bars import Bars
from dbcare import Study

FEW, MANY = 10, 100_000
ASKS = 1_000
ROUNDS = 5
CALLS, CALLERS = 1_000, 16
WITHIN, SLACK = 0.2, 0.05  # seconds
MAX_RATIO = 1.5


def prepare(name: str, pending: int, storage: str | None) -> Study:
    """Create a study with so many pending trials, whose policy never stops."""
    study = dbcare.create_study(
        name, ["A", "B", "C"], cost=1e-9, binary=True, not_before=10**9, storage=storage, max_ahead=10**6
    )
    while (missing := pending - study.status().asked) > 0:
        study.ask(min(1_000, missing), lease="2d")
    return study


def time_asks(study: Study, first: int, asks: int) -> float:
    """Return the mean seconds of an ask, each after the reward of the oldest trial has been counted."""
    total = 0.0
    for number in range(first, first + asks):
        study.tell(number, float(number % 25 == 0))
        start = time.perf_counter()
        study.ask(lease="2d")
        total += time.perf_counter() - start
    return total / asks


def compare_asks(bars: Bars, where: str, storage: str | None) -> None:
    """Time asks with few and with many pending trials in turn; compare the medians."""
    many_pending, asks = bars.size((MANY, ASKS), (5_000, 100))
    studies = {pending: prepare(f"{where} {pending}", pending, storage) for pending in (FEW, many_pending)}
    times: dict[int, list[float]] = {pending: [] for pending in studies}
    for turn in range(ROUNDS):
        for pending, study in studies.items():
            times[pending].append(time_asks(study, 1 + turn * asks, asks))
    few, many = map(statistics.median, times.values())
    bars.report(
        f"ask with {many_pending:,} pending trials over one with {FEW}, {where}",
        many / few,
        MAX_RATIO,
        few_seconds=few,
        many_seconds=many,
    )


def find_free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def run_service(storage: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the service, and end it."""
    port = find_free_port()
    command = [sys.executable, "-m", "dbcare", "serve", "--quiet", "--storage", storage, "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()


@contextmanager
def run_slow_proxy(port: int, delay: float) -> Iterator[str]:
    """Pass connections on to a port, each piece of a response `delay` seconds late."""

    def copy(source: socket.socket, target: socket.socket, wait: float) -> None:
        try:
            while piece := source.recv(65_536):
                time.sleep(wait)
                target.sendall(piece)
        except OSError:
            pass
        finally:
            target.close()

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=copy, args=(client, server, 0.0), daemon=True).start()
            threading.Thread(target=copy, args=(server, client, delay), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def call_in_time(bars: Bars, what: str, study: Study) -> None:
    """Let several callers assign at once; the longest call must keep the limit."""

    def call(number: int) -> float:
        start = time.perf_counter()
        found = study.assign(f"{what} {number}", "A", WITHIN)
        assert (found.arm, found.reason) == ("A", "fallback")
        return time.perf_counter() - start

    calls = bars.size(CALLS, 160)
    with ThreadPoolExecutor(CALLERS) as pool:
        longest = max(pool.map(call, range(calls)))
    bars.report(f"longest of {calls:,} assignments, service {what}, over the limit", longest / (WITHIN + SLACK), 1.0)


def measure_service(bars: Bars, storage: str) -> None:
    """Time assignments over HTTP with one client, and what happens when the service fails."""
    calls = bars.size(CALLS, 100)
    dbcare.create_study("shop", ["A", "B", "C"], cost=1e-9, binary=True, not_before=10**9, storage=storage)
    with run_service(storage) as (address, process), closing(dbcare.connect(address)) as client:
        study = client.load_study("shop")
        times = []
        for number in range(calls):
            start = time.perf_counter()
            found = study.assign(f"visitor {number}", "A", 5.0)
            times.append(time.perf_counter() - start)
            assert found.reason == "new trial", found
        times.sort()
        median, slowest = times[calls // 2], times[calls * 99 // 100]
        print(f"assign over HTTP, one client: median {1e3 * median:.1f} ms, p99 {1e3 * slowest:.1f} ms")
        with run_slow_proxy(int(address.rpartition(":")[2]), 2.0) as slow, closing(dbcare.connect(slow)) as late:
            call_in_time(bars, "slow", late.load_study("shop"))
        os.kill(process.pid, signal.SIGSTOP)
        call_in_time(bars, "hung", study)
        os.kill(process.pid, signal.SIGCONT)
    with closing(dbcare.connect(address)) as nobody:
        study._transport = nobody._transport  # type: ignore[attr-defined]  # the same study, after the service has gone
        call_in_time(bars, "down", study)


def main() -> None:
    bars = Bars(__doc__)
    compare_asks(bars, "in memory", None)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:  # on a disk; /tmp may be in memory
        compare_asks(bars, "in SQLite", f"sqlite:///{folder}/asks.db")
        measure_service(bars, f"sqlite:///{folder}/shop.db")
    bars.save()
