"""A command at a terminal of its own, as a person sees it."""

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

STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
OWN_SCREEN = b"\x1b[?1049h"


def at_terminal(
    arguments: Sequence[str | Path],
    environment: dict[str, str],
    *,
    columns: int = 80,
    rows: int = 24,
    interrupt_after: float | None = None,
) -> tuple[int, str]:
    """Exit code and all that was written, with the codes for colours and places.

    With `interrupt_after`, what Ctrl-C does, so many seconds after the command has taken the whole screen.
    """
    # What another terminal was like is not true of this one.
    known = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=known | {"TERM": "xterm-256color"}
    )
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # what a terminal says once nobody is there any more
        while part := os.read(ours, 1 << 16):
            written += part
            if interrupt_after is not None and OWN_SCREEN in written:
                time.sleep(interrupt_after)
                process.send_signal(signal.SIGINT)
                interrupt_after = None
    os.close(ours)
    return process.wait(timeout=10.0), written.decode()


def plain(written: str) -> str:
    """Without the codes."""
    return STYLE.sub("", written).replace("\r\n", "\n")
