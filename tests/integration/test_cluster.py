"""A sweep on a real Dask cluster of two worker processes, one of which is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.sweep_results import read_results
from typer.testing import CliRunner

from dbcare.cli import app

COMMAND = Path(sys.executable).with_name("dbcare")
DASK = Path(sys.executable).with_name("dask")

SWEEP = """
title = "Sixteen arms"
runs = 6_000
cost = 1e-3
seed = 3
[[settings]]
bandit = "linear-decay"
arms = [16]
gap = { from = 0.05, to = 1.0, points = 20 }
[policies.DBCARE]
policy = "dbcare"
[policies."racing 0.1"]
policy = "racing"
delta = 0.1
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    """Start a scheduler and two workers without nannies, so that a killed worker stays dead."""
    where = tmp_path / "scheduler.json"
    environment = os.environ | {"DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "false"}
    log = (tmp_path / "cluster.log").open("w")

    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen([DASK, *arguments], stdout=log, stderr=log, text=True, cwd=tmp_path, env=environment)

    scheduler = start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(where))
    common = ("--scheduler-file", str(where), "--no-nanny", "--nthreads", "1", "--no-dashboard")
    started = time.monotonic()
    while not where.exists() or not where.read_text().strip():
        assert scheduler.poll() is None
        assert time.monotonic() - started < 60.0
        time.sleep(0.05)
    workers = [start("worker", *common, "--name", name) for name in ("one", "other")]
    try:
        yield json.loads(where.read_text())["address"], workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
        log.close()


NOWHERE = ["tcp://127.0.0.1:9", "nonsense"]


@pytest.fixture(scope="module", autouse=True)
def lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Start sweeps that find no scheduler; they go first, as they give up only after some seconds."""
    folder = tmp_path_factory.mktemp("lost")
    (folder / "sixteen.toml").write_text(SWEEP)
    command: list[str | Path] = [COMMAND, "sweep", folder / "sixteen.toml", "--out", folder / "out", "--dask"]
    started = {address: subprocess.Popen([*command, address], stderr=subprocess.PIPE, text=True) for address in NOWHERE}
    yield started
    for process in started.values():
        with process:
            process.kill()


def test_a_lost_worker_does_not_change_results(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[str]]]
) -> None:
    address, workers = cluster
    file = tmp_path / "sixteen.toml"
    file.write_text(SWEEP)
    local, remote = tmp_path / "local", tmp_path / "remote"
    assert CliRunner().invoke(app, ["sweep", str(file), "--out", str(local)]).exit_code == 0
    process = subprocess.Popen([COMMAND, "sweep", file, "--out", remote, "--dask", address], text=True)
    stored = remote / "results.jsonl"
    while not stored.exists() or stored.read_bytes().count(b"\n") < 10:
        assert process.poll() is None
        time.sleep(0.01)
    workers[0].send_signal(signal.SIGKILL)
    assert workers[0].wait() == -signal.SIGKILL
    assert stored.read_bytes().count(b"\n") < len(read_results(local))  # not finished yet
    assert process.wait(timeout=120) == 0
    assert workers[1].poll() is None
    assert read_results(remote) == read_results(local)
    assert (remote / "sixteen.csv").read_bytes() == (local / "sixteen.csv").read_bytes()


@pytest.mark.parametrize("address", NOWHERE)
def test_a_missing_scheduler_is_reported(address: str, lost: dict[str, subprocess.Popen[str]]) -> None:
    _, message = lost[address].communicate()
    assert lost[address].returncode == 2
    assert f"Cannot connect to a Dask scheduler at {address}: " in message
