"""`dbcare serve` as a person starts it, for tests of its options and its log."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_STOP_SECONDS = 30.0  # on a busy machine


@contextmanager
def run_serve(storage: str, log: Path, *options: str, **variables: str) -> Iterator[str]:
    """Run the command, append what it logs to a file, yield its address, and end it as a service manager does."""
    command = [sys.executable, "-m", "dbcare", "serve", "--storage", storage, "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    with log.open("a") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    with process:
        try:
            assert process.stdout is not None
            announced = process.stdout.readline()
            assert announced.startswith("Serving at "), log.read_text()
            yield announced.split()[-1]
            process.terminate()
            process.wait(timeout=MAX_STOP_SECONDS)
        finally:
            process.kill()
