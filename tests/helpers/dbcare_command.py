"""`dbcare` in a process of its own that starts in a moment, for tests that run many commands."""

import sys
import tempfile
from pathlib import Path
from subprocess import CompletedProcess

from helpers.prepared_process import PreparedProcess

COMMAND = Path(sys.executable).with_name("dbcare")
MAX_SECONDS = 120.0  # on a busy machine


def run_dbcare(*arguments: str, **variables: str) -> CompletedProcess[str]:
    """Run a command with these variables in its environment; return what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder) / "output", Path(folder) / "errors"
        process = PreparedProcess(COMMAND, list(arguments), output, errors, **variables)
        try:
            code = process.wait(MAX_SECONDS)
            assert code is not None, f"{arguments} did not end: {errors.read_text()}"
        finally:
            process.kill()
        return CompletedProcess(arguments, code, output.read_text(), errors.read_text())
