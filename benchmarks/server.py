"""Measure the service under load: its rate against the library's on the same SQLite file, and whether it loses rewards.

`make bench`, or `python benchmarks/server.py [--out DIR]`. Eight clients, threads with their own connection and a
worker's key, ask for trials and tell rewards. The server is a separate process, killed once in the middle (SIGKILL) and
restarted. Server and clients share the machine's CPUs.
"""

import http.client
import json
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

from bars import Bars
from live import seconds_per_pair

import dbcare
from dbcare import Study
from dbcare.live.events import EventKind
from dbcare.live.stores.open import open_store
from dbcare.live.stores.sql.store import SqlStore
from dbcare.server.access.keys import Keys
from dbcare.server.access.roles import Role

CLIENTS = 8
PAIRS = 400  # per client
SCRIPT = "import sys; from dbcare.server.serve import serve; serve(sys.argv[1], '127.0.0.1', int(sys.argv[2]))"


class Server:
    """The service, on a fixed port."""

    def __init__(self, storage: str) -> None:
        self.storage = storage
        self.key = Keys(SqlStore(storage)).create("benchmark", Role.WORKER)[1]
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = int(taken.getsockname()[1])

    def start(self) -> None:
        """Start the server; return once it responds."""
        self.process = subprocess.Popen([sys.executable, "-c", SCRIPT, self.storage, str(self.port)])
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port)
                connection.request("GET", "/healthz")
                connection.getresponse()
                return
            except ConnectionError:
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server without warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Client(threading.Thread):
    """Asks and tells; retries requests that got no response."""

    def __init__(self, server: Server, study: str, number: int, pairs: int, load: str) -> None:
        super().__init__()
        self.server, self.path, self.number, self.pairs = server, f"/v1/studies/{study}", number, pairs
        self.load = load  # another load's keys would return its trials again
        self.told: list[int] = []
        self.seconds: list[float] = []  # per request

    def run(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
        chance = random.Random(self.number)
        while len(self.told) < self.pairs:
            key = f"{self.load}/{self.number}/{len(self.told)}"
            trials = self.send("ask", {"worker": f"client {self.number}"}, key)["trials"]
            if trials:
                self.send("tell", {"trial": trials[0]["id"], "reward": chance.gauss(0.0, 1.0)})
                self.told.append(trials[0]["id"])

    def send(self, action: str, body: dict, key: str | None = None) -> dict:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.server.key}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        while True:
            began = time.perf_counter()
            try:
                self.connection.request("POST", f"{self.path}/{action}", json.dumps(body), headers)
                response = self.connection.getresponse()
                text = response.read()
            except (ConnectionError, http.client.HTTPException):
                self.connection.close()
                time.sleep(0.02)
                continue
            assert response.status < 300, text
            self.seconds.append(time.perf_counter() - began)
            return json.loads(text) if text else {}


def apply_load(server: Server, study: Study, pairs: int, kill: bool = False) -> tuple[float, list[Client]]:
    """Let all clients ask and tell `pairs` times; return the pairs per second, and the clients."""
    name = uuid.uuid4().hex
    clients = [Client(server, study.name, number, pairs, name) for number in range(CLIENTS)]
    began = time.perf_counter()
    for client in clients:
        client.start()
    if kill:
        while sum(len(client.told) for client in clients) < CLIENTS * pairs // 3:
            time.sleep(0.01)
        server.kill()
        server.start()
    for client in clients:
        client.join()
    return CLIENTS * pairs / (time.perf_counter() - began), clients


def count_lost_or_duplicated(study: Study, clients: list[Client]) -> int:
    """Count acknowledged trials that are missing, or were told or handed out more than once."""
    acknowledged = [trial for client in clients for trial in client.told]
    with open_store(clients[0].server.storage).session(study.name, write=False) as session:
        told = [
            event.trial for _, event in session.events_after(0) if event.kind in (EventKind.TOLD, EventKind.SURPLUS)
        ]
    study.check()
    duplicated = len(told) - len(set(told)) + len(acknowledged) - len(set(acknowledged))
    return duplicated + len(set(acknowledged) - set(told))


def main() -> None:
    bars = Bars(__doc__)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        storage = f"sqlite:///{Path(name) / 'load.db'}"
        studies = {
            study_name: dbcare.create_study(study_name, ("A", "B", "C"), cost=1e-15, sigma=1.0, storage=storage)
            for study_name in ("library", "service", "killed")
        }
        server = Server(storage)
        server.start()
        apply_load(server, studies["service"], 20)  # warm up
        library_rates, service_rates, times, lost = [], [], [], 0
        for _ in range(3):
            library_rates.append(1.0 / seconds_per_pair(studies["library"], PAIRS))
            rate, clients = apply_load(server, studies["service"], PAIRS)
            service_rates.append(rate)
            times += [seconds for client in clients for seconds in client.seconds]
            lost += count_lost_or_duplicated(studies["service"], clients)
        library, service = statistics.median(library_rates), statistics.median(service_rates)
        bars.report(
            "ask+tell over HTTP, 8 clients / in the library", service / library, 0.25, at_least=True,
            library=library, service=service,
        )  # fmt: skip
        percentiles = statistics.quantiles(times, n=100)
        median, p99 = percentiles[49], percentiles[98]
        bars.report("p99 of a request / median", p99 / median, 10.0, median=median, p99=p99)
        bars.report("trials lost or duplicated under load", lost, 0)
        _, clients = apply_load(server, studies["killed"], PAIRS, kill=True)
        lost = count_lost_or_duplicated(studies["killed"], clients)
        bars.report("acknowledged rewards lost by a restart under load", lost, 0)
        server.kill()
        open_store(storage).close()
    bars.save()


if __name__ == "__main__":
    main()
