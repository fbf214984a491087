"""A clock that a test can move, for processes that it starts: libfaketime between them and the system's clock."""

import os
import sys
from pathlib import Path

import pytest

# Debian's libfaketime breaks Python's sleep if it is to leave the monotonic clock alone, as a real jump does.
SLEEP = "import select, time\ntime.sleep = lambda seconds: select.select([], [], [], seconds) and None\n"


class MovingClock:
    """The clock of all processes started with `environment`; it is right until it is moved."""

    def __init__(self, folder: Path) -> None:
        libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
        if not libraries:
            pytest.skip("libfaketime is not installed (apt-get install libfaketime)")
        site = folder / "clock"
        site.mkdir()
        (site / "sitecustomize.py").write_text(SLEEP)
        self._offset = site / "offset"
        self.move(0)
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(site), *sys.path]),
            "LD_PRELOAD": str(libraries[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            "FAKETIME_NO_CACHE": "1",
            "NO_FAKE_STAT": "1",  # else Python takes its compiled modules for outdated
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def move(self, seconds: int) -> None:
        """Let the clock be so many seconds ahead of the right time."""
        new = self._offset.with_name("new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self._offset)  # at once: a process may read it at any moment
