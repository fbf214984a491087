"""A sweep on a real Dask cluster of two worker processes, one of which is killed while it holds passes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from typer.testing import CliRunner

from dbcare.cli import app
from tests.helpers.sweep_results import read_results

DASK = Path(sys.executable).with_name("dask")

# Both policies are planned in advance, so they share a kernel that compiles fast.
SWEEP = """
title = "Sixteen arms"
runs = 500
cost = 1e-3
seed = 3
[[settings]]
bandit = "linear-decay"
arms = [16]
gap = { from = 0.05, to = 1.0, points = 20 }
[policies.Halving]
policy = "sequential-halving"
budget_per_arm = 40
[policies."Ten each"]
policy = "uniform"
pulls = 10
"""
MAX_SECONDS = 120.0  # on a busy machine


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
        assert time.monotonic() - started < MAX_SECONDS
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

# Runs the command once for each address, since loading what it needs takes longer.
SWEEPS = """
import sys
from dbcare.cli import main
*arguments, addresses = sys.argv[1:]
for address in addresses.split():
    sys.argv = ["dbcare", *arguments, address]
    try:
        main()
    except SystemExit as ended:
        print(address, ended.code)
"""


@pytest.fixture(scope="module", autouse=True)
def lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """Start sweeps that find no scheduler; they go first, as they give up only after some seconds."""
    folder = tmp_path_factory.mktemp("lost")
    (folder / "sixteen.toml").write_text(SWEEP)
    arguments: list[str | Path] = ["sweep", folder / "sixteen.toml", "--out", folder / "out", "--dask"]
    command = [sys.executable, "-c", SWEEPS, *arguments, " ".join(NOWHERE)]
    pipes: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:
        yield process
        process.kill()


def run_sweep(file: Path, out: Path, *options: str) -> None:
    result = CliRunner().invoke(app, ["sweep", str(file), "--out", str(out), *options])
    assert result.exit_code == 0, result.output


def kill_midway(worker: subprocess.Popen[str], stored: Path) -> int:
    """Kill a worker once a pass is stored; return how many were when it was gone."""
    started = time.monotonic()
    while not stored.exists() or b"\n" not in stored.read_bytes():
        assert time.monotonic() - started < MAX_SECONDS
        time.sleep(0.01)
    worker.kill()
    assert worker.wait() == -signal.SIGKILL
    return stored.read_bytes().count(b"\n")


def test_a_lost_worker_does_not_change_results(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[str]]]
) -> None:
    """It stands still, so that the sweep cannot end without the passes that were given to it."""
    address, workers = cluster
    file = tmp_path / "sixteen.toml"
    file.write_text(SWEEP)
    local, remote = tmp_path / "local", tmp_path / "remote"
    run_sweep(file, local)
    passes = len(read_results(local))
    with Client(address, set_as_default=False) as client:  # type: ignore[no-untyped-call]  # distributed is not typed
        client.wait_for_workers(len(workers), timeout=MAX_SECONDS)
    workers[0].send_signal(signal.SIGSTOP)
    with ThreadPoolExecutor(1) as watcher:
        killed = watcher.submit(kill_midway, workers[0], remote / "results.jsonl")
        run_sweep(file, remote, "--dask", address)
        assert 1 <= killed.result() < passes
    assert workers[1].poll() is None
    assert read_results(remote) == read_results(local)
    assert (remote / "sixteen.csv").read_bytes() == (local / "sixteen.csv").read_bytes()


OWN = """
title = "A policy of my own"
runs = 100
cost = 1e-3
[[settings]]
bandit = "one-sparse"
arms = [4]
gap = {{ from = 0.1, to = 1.0, points = 3 }}
[policies.Mine]
policy = "{module}:make_policy"
"""
MODULE = """
from dbcare.policies import Uniform
from {helper} import PULLS


class Mine(Uniform):
    pass


def make_policy(arms):
    return Mine(arms, PULLS)
"""


def test_policies_of_your_own_are_sent_to_the_workers(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the modules that they import, from the folder of the file; those of other folders are asked for."""
    address, workers = cluster
    experiment, elsewhere = tmp_path / "experiment", tmp_path / "elsewhere"
    for folder, module, helper in ((experiment, "near_policy", "zz_near"), (elsewhere, "far_policy", "zz_far")):
        folder.mkdir()
        (folder / f"{module}.py").write_text(MODULE.format(helper=helper))
        (folder / f"{helper}.py").write_text("PULLS = 7\n")
        (experiment / f"{module}.toml").write_text(OWN.format(module=module))
    run_sweep(experiment / "near_policy.toml", tmp_path / "local")
    run_sweep(experiment / "near_policy.toml", tmp_path / "remote", "--dask", address)
    assert read_results(tmp_path / "remote") == read_results(tmp_path / "local")
    monkeypatch.syspath_prepend(elsewhere)
    result = CliRunner().invoke(
        app, ["sweep", str(experiment / "far_policy.toml"), "--out", str(tmp_path / "far"), "--dask", address]
    )
    assert result.exit_code == 2
    assert "must be able to import the code of all policies but cannot: No module named 'far_policy'." in result.output
    assert all(worker.poll() is None for worker in workers)


def test_a_missing_scheduler_is_reported(lost: subprocess.Popen[str]) -> None:
    codes, messages = lost.communicate()
    assert codes.splitlines() == [f"{address} 2" for address in NOWHERE]
    for address in NOWHERE:
        assert messages.count(f"Error: Cannot connect to a Dask scheduler at {address}: ") == 1
    assert "Traceback" not in messages
    assert "remaining" not in messages
    assert all(line.startswith("0% done, connecting, 0 of ") for line in messages.splitlines() if "done" in line)
