"""Studies that several processes work on at once, on SQLite and on a real PostgreSQL server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_crew import ARMS, Worker, replayed, told_by
from postgres import Server

import dbcare
from dbcare.live.create import store_of

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        where = f"sqlite:///{tmp_path / 'live.db'}"
    else:
        server: Server = request.getfixturevalue("postgres")
        server.sql("CREATE DATABASE shared")
        where = server.address("shared")
    yield where
    store_of(where).close()
    if request.param == "postgresql":
        server.sql("DROP DATABASE shared WITH (FORCE)")


def test_eight_processes_share_a_study(address: str, tmp_path: Path) -> None:
    """Every trial asked once and told once; the decisions are those of a replay; all workers had a part."""
    study = dbcare.create_study("eight", ARMS, cost=1e-9, sigma=1.0, storage=address)
    each = 250
    workers = [Worker(address, "eight", number, each, tmp_path, lease="5m") for number in range(8)]
    assert [worker.process.wait(timeout=240) for worker in workers] == [0] * 8, [w.said.read_text() for w in workers]
    assert [worker.outages() for worker in workers] == [[]] * 8
    ledger, told = replayed(study, address)
    assert sorted(told_by(workers)) == sorted(told) == list(range(1, 8 * each + 1))
    assert study.status().counted == ledger.counted == 8 * each
    assert study.recommendation().arm == ARMS[ledger.run.recommendation()]
    study.check()
