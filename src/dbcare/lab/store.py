"""Results on disk: a file of JSON lines, one for each finished pass.

A line is written with one call and found again by its key, which covers the code and all settings. So a killed sweep
loses at most the passes under way, and a changed experiment or engine never takes an old result for its own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from dbcare.lab.results import Record


class Store:
    """The finished passes of a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            for line in path.read_bytes().splitlines():
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            record = Record.from_dict(json.loads(line))
        except (ValueError, KeyError, TypeError):
            return  # cut short by a crash, or written by another version: done again
        self.records[record.key] = record

    def add(self, record: Record) -> None:
        """Write a finished pass down."""
        line = json.dumps(record.to_dict(), allow_nan=False).encode() + b"\n"
        # After a line that a crash cut short, ours starts on a new one.
        whole = not self.path.exists() or self.path.stat().st_size == 0 or _last_byte(self.path) == b"\n"
        with self.path.open("ab", buffering=0) as file:
            file.write(line if whole else b"\n" + line)
            os.fsync(file.fileno())
        self.records[record.key] = record


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)
