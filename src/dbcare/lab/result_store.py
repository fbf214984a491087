"""Results on disk: a file of JSON lines, one per finished pass.

Each line is written with a single call and identified by its key, which covers the code and all settings. A killed
sweep therefore loses only the passes in progress, and a changed experiment or engine never reuses an old result.
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
        stored = path.read_bytes() if path.exists() else b""
        for line in stored.splitlines():
            self._load_line(line)
        if stored and not stored.endswith(b"\n"):
            self._append(b"\n")  # a crash cut the last line short; start the next one on its own line

    def _load_line(self, line: bytes) -> None:
        try:
            record = Record.from_dict(json.loads(line))
        except (ValueError, KeyError, TypeError):
            return  # cut short by a crash, or from another version: computed again
        self.records[record.key] = record

    def add(self, record: Record) -> None:
        """Store a finished pass."""
        self._append(json.dumps(record.to_dict(), allow_nan=False).encode() + b"\n")
        self.records[record.key] = record

    def _append(self, line: bytes) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(line)
