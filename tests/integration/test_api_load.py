"""Several servers on one database under concurrent load, one of them killed: nothing lost, nothing twice."""

import itertools
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from helpers.postgres import Server
from helpers.service_process import service
from helpers.worker_main import reward_of
from helpers.worker_processes import replayed

import dbcare
from dbcare.live.stores.open import open_store

ARMS = ["A", "B", "C"]
CLIENTS, TRIALS = 8, 60
PATH = "/v1/studies/load"


class Crew:
    """Clients in threads that go on with another server if theirs does not answer."""

    def __init__(self, servers: list[str]) -> None:
        self.servers = servers
        self.told: list[int] = []
        self.asked: list[int] = []
        self.troubles = 0
        self._turn = itertools.count()
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
                wanted = {"worker": f"client {number}", "lease": "60s"}
                trials = self._sent(client, f"{PATH}/ask", wanted, headers).json()["trials"]
                if not trials:
                    time.sleep(0.002)
                    continue
                trial = trials[0]["id"]
                self.asked.append(trial)
                answer = {"trial": trial, "reward": reward_of(trial)}
                assert self._sent(client, f"{PATH}/tell", answer, {}).status_code == 204
                self.told.append(trial)
                done += 1

    def _sent(self, client: httpx.Client, path: str, body: dict[str, Any], headers: dict[str, str]) -> httpx.Response:
        while True:
            url = self.servers[next(self._turn) % len(self.servers)]
            try:
                return client.post(url + path, json=body, headers=headers).raise_for_status()
            except httpx.TransportError:
                self.troubles += 1
                time.sleep(0.01)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_two_servers_under_load_one_of_them_killed(database: str, postgres: Server, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'load.db'}" if database == "sqlite" else postgres.new_database()
    study = dbcare.create_study("load", ARMS, cost=1e-9, sigma=1.0, storage=storage)
    with ExitStack() as stays, ExitStack() as dies:
        servers = [stays.enter_context(service(storage)), dies.enter_context(service(storage))]
        crew = Crew(servers)
        crew.start()
        while len(crew.told) < CLIENTS * TRIALS // 4:
            time.sleep(0.01)
        dies.close()  # SIGKILL in the midst of requests
        while len(crew.told) < CLIENTS * TRIALS // 2:
            time.sleep(0.01)
        servers[1] = stays.enter_context(service(storage))
        crew.join()
    ledger, answered = replayed(study, storage)
    assert crew.troubles > 0
    assert sorted(crew.told) == sorted(crew.asked) == sorted(answered) == list(range(1, CLIENTS * TRIALS + 1))
    assert ledger.counted == CLIENTS * TRIALS
    assert study.recommendation().arm == ARMS[ledger.decision.recommended]
    study.check()
    open_store(storage).close()
