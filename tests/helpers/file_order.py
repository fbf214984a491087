"""Print all test files in the order in which `make test` runs them.

Tests in `integration` mostly wait for processes, disks, browsers and clocks; all others compute. The two kinds are
spread evenly, so that at any time some workers wait while others compute. The longest files come first, so that no
worker is still busy with one of them at the end.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
LONGEST = ("test_documentation", "test_site", "test_adaptive_figures", "test_api")


def order_files() -> list[Path]:
    """Return all test files in order."""
    files = sorted(TESTS.glob("*/test_*.py"))
    longest = [path for name in LONGEST for path in files if path.stem == name]
    others = [path for path in files if path not in longest]
    waiting = [path for path in others if path.parent.name == "integration"]
    computing = [path for path in others if path.parent.name != "integration"]
    return longest + [path for _, path in sorted([*_spread(waiting), *_spread(computing)])]


def _spread(files: list[Path]) -> Iterator[tuple[float, Path]]:
    """Yield each file with its place, between 0 and 1, in the whole order."""
    for number, path in enumerate(files):
        yield (number + 0.5) / len(files), path


if __name__ == "__main__":
    sys.stdout.write("\n".join(str(path.relative_to(TESTS.parent)) for path in order_files()))
