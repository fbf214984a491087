"""A server in a process of its own, and clients that cost little: plain sockets in one event loop."""

import asyncio
import atexit
import http.client
import json
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field

from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.server.access.roles import Role
from dbcare.studies.record.events import EventKind
from dbcare.studies.stores.open import open_store

SCRIPT = "import sys; from dbcare.server.app import serve; serve(sys.argv[1], '127.0.0.1', int(sys.argv[2]))"


class Server:
    """The service, on a fixed port, with a worker's key."""

    def __init__(self, storage: str) -> None:
        self.storage = storage
        self.keys = Keys(open_records(open_store(storage, create=True)))
        created, self.key = self.keys.create("benchmark", Role.WORKER)
        self.key_id = created.id
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = int(taken.getsockname()[1])

    def start(self) -> None:
        """Start the server; return once it responds."""
        self.process = subprocess.Popen([sys.executable, "-c", SCRIPT, self.storage, str(self.port)])
        atexit.register(self.process.kill)  # also if the benchmark fails
        while True:
            try:
                self.get("/healthz")
                return
            except ConnectionError:
                time.sleep(0.05)

    def get(self, path: str) -> bytes:
        """Send a GET request; return the body of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
        response = connection.getresponse()
        body = response.read()
        assert response.status == http.client.OK, body
        return body

    def cpu_seconds(self) -> float:
        """Return the CPU time that the server has used."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / 100.0

    def revoke_key(self) -> None:
        """Revoke the worker's key."""
        self.keys.revoke(self.key_id)

    def kill(self) -> None:
        """Kill the server without warning."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@dataclass
class Load:
    """What clients saw: the trials they told, and how long each request took."""

    told: list[int] = field(default_factory=list)
    request_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Pairs of an ask and a tell per second."""
        return len(self.told) / self.seconds


class Client:
    """Asks and tells over one connection; retries requests that got no response."""

    def __init__(self, server: Server, study: str, load: Load) -> None:
        self.server, self.path, self.load = server, f"/v1/studies/{study}", load
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, pairs: int, name: str) -> None:
        """Ask and tell `pairs` times."""
        chance, told = random.Random(name), 0
        while told < pairs:
            trials = (await self.send("ask", {"worker": name}, f"{name}/{told}"))["trials"]
            if trials:
                await self.send("tell", {"trial": trials[0]["id"], "reward": chance.gauss(0.0, 1.0)})
                self.load.told.append(trials[0]["id"])
                told += 1
        if self.streams is not None:
            self.streams[1].close()

    async def send(self, action: str, body: dict, key: str | None = None) -> dict:
        """Send a request, again and again until there is a response."""
        content = json.dumps(body)
        lines = [
            f"POST {self.path}/{action} HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: Bearer {self.server.key}",
            "Content-Type: application/json",
            f"Content-Length: {len(content)}",
        ]
        if key is not None:
            lines.append(f"Idempotency-Key: {key}")
        request = "\r\n".join([*lines, "", content]).encode()
        while True:
            began = time.perf_counter()
            try:
                status, response = await self._exchange(request)
            except (ConnectionError, asyncio.IncompleteReadError):
                self.streams = None
                await asyncio.sleep(0.02)
                continue
            assert status < 300, response
            self.load.request_seconds.append(time.perf_counter() - began)
            return json.loads(response) if response else {}

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.server.port)
        reader, writer = self.streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        _, found, rest = head.partition(b"content-length:")
        length = int(rest.split(b"\r\n", 1)[0]) if found else 0
        return int(head.split(b" ", 2)[1]), await reader.readexactly(length)


def apply_load(server: Server, study: str, clients: int, pairs: int, kill_after: int | None = None) -> Load:
    """Let clients ask and tell `pairs` times each; kill the server after so many pairs, and restart it."""
    load, name = Load(), uuid.uuid4().hex  # another load's keys would return its trials again

    async def kill() -> None:
        while kill_after is not None and len(load.told) < kill_after:
            await asyncio.sleep(0.005)
        if kill_after is not None:
            server.kill()
            await asyncio.to_thread(server.start)

    async def work() -> None:
        everyone = [Client(server, study, load).run(pairs, f"{name}/{number}") for number in range(clients)]
        await asyncio.gather(kill(), *everyone)

    began = time.perf_counter()
    asyncio.run(work())
    load.seconds = time.perf_counter() - began
    return load


def count_lost_or_duplicated(storage: str, study: str, loads: list[Load]) -> int:
    """Count acknowledged trials that are missing, or were told or handed out more than once."""
    acknowledged = [trial for load in loads for trial in load.told]
    with open_store(storage).session(study, write=False) as session:
        told = [
            event.trial for _, event in session.events_after(0) if event.kind in (EventKind.TOLD, EventKind.SURPLUS)
        ]
    duplicated = len(told) - len(set(told)) + len(acknowledged) - len(set(acknowledged))
    return duplicated + len(set(acknowledged) - set(told))
