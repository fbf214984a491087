"""A command in a terminal of its own, as a person sees it."""

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from pathlib import Path

CONTROL_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
FULL_SCREEN = b"\x1b[?1049h"


def run_at_terminal(
    arguments: Sequence[str | Path],
    environment: dict[str, str],
    *,
    columns: int = 80,
    rows: int = 24,
    interrupt_after: float | None = None,
) -> tuple[int, str]:
    """Run a command and return its exit code and everything it wrote, including control codes.

    With `interrupt_after`, send what Ctrl-C sends, that many seconds after the command has switched to full screen.
    """
    # The size of the terminal that runs the tests does not apply to this one.
    kept = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=kept | {"TERM": "xterm-256color"}
    )
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):  # raised once the other end is closed
        while part := os.read(ours, 1 << 16):
            output += part
            if interrupt_after is not None and FULL_SCREEN in output:
                time.sleep(interrupt_after)
                process.send_signal(signal.SIGINT)
                interrupt_after = None
    os.close(ours)
    return process.wait(timeout=60.0), output.decode()


def strip_codes(output: str) -> str:
    """Return the output without control codes, and with plain line ends."""
    return CONTROL_CODE.sub("", output).replace("\r\n", "\n")
