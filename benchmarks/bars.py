"""Figures with the bar that each has to clear: printed as they come, and kept in a file."""

import argparse
import json
import os
import platform
import sys
from pathlib import Path

import dbcare


class Bars:
    """The figures of one benchmark, called by its script's name."""

    def __init__(self, description: str | None) -> None:
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
        self.folder: Path = parser.parse_args().out
        self.figures: dict[str, dict[str, float]] = {}

    def report(self, name: str, value: float, bar: float, *, at_least: bool = False, **details: float) -> None:
        """One figure, which must be no more (or no less) than its bar; `details` are kept beside it."""
        self.figures[name] = {"value": value, "bar": bar, **details}
        met = value >= bar if at_least else value <= bar
        print(
            f"{name:<60} {value:>9.3g}   {'>=' if at_least else '<='} {bar:<6g} {'met' if met else 'MISSED'}",
            flush=True,
        )

    def save(self) -> None:
        """Write the figures down, with the machine they are from."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{Path(sys.argv[0]).stem}.json"
        made = {
            "machine": platform.processor() or platform.machine(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "dbcare": dbcare.__version__,
        }
        path.write_text(json.dumps({**made, "figures": self.figures}, indent=2))
        print(path)
