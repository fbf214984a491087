"""Measure what others can do to those who work: how long an ask and a tell take while requests flood the service.

The server is a separate process with its usual limits. The floods come from another process. A viewer checks or exports
a study of a million trials again and again on 60 connections, looks at a study of 1,000 arms on as many, or has 50
pages of it open while something happens in it all the time. A stranger without a key sends 12 requests at once on each
of 190 connections, from another address. A worker's program asks and tells meanwhile, one trial at a time, in the study
of 1,000 arms and in another one. A flood ends by closing its connections; the server is idle when it uses less than a
twentieth of a processor.
"""

import asyncio
import contextlib
import http.client
import itertools
import json
import multiprocessing
import random
import statistics
import tempfile
import time
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

import dbcare
from benchmarks.parts.bars import Bars
from benchmarks.parts.http_load import Server
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.server.access.roles import Role
from dbcare.studies.stores.open import open_store

TRIALS = 1_000_000
ARMS = 1_000
REQUESTS, PAGES, STRANGERS = 60, 50, 190  # at a time
PIPELINED = 12
FLOOD_SECONDS = 20.0
IDLE_SHARE, IDLE_WINDOW, MAX_IDLE_SECONDS = 0.05, 0.5, 120.0


def fill(storage: str, trials: int) -> None:
    """Create the studies."""
    chance = random.Random(1)
    options = {"cost": 1e-15, "sigma": 1.0, "storage": storage}
    long = dbcare.create_study("long", ("A", "B"), **options)
    for _ in range(trials // 10_000):
        long.add([("AB"[number % 2], chance.gauss(0.0, 1.0)) for number in range(10_000)])
    wide = dbcare.create_study("wide", [f"arm {number}" for number in range(ARMS)], **options)
    wide.add([(arm, chance.gauss(0.0, 1.0)) for arm in wide.settings.arms for _ in range(3)])
    dbcare.create_study("busy", ("A", "B"), **options)


@dataclass(frozen=True)
class Flood:
    """What to send, on how many connections, from which address."""

    name: str
    connections: int
    path: str
    header: str = "X-Key: none"
    at_once: int = 1
    source: str = "127.0.0.1"

    async def send_repeatedly(self, port: int) -> None:
        """Send requests again and again, and read what comes."""
        request = f"GET {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self.header}\r\n\r\n".encode() * self.at_once
        while True:
            with contextlib.suppress(ConnectionError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(self.source, 0))
                with contextlib.closing(writer):
                    writer.write(request)
                    while part := await reader.read(65536):
                        if part.startswith(b"HTTP/1.1 ") and not part.startswith(b"HTTP/1.1 200"):
                            writer.write(request)  # whatever the response says about waiting

    def run(self, port: int) -> None:
        """Send requests on all connections until this process is killed."""

        async def send_all() -> None:
            await asyncio.gather(*[self.send_repeatedly(port) for _ in range(self.connections)])

        asyncio.run(send_all())


class Worker:
    """A worker's program, on one connection."""

    def __init__(self, server: Server) -> None:
        self.headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.key}"}
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300.0)

    def send(self, path: str, body: dict[str, object]) -> dict:
        """Send a request; return the response."""
        self.connection.request("POST", path, json.dumps(body), self.headers)
        response = self.connection.getresponse()
        text = response.read()
        assert response.status < 300, text
        return json.loads(text or "{}")

    def work(self, study: str) -> float:
        """Ask and tell once; return the seconds."""
        began = time.perf_counter()
        trial = self.send(f"/v1/studies/{study}/ask", {})["trials"][0]["id"]
        self.send(f"/v1/studies/{study}/tell", {"trial": trial, "reward": 0.5})
        return time.perf_counter() - began


def sign_in(server: Server, key: str) -> str:
    """Sign in as a browser does; return the header with the cookie."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/login", urllib.parse.urlencode({"key": key}), form)
    cookie = connection.getresponse().headers["Set-Cookie"]
    return f"Cookie: {cookie.partition(';')[0]}"


def wait_until_idle(server: Server) -> float:
    """Return the seconds until the server does nothing any more."""
    began = time.perf_counter()
    while time.perf_counter() - began < MAX_IDLE_SECONDS:
        before = server.cpu_seconds()
        time.sleep(IDLE_WINDOW)
        if server.cpu_seconds() - before < IDLE_SHARE * IDLE_WINDOW:
            return time.perf_counter() - began - IDLE_WINDOW
    return MAX_IDLE_SECONDS


def measure(bars: Bars, server: Server, flood: Flood) -> None:
    """Report how long asks, tells and health checks take during a flood, and how long the server is busy after it."""
    worker = Worker(server)
    attack = multiprocessing.Process(target=flood.run, args=(server.port,), daemon=True)
    attack.start()
    time.sleep(2.0)
    seconds: dict[str, list[float]] = {"busy": [], "wide": []}
    health: list[float] = []
    until = time.perf_counter() + bars.size(FLOOD_SECONDS, 3.0)
    for here in itertools.cycle(seconds):
        seconds[here].append(worker.work(here))
        began = time.perf_counter()
        server.get("/healthz")
        health.append(time.perf_counter() - began)
        if time.perf_counter() > until:
            break
    attack.kill()
    attack.join()
    idle = wait_until_idle(server)
    for here, all_seconds in seconds.items():
        p99 = statistics.quantiles(all_seconds, n=100)[98]
        slowest, pairs = max(all_seconds), len(all_seconds)
        bars.report(f"s, p99 of ask+tell in {here!r} during {flood.name}", p99, 0.5, slowest=slowest, pairs=pairs)
    bars.report(f"s, slowest health check during {flood.name}", max(health), 0.5)
    bars.report(f"s until idle after {flood.name}", idle, 5.0)


def main() -> None:
    bars = Bars(__doc__)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        storage = f"sqlite:///{Path(folder) / 'floods.db'}"
        server = Server(storage)
        viewer = Keys(open_records(open_store(storage))).create("viewer", Role.VIEWER)[1]
        fill(storage, bars.size(TRIALS, 20_000))
        server.start()
        key, cookie = f"Authorization: Bearer {viewer}", sign_in(server, viewer)
        worker = Worker(server)
        quiet = statistics.quantiles([worker.work("busy") for _ in range(500)], n=100)[98]
        bars.report("s, p99 of ask+tell without a flood", quiet, 0.5)
        for flood in (
            Flood("60 checks", REQUESTS, "/v1/studies/long/check", key),
            Flood("60 exports", REQUESTS, "/v1/studies/long/export?format=csv", key),
            Flood("60 views", REQUESTS, "/v1/studies/wide/status", key),
            Flood("50 open pages", PAGES, "/studies/wide/events", cookie),
            *[
                Flood(f"190 strangers at {path}", STRANGERS, path, at_once=PIPELINED, source="127.0.0.2")
                for path in ("/v1/openapi.json", "/login", "/healthz")
            ],
        ):
            measure(bars, server, flood)
        server.kill()
    bars.save()
