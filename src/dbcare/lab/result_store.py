"""Results on disk: a file of JSON lines, one for each finished pass.

A line is written with one call and found again by its key, which covers the code and all settings. So a killed sweep
loses at most the passes under way, and a changed experiment or engine never takes an old result for its own.
"""

from __future__ import annotations

import json
from pathlib import Path

from dbcare.lab.results import Record


class ResultStore:
    """The finished passes of a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        known = path.read_bytes() if path.exists() else b""
        for line in known.splitlines():
            self._take(line)
        if known and not known.endswith(b"\n"):
            self._append(b"\n")  # after a line that a crash cut short, the next starts on a new one

    def _take(self, line: bytes) -> None:
        try:
            record = Record.from_dict(json.loads(line))
        except (ValueError, KeyError, TypeError):
            return  # cut short by a crash, or of another version: done again
        self.records[record.key] = record

    def add(self, record: Record) -> None:
        """Write a finished pass down."""
        self._append(json.dumps(record.to_dict(), allow_nan=False).encode() + b"\n")
        self.records[record.key] = record

    def _append(self, line: bytes) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(line)
