"""Benchmark figures and the bar that each must clear; printed as they are measured, and saved to a file."""

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any, TypeVar

import dbcare

Size = TypeVar("Size")


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the options that all benchmarks have."""
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(f"python -m benchmarks {name}", description=description)
    parser.add_argument("--out", type=Path, default=Path("out/benchmarks"), help="where to save the figures")
    parser.add_argument("--quick", action="store_true", help="measure less; such figures may miss bars by chance")
    return parser


class Bars:
    """The figures of one benchmark, named after its script."""

    def __init__(self, description: str | None, options: argparse.Namespace | None = None) -> None:
        options = options or make_parser(description).parse_args()
        self.folder: Path = options.out
        self.quick: bool = options.quick
        self.figures: dict[str, dict[str, Any]] = {}

    def size(self, usual: Size, quick: Size) -> Size:
        """Return how much to measure: as usual, or quickly."""
        return quick if self.quick else usual

    def report(
        self, name: str, value: float, bar: float | None = None, *, at_least: bool = False, **details: float
    ) -> None:
        """Report one figure, which must be at most (or at least) its bar; `details` are saved with it."""
        self.figures[name] = {"value": value, "bar": bar, **details}
        verdict = ""
        if bar is not None:
            met = value >= bar if at_least else value <= bar
            missed = "missed, but measured quickly" if self.quick else "MISSED"
            verdict = f"   {'>=' if at_least else '<='} {bar:<6g} {'met' if met else missed}"
        shown = f"{value:.3g}" if abs(value) < 1_000 else f"{value:,.0f}"
        print(f"{name:<72} {shown:>9}{verdict}", flush=True)

    def save(self, **more: Any) -> Path:
        """Save the figures and whatever else there is, with a description of the machine; return the file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{Path(sys.argv[0]).stem}.json"
        environment = {
            "machine": platform.processor() or platform.machine(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "dbcare": dbcare.__version__,
            "quick": self.quick,
        }
        path.write_text(json.dumps({**environment, "figures": self.figures, **more}, indent=2))
        print(path)
        return path
