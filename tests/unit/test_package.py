"""What is published agrees with itself: versions, dependencies, and the files of the source distribution."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import dbcare

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NAME = re.compile(r"[A-Za-z0-9._-]+")


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_there_is_one_version() -> None:
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == PROJECT["project"]["version"] == dbcare.__version__
    assert f"\n## {dbcare.__version__} (" in (ROOT / "CHANGELOG.md").read_text()


def test_every_dependency_is_pinned() -> None:
    """`make` installs exactly what the constraints say, once each."""
    pins = [line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if line[0] != "#"]
    names = [normalize(name) for name, _version in pins]
    assert len(set(names)) == len(names)
    project = PROJECT["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    wanted = [requirement for group in groups for requirement in group]
    missing = {normalize(NAME.match(each)[0]) for each in wanted} - set(names)  # type: ignore[index]  # all have names
    assert missing == set()


def test_the_source_distribution_has_all_that_make_needs() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in included if not (ROOT / name).exists()] == []
    assert {"src", "tests", "docs", "Makefile", "constraints.txt", "release", "CITATION.cff"} <= set(included)


def test_the_wheel_is_tried_with_the_readme() -> None:
    """The check of `make dist` finds the README's example and what it must print."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import try_wheel
code, expected = try_wheel.read_example()
print("Breakeven(risk" in code, expected.startswith("0 stopped after"))
"""
    command = [sys.executable, "-c", code, str(ROOT / "release")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True True\n"
