"""What a sweep has put on disk."""

import json
from pathlib import Path
from typing import Any


def results(folder: Path) -> dict[str, Any]:
    """Everything stored but how long it took, by key."""
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert len({line["key"] for line in lines}) == len(lines)
    return {line["key"]: {name: value for name, value in line.items() if name != "cpu_seconds"} for line in lines}
