"""Clients in threads, each with a connection of its own, that repeat a request until it is answered."""

import http.client
import json
import threading
import time
from itertools import count
from types import TracebackType
from typing import Any

from tests.helpers.journal import Journal
from tests.helpers.worker_main import draw_reward


class HttpClients:
    """Ask and tell over HTTP from entering until leaving the context, whatever happens to the server."""

    def __init__(self, port: int, key: str, study: str, clients: int, journal: Journal) -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._path = f"/v1/studies/{study}"
        self._journal = journal
        self._done = threading.Event()
        self.failures = 0
        self.unexpected: list[str] = []
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(clients)]

    def __enter__(self) -> "HttpClients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join(60.0)
        assert not any(thread.is_alive() for thread in self._threads)
        assert self.unexpected == []

    def _work(self, number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30.0)
        for turn in count():
            key = f"{number}/{turn}"
            self._journal.write(f"asking {key}")
            request = {"lease": None, "worker": f"client {number}"}
            answer = self._send(connection, "ask", request, {"Idempotency-Key": key})
            if answer is None:
                break
            if not answer["trials"]:
                time.sleep(0.005)
                continue
            trial = answer["trials"][0]["id"]
            self._journal.write(f"asked {key} {trial}")
            if self._send(connection, "tell", {"trial": trial, "reward": draw_reward(trial)}, {}) is None:
                break
            self._journal.write(f"told {trial}")
        connection.close()

    def _send(
        self, connection: http.client.HTTPConnection, action: str, body: dict[str, Any], headers: dict[str, str]
    ) -> dict[str, Any] | None:
        """Return the answer to a request; None if it was not answered by the end."""
        while not self._done.is_set():
            try:
                connection.request("POST", f"{self._path}/{action}", json.dumps(body), {**self._headers, **headers})
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException):  # the server was killed
                connection.close()
            else:
                if response.status in (200, 204):
                    return dict(json.loads(content or b"{}"))
                if response.status != 503:  # the database was killed
                    self.unexpected.append(f"{response.status} {content.decode()}")
                    return None
            self.failures += 1
            time.sleep(0.05)
        return None
