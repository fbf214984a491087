"""Processes with pipes to talk to them, forked from one that has loaded what they need: each starts in a moment."""

import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from io import TextIOWrapper
from typing import TextIO


class ForkedProcess:
    """A process that runs code, with the members of `subprocess.Popen` that tests need."""

    def __init__(self, pid: int, stdin: TextIO, stdout: TextIO, stderr: TextIO) -> None:
        self.pid, self.stdin, self.stdout, self.stderr = pid, stdin, stdout, stderr

    def communicate(self) -> tuple[str, str]:
        """Close its input, and return what it prints until it ends, which must be less than a pipe holds."""
        with self.stdin, self.stdout, self.stderr:
            self.stdin.close()
            return self.stdout.read(), self.stderr.read()

    def kill(self) -> None:
        """Send SIGKILL, also if it has ended: the server keeps its number taken."""
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill it, and close the pipes."""
        self.kill()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


class ForkServer:
    """Runs `preparation` once, and code in children thereafter; they share nothing but what that loaded."""

    def __init__(self, preparation: str) -> None:
        self._channel, theirs = socket.socketpair()
        command = [sys.executable, __file__, str(theirs.fileno()), preparation]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()

    def start(self, code: str, **variables: str) -> ForkedProcess:
        """Start a process that runs code with the environment of this one and these variables."""
        (in_read, in_write), (out_read, out_write), (err_read, err_write) = (os.pipe() for _ in range(3))
        request = json.dumps([code, {**os.environ, **variables}]).encode()
        theirs = [in_read, out_write, err_write]
        socket.send_fds(self._channel, [len(request).to_bytes(4)], theirs)
        self._channel.sendall(request)
        for descriptor in theirs:
            os.close(descriptor)
        pid = int.from_bytes(_receive(self._channel, 4))
        return ForkedProcess(pid, os.fdopen(in_write, "w"), os.fdopen(out_read), os.fdopen(err_read))

    def close(self) -> None:
        """End the server; its children must have ended."""
        self._channel.close()
        assert self._process.wait() == 0


def _receive(channel: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = channel.recv(size - len(received))
        assert part, "The other end was closed."
        received += part
    return received


def _serve(channel: socket.socket) -> None:
    while True:
        size, descriptors, *_ = socket.recv_fds(channel, 4, 3)
        if not size:
            return
        code, environment = json.loads(_receive(channel, int.from_bytes(size)))
        pid = os.fork()
        if pid == 0:
            channel.close()
            _become(code, environment, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        channel.sendall(pid.to_bytes(4))


def _become(code: str, environment: dict[str, str], descriptors: list[int]) -> None:
    """Do what `python -c code` does."""
    status = 1
    try:
        for place, descriptor in enumerate(descriptors):
            os.dup2(descriptor, place)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(environment)
        exec(code, {"__name__": "__main__"})
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            assert isinstance(stream, TextIOWrapper)
            stream.flush()
        os._exit(status)


if __name__ == "__main__":
    exec(sys.argv[2], {"__name__": "__main__"})
    _serve(socket.socket(fileno=int(sys.argv[1])))
    while True:  # only now, so that no number was taken by another process meanwhile
        try:
            os.wait()
        except ChildProcessError:
            break
