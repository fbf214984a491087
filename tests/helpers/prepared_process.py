"""Scripts in processes of their own, forked from one that has imported dbcare: each starts in a moment, not in seconds.

Such a process shares nothing with ours: no connection, thread or file was open where it was forked.
"""

import gc
import multiprocessing
import os
import runpy
import sys
import tempfile
from pathlib import Path
from subprocess import CompletedProcess

MAX_SECONDS = 120.0  # on a busy machine
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["dbcare.cli", "dbcare.server.app", "sqlalchemy.dialects.sqlite", "psycopg"])


def _become_script(
    script: str, arguments: list[str], output: str, errors: str, environment: dict[str, str], cpus: set[int]
) -> None:
    """Do what `python script arguments` does."""
    gc.freeze()  # else garbage collection would touch, and so copy, memory shared with the parent
    os.sched_setaffinity(0, cpus)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path in ((1, output), (2, errors)):
        with Path(path).open("ab") as file:
            os.dup2(file.fileno(), descriptor)
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


class PreparedProcess:
    """A script that runs, with the methods of `subprocess.Popen`; what it prints is appended to files."""

    def __init__(
        self,
        script: Path,
        arguments: list[str],
        output: Path | str,
        errors: Path | str | None = None,  # if not given, they go to `output` too
        **variables: str,
    ) -> None:
        paths = str(output), str(output if errors is None else errors)
        for path in paths:
            Path(path).open("ab").close()  # so that it can be read from the beginning
        inherited = {**os.environ, **variables}, os.sched_getaffinity(0)
        self._process = CONTEXT.Process(
            target=_become_script, args=(str(script), arguments, *paths, *inherited), daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end, and return the exit code; None if the process still runs after so many seconds."""
        self._process.join(timeout)
        return self._process.exitcode

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()


def run_script(script: Path, *arguments: str, **variables: str) -> CompletedProcess[str]:
    """Run a script with these variables in its environment; return what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder) / "output", Path(folder) / "errors"
        process = PreparedProcess(script, list(arguments), output, errors, **variables)
        try:
            code = process.wait(MAX_SECONDS)
            assert code is not None, f"{script.name} {arguments} did not end: {errors.read_text()}"
        finally:
            process.kill()
        return CompletedProcess(arguments, code, output.read_text(), errors.read_text())


def run_code(code: str, *arguments: str, **variables: str) -> CompletedProcess[str]:
    """Do what `python -c code arguments` does, with these variables in the environment; return what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(code)
        return run_script(script, *arguments, **variables)
