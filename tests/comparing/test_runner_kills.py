"""A comparison that is killed goes on where it was: what was recorded is never asked for again."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import dbcare
from tests.helpers.prepared_process import PreparedProcess

SCRIPT = Path(__file__).parents[1] / "helpers" / "compare_main.py"


def start(storage: str, journal: Path, pause: float) -> PreparedProcess:
    return PreparedProcess(SCRIPT, [storage, str(journal), str(pause)], journal.with_suffix(".output"))


def read_calls(journal: Path) -> list[str]:
    return journal.read_text().splitlines() if journal.exists() else []


@pytest.mark.parametrize("after", [3, 25])
def test_a_killed_comparison_calls_nothing_twice_that_was_recorded(tmp_path: Path, after: int) -> None:
    storage, first, second = f"sqlite:///{tmp_path}/kill.db", tmp_path / "first", tmp_path / "second"
    process = start(storage, first, 0.05)
    deadline = time.monotonic() + 60.0
    while len(read_calls(first)) < after:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    study = dbcare.load_study("kill", storage)
    recorded = {f"{row.arm} {row.block}" for row in study.trials() if row.status == "told"}
    pending = {f"{row.arm} {row.block}" for row in study.trials() if row.status == "asked"}
    assert pending

    resumed = start(storage, second, 0.0)
    assert resumed.wait(120.0) == 0
    calls = read_calls(second)
    assert not recorded & set(calls)
    assert pending <= set(calls)
    assert set(Counter(calls).values()) == {1}
    arm, final, spent = second.with_suffix(".output").read_text().split()
    assert (arm in ("a", "bb", "ccc"), final) == (True, "True")
    answered = recorded | set(calls)
    assert float(spent) == pytest.approx(0.01 * len(answered))
    assert study.check() > 0  # the stored events still replay to the stored state


def test_a_process_exits_although_a_call_hangs() -> None:
    code = """
import threading, dbcare
def hang(number):
    if number == 4:
        threading.Event().wait()
    return 0.01 * number
dbcare.compare({"a": hang, "b": lambda number: 1.0 + 0.01 * number}, range(12), value=1e6, price=0.01,
               timeout=0.2, retries=0, progress=False)
print("done")
"""
    environment = os.environ | {"PYTHONPATH": str(Path(dbcare.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60.0, check=False)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr
