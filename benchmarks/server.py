"""The service under load: its rate against the library's own on the same SQLite file, and what becomes of the answers.

`make bench`, or `python benchmarks/server.py [--out DIR]`. Eight clients, threads with a connection each and a worker's
key, ask for a trial and tell it. The server is a process of its own, killed once in the midst (SIGKILL) and started
again. The machine's processors are shared between server and clients.
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
from live import seconds_a_pair

import dbcare
from dbcare import Study
from dbcare.live.events import EventKind
from dbcare.live.stores.sql.store import SqlStore
from dbcare.live.studies import store_of
from dbcare.server.access.keys import Keys
from dbcare.server.access.roles import Role

CLIENTS = 8
PAIRS = 400  # of each client
SCRIPT = "import sys; from dbcare.server.serve import serve; serve(sys.argv[1], '127.0.0.1', int(sys.argv[2]))"


class Server:
    """The service on a port that stays the same."""

    def __init__(self, storage: str) -> None:
        self.storage = storage
        self.key = Keys(SqlStore(storage)).create("benchmark", Role.WORKER)[1]
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = int(taken.getsockname()[1])

    def start(self) -> None:
        """Returns once it answers."""
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
        """Without a word."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Client(threading.Thread):
    """Asks and tells; sends again what was not answered."""

    def __init__(self, server: Server, study: str, number: int, pairs: int, load: str) -> None:
        super().__init__()
        self.server, self.path, self.number, self.pairs = server, f"/v1/studies/{study}", number, pairs
        self.load = load  # keys of another load would bring its trials again
        self.told: list[int] = []
        self.seconds: list[float] = []  # of each request

    def run(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
        chance = random.Random(self.number)
        while len(self.told) < self.pairs:
            key = f"{self.load}/{self.number}/{len(self.told)}"
            trials = self.sent("ask", {"worker": f"client {self.number}"}, key)["trials"]
            if trials:
                self.sent("tell", {"trial": trials[0]["id"], "reward": chance.gauss(0.0, 1.0)})
                self.told.append(trials[0]["id"])

    def sent(self, what: str, body: dict, key: str | None = None) -> dict:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.server.key}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        while True:
            began = time.perf_counter()
            try:
                self.connection.request("POST", f"{self.path}/{what}", json.dumps(body), headers)
                answer = self.connection.getresponse()
                text = answer.read()
            except (ConnectionError, http.client.HTTPException):
                self.connection.close()
                time.sleep(0.02)
                continue
            assert answer.status < 300, text
            self.seconds.append(time.perf_counter() - began)
            return json.loads(text) if text else {}


def load(server: Server, study: Study, pairs: int, killed: bool = False) -> tuple[float, list[Client]]:
    """Pairs a second, and the clients."""
    name = uuid.uuid4().hex
    clients = [Client(server, study.name, number, pairs, name) for number in range(CLIENTS)]
    began = time.perf_counter()
    for client in clients:
        client.start()
    if killed:
        while sum(len(client.told) for client in clients) < CLIENTS * pairs // 3:
            time.sleep(0.01)
        server.kill()
        server.start()
    for client in clients:
        client.join()
    return CLIENTS * pairs / (time.perf_counter() - began), clients


def doubled_or_lost(study: Study, clients: list[Client]) -> int:
    """Trials that were acknowledged and are not there, or were told or handed out more than once."""
    acknowledged = [trial for client in clients for trial in client.told]
    with store_of(clients[0].server.storage).session(study.name, write=False) as session:
        told = [event.trial for _, event in session.since(0) if event.kind in (EventKind.TOLD, EventKind.SURPLUS)]
    study.check()
    twice = len(told) - len(set(told)) + len(acknowledged) - len(set(acknowledged))
    return twice + len(set(acknowledged) - set(told))


def main() -> None:
    bars = Bars(__doc__)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        storage = f"sqlite:///{Path(name) / 'load.db'}"
        studies = {
            each: dbcare.create_study(each, ("A", "B", "C"), cost=1e-15, sigma=1.0, storage=storage)
            for each in ("library", "service", "killed")
        }
        server = Server(storage)
        server.start()
        load(server, studies["service"], 20)  # warms up
        library, rates, times, lost = [], [], [], 0
        for _ in range(3):
            library.append(1.0 / seconds_a_pair(studies["library"], PAIRS))
            rate, clients = load(server, studies["service"], PAIRS)
            rates.append(rate)
            times += [seconds for client in clients for seconds in client.seconds]
            lost += doubled_or_lost(studies["service"], clients)
        own, over_http = statistics.median(library), statistics.median(rates)
        bars.report(
            "ask+tell over HTTP, 8 clients / the library's own", over_http / own, 0.25, at_least=True,
            library=own, service=over_http,
        )  # fmt: skip
        cuts = statistics.quantiles(times, n=100)
        bars.report("p99 of a request / median", cuts[98] / cuts[49], 10.0, median=cuts[49], p99=cuts[98])
        bars.report("trials lost or doubled under load", lost, 0)
        _, clients = load(server, studies["killed"], PAIRS, killed=True)
        bars.report("acknowledged answers lost by a restart under load", doubled_or_lost(studies["killed"], clients), 0)
        server.kill()
        store_of(storage).close()
    bars.save()


if __name__ == "__main__":
    main()
