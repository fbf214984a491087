"""The results that a sweep wrote to disk."""

import json
from pathlib import Path
from typing import Any


def read_results(folder: Path) -> dict[str, Any]:
    """Return all stored results by key, without the time that each took and the checksum of it all."""
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert len({line["key"] for line in lines}) == len(lines)
    return {
        line["key"]: {name: value for name, value in line.items() if name not in ("cpu_seconds", "checksum")}
        for line in lines
    }
