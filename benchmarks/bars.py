"""Benchmark figures and the bar that each must clear; printed as they are measured, and saved to a file."""

import argparse
import json
import os
import platform
import sys
from pathlib import Path

import dbcare


class Bars:
    """The figures of one benchmark, named after its script."""

    def __init__(self, description: str | None) -> None:
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--out", type=Path, default=Path("out/benchmarks"))
        self.folder: Path = parser.parse_args().out
        self.figures: dict[str, dict[str, float]] = {}

    def report(self, name: str, value: float, bar: float, *, at_least: bool = False, **details: float) -> None:
        """Report one figure, which must be at most (or at least) its bar; `details` are saved with it."""
        self.figures[name] = {"value": value, "bar": bar, **details}
        met = value >= bar if at_least else value <= bar
        print(
            f"{name:<60} {value:>9.3g}   {'>=' if at_least else '<='} {bar:<6g} {'met' if met else 'MISSED'}",
            flush=True,
        )

    def save(self) -> None:
        """Save the figures, with a description of the machine."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{Path(sys.argv[0]).stem}.json"
        environment = {
            "machine": platform.processor() or platform.machine(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "dbcare": dbcare.__version__,
        }
        path.write_text(json.dumps({**environment, "figures": self.figures}, indent=2))
        print(path)
