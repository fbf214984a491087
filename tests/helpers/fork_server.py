"""Processes with pipes to talk to them, forked from one that has loaded what they need: each starts in a moment."""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TextIO

MAX_SECONDS = 120.0  # on a busy machine


class ForkedProcess:
    """A process that runs code, with the members of `subprocess.Popen` that tests need."""

    def __init__(self, pid: int, stdin: TextIO, stdout: TextIO, stderr: TextIO) -> None:
        self.pid, self.stdin, self.stdout, self.stderr = pid, stdin, stdout, stderr

    def communicate(self) -> tuple[str, str]:
        """Close its input, and return what it prints until it ends, to stderr less than a pipe holds."""
        with self.stdin, self.stdout, self.stderr:
            self.stdin.close()
            return self.stdout.read(), self.stderr.read()

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs; the server leaves it to be looked at."""
        state, *_, status = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return os.waitstatus_to_exitcode(int(status)) if state == "Z" else None

    def wait(self, timeout: float = MAX_SECONDS) -> int:
        """Wait for its end, and return the exit code."""
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            assert time.monotonic() < until
            time.sleep(0.002)
        return code

    def kill(self) -> None:
        """Send SIGKILL, also if it has ended: its number is still taken."""
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill it, and close the pipes."""
        self.kill()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


class ForkServer:
    """Runs `preparation` once, and code in children thereafter; they share nothing but what that loaded."""

    def __init__(self, preparation: str, *paths: Path) -> None:
        self._channel, theirs = socket.socketpair()
        # Not with the folder of this file in front, where modules have common names.
        command = [sys.executable, "-P", __file__, str(theirs.fileno()), preparation]
        known = os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONPATH": known}
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)
        theirs.close()

    def start(self, code: str, *arguments: str, **variables: str) -> ForkedProcess:
        """Do what `python -c code arguments` does, with the environment of this process and these variables."""
        (in_read, in_write), (out_read, out_write), (err_read, err_write) = (os.pipe() for _ in range(3))
        request = json.dumps([code, arguments, {**os.environ, **variables}]).encode()
        theirs = [in_read, out_write, err_write]
        socket.send_fds(self._channel, [len(request).to_bytes(4)], theirs)
        self._channel.sendall(request)
        for descriptor in theirs:
            os.close(descriptor)
        pid = int.from_bytes(_receive(self._channel, 4))
        return ForkedProcess(pid, os.fdopen(in_write, "w"), os.fdopen(out_read), os.fdopen(err_read))

    def close(self) -> None:
        """End the server, once its children have ended."""
        self._channel.close()
        assert self._process.wait() == 0


def _receive(channel: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = channel.recv(size - len(received))
        assert part, "The other end was closed."
        received += part
    return received


def _serve(channel: socket.socket) -> str | None:
    """Fork a child for every request; return its code in a child, and None in the server when all is done."""
    while True:
        size, descriptors, *_ = socket.recv_fds(channel, 4, 3)
        if not size:
            break
        code, arguments, environment = json.loads(_receive(channel, int.from_bytes(size)))
        pid = os.fork()
        if pid == 0:
            channel.close()
            _take_over(arguments, environment, descriptors)
            return str(code)
        for descriptor in descriptors:
            os.close(descriptor)
        channel.sendall(pid.to_bytes(4))
    while True:  # only now, so that no number was taken by another process meanwhile
        try:
            os.wait()
        except ChildProcessError:
            return None


def _take_over(arguments: list[str], environment: dict[str, str], descriptors: list[int]) -> None:
    for place, descriptor in enumerate(descriptors):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *arguments]


def _run(code: str) -> None:
    """Run code, and what it left to do at its end; what was loaded is not cleaned up, which would take long."""
    status = 1
    try:
        exec(code, {"__name__": "__main__"})
        status = 0
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # what Python does first, too
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    exec(sys.argv[2], {"__name__": "__main__"})
    gc.freeze()  # so that children do not copy what they never use
    if todo := _serve(socket.socket(fileno=int(sys.argv[1]))):
        _run(todo)
