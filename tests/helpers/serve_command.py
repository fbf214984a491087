"""`dbcare serve` as a person starts it, for tests of its options and its log."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers.dbcare_command import COMMAND
from tests.helpers.prepared_process import PreparedProcess

MAX_START_SECONDS, MAX_STOP_SECONDS = 60.0, 30.0  # on a busy machine


@contextmanager
def run_serve(storage: str, log: Path, *options: str, **variables: str) -> Iterator[str]:
    """Run the command, append what it logs to a file, yield its address, and end it as a service manager does."""
    output = log.with_name(f"{log.name}.printed")
    output.unlink(missing_ok=True)
    process = PreparedProcess(
        COMMAND, ["serve", "--storage", storage, "--port", "0", *options], output, log, **variables
    )
    try:
        until = time.monotonic() + MAX_START_SECONDS
        while not output.read_text().endswith("\n"):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until
            time.sleep(0.02)
        announced = output.read_text()
        assert announced.startswith("Serving at "), log.read_text()
        yield announced.splitlines()[0].split()[-1]
        process.terminate()
        assert process.wait(timeout=MAX_STOP_SECONDS) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.wait()
