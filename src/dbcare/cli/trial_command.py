"""A command that measures a trial, in a process of its own: its last line of output is the reward."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence

from dbcare.errors import InvalidValueError
from dbcare.studies.run import UnmeasuredError
from dbcare.studies.settings import Settings
from dbcare.studies.trial import Trial

ARM, BLOCK, TRIAL = "{arm}", "{block}", "{trial}"  # what stands for a trial in the arguments
SECONDS_TO_END = 3.0  # between SIGTERM and SIGKILL
MAX_QUOTED_LENGTH = 200  # of a line of output


class TrialCommand:
    """Measures trials with a command; `lease` is how many seconds one may take, None for no limit."""

    def __init__(self, arguments: Sequence[str], settings: Settings, lease: float | None) -> None:
        self._arguments = list(arguments)
        self._lease = lease
        self._lock = threading.Lock()  # guards what follows
        self._running: set[subprocess.Popen[str]] = set()
        self._has_ended = False
        self._check(settings)

    def _check(self, settings: Settings) -> None:
        used = " ".join(self._arguments)
        if ARM not in used:
            raise InvalidValueError(f"The command must have {ARM} among its arguments, for the arm's name: {used}")
        if settings.blocks is not None and BLOCK not in used:
            raise InvalidValueError(
                f"The command must have {BLOCK} among its arguments, for the name of the block: {used}"
            )
        program = self._arguments[0]
        if not any(name in program for name in (ARM, BLOCK, TRIAL)) and shutil.which(program) is None:
            raise InvalidValueError(f"There is no program {program!r}, or it is not executable.")

    def __call__(self, trial: Trial) -> float:
        """Run the command and return the reward that it prints."""
        process = self._start(trial)
        try:
            output, errors = process.communicate(timeout=self._lease)
        except subprocess.TimeoutExpired:
            self._end([process])
            raise UnmeasuredError(f"it took longer than its lease, {self._lease:g} s") from None
        finally:
            with self._lock:
                self._running.discard(process)
        if process.returncode != 0:
            raise UnmeasuredError(": ".join(filter(None, (describe_exit(process.returncode), find_last_line(errors)))))
        return read_reward(output)

    def _start(self, trial: Trial) -> subprocess.Popen[str]:
        values = {ARM: trial.arm, BLOCK: trial.block or "", TRIAL: str(trial.id)}
        with self._lock:
            if self._has_ended:
                raise UnmeasuredError("the run has ended")
            process = subprocess.Popen(
                [fill_in(argument, values) for argument in self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # so that Ctrl-C reaches us alone, and all that it starts ends with it
            )
            self._running.add(process)
        return process

    def end(self) -> None:
        """End all commands that are running, with everything they started; no more are started."""
        with self._lock:
            self._has_ended = True
            running = list(self._running)
        self._end(running)

    def _end(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        for process in processes:
            _send(process, signal.SIGTERM)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS_TO_END)
            _send(process, signal.SIGKILL)  # what it started may still run


def _send(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing is left of it
        os.killpg(process.pid, number)


def fill_in(argument: str, values: dict[str, str]) -> str:
    """Return an argument with the values in their places; a value that looks like a place stays as it is."""
    found = [(place, name) for name in values if (place := argument.find(name)) >= 0]
    if not found:
        return argument
    place, name = min(found)
    return argument[:place] + values[name] + fill_in(argument[place + len(name) :], values)


def read_reward(output: str) -> float:
    """Return the number in the last line that is not blank."""
    line = find_last_line(output)
    if not line:
        raise UnmeasuredError("it printed nothing; its last line of output must be the reward")
    try:
        return float(line)
    except ValueError:
        raise UnmeasuredError(f"its last line of output must be the reward but is {line!r}") from None


def find_last_line(text: str) -> str:
    """Return the last line that is not blank; empty if there is none."""
    return next((line.strip()[:MAX_QUOTED_LENGTH] for line in reversed(text.splitlines()) if line.strip()), "")


def describe_exit(code: int) -> str:
    """Return how a process ended, in words."""
    if code > 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
