"""Results on disk: a file of JSON lines, one per finished pass.

Each line is written with a single call and identified by its key, which covers the code and all settings. A killed
sweep therefore loses only the passes in progress, and a changed experiment or engine never reuses an old result. A
checksum in each line shows whether it was damaged or edited; such a pass is computed again.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

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
            plain = json.loads(line)
            checksum = plain.pop("checksum")
            record = Record.from_dict(plain)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return  # cut short by a crash, or from another version: computed again
        if checksum == _compute_checksum(plain):  # else somebody has changed it
            self.records[record.key] = record

    def add(self, record: Record) -> None:
        """Store a finished pass."""
        plain = record.to_dict()
        line = json.dumps({**plain, "checksum": _compute_checksum(plain)}, allow_nan=False)
        self._append(line.encode() + b"\n")
        self.records[record.key] = record

    def _append(self, line: bytes) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(line)


def _compute_checksum(plain: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
