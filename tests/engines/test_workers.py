"""Worker processes end with the process that started them, even if it is killed while they compute."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = """
import os, signal, sys, time
from dbcare.engines.workers import start_processes

if __name__ == "__main__":
    with start_processes(1, signal.SIG_IGN) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        if "busy" in sys.argv:
            pool.submit(time.sleep, 600.0)
        time.sleep(600.0)
"""


def is_running(process: int) -> bool:
    status = Path(f"/proc/{process}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("work", ["busy", "idle"])
def test_workers_end_with_their_parent(tmp_path: Path, work: str) -> None:
    script = tmp_path / "parent.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, script, work], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        os.kill(worker, signal.SIGINT)  # left to the parent
        time.sleep(0.1)
        assert is_running(worker)
        parent.kill()
    wait_until(lambda: not is_running(worker))
