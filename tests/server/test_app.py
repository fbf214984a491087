"""Two servers on one database under concurrent load, one of them killed: nothing is lost, nothing is doubled."""

import itertools
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

import dbcare
from dbcare.studies.stores.open import open_store
from tests.helpers.postgres import Server
from tests.helpers.service_process import run_service
from tests.helpers.worker_main import draw_reward
from tests.helpers.worker_processes import replay_study

pytestmark = pytest.mark.service

ARMS = ["A", "B", "C"]
CLIENTS, TRIALS = 8, 40
PATH = "/v1/studies/load"


class Clients:
    """Clients in threads; they turn to the other server if one does not respond."""

    def __init__(self, servers: list[str]) -> None:
        self.servers = servers
        self.told: list[int] = []
        self.asked: list[int] = []
        self.failures = 0
        self._turns = itertools.count()
        self.threads = [threading.Thread(target=self._work, args=(number,)) for number in range(CLIENTS)]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(timeout=120.0)
            assert not thread.is_alive()

    def _work(self, number: int) -> None:
        with httpx.Client(timeout=60.0) as client:
            done = 0
            while done < TRIALS:
                headers = {"Idempotency-Key": f"{number}/{done}"}
                request = {"worker": f"client {number}", "lease": "60s"}
                trials = self._send(client, f"{PATH}/ask", request, headers).json()["trials"]
                if not trials:
                    time.sleep(0.002)
                    continue
                trial = trials[0]["id"]
                self.asked.append(trial)
                outcome = {"trial": trial, "reward": draw_reward(trial)}
                assert self._send(client, f"{PATH}/tell", outcome, {}).status_code == 204
                self.told.append(trial)
                done += 1

    def _send(self, client: httpx.Client, path: str, body: dict[str, Any], headers: dict[str, str]) -> httpx.Response:
        while True:
            url = self.servers[next(self._turns) % len(self.servers)]
            try:
                return client.post(url + path, json=body, headers=headers).raise_for_status()
            except httpx.TransportError:
                self.failures += 1
                time.sleep(0.01)


@pytest.mark.parametrize("database", [pytest.param("sqlite", marks=pytest.mark.soak), "postgresql"])
def test_two_servers_under_load_and_one_is_killed(database: str, postgres: Server, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'load.db'}" if database == "sqlite" else postgres.create_database()
    study = dbcare.create_study("load", ARMS, cost=1e-9, sigma=1.0, storage=storage)
    with ExitStack() as surviving, ExitStack() as killed:
        servers = [surviving.enter_context(run_service(storage)), killed.enter_context(run_service(storage))]
        clients = Clients(servers)
        clients.start()
        while len(clients.told) < CLIENTS * TRIALS // 4:
            time.sleep(0.01)
        killed.close()  # SIGKILL, with requests in progress
        while len(clients.told) < CLIENTS * TRIALS // 2:
            time.sleep(0.01)
        servers[1] = surviving.enter_context(run_service(storage))
        clients.join()
    ledger, told = replay_study(study, storage)
    assert clients.failures > 0
    assert sorted(clients.told) == sorted(clients.asked) == sorted(told) == list(range(1, CLIENTS * TRIALS + 1))
    assert ledger.counted == CLIENTS * TRIALS
    assert study.recommendation().arm == ARMS[ledger.decision.recommended]
    study.check()
    open_store(storage).close()
