"""What is published agrees with itself: versions, dependencies, and the files of the source distribution."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import dbcare

ROOT = Path(__file__).parents[1]
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


def test_the_first_commands_of_the_readme_are_run_on_every_change() -> None:
    first = re.search(r"^```\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert first
    commands = [line.partition("#")[0].strip() for line in first[1].splitlines()]
    assert commands == ["make demo", "make test"]
    script = (ROOT / ".ci" / "run").read_text()
    run = [word for line in script.splitlines() if re.search(r"(^|\s)make ", line) for word in line.split()]
    assert {command.split()[1] for command in commands} <= set(run)


def make(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder that has only what the installation reads."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / name, folder)  # with its time, which make compares
    call = ["make", "--no-print-directory", *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # of `make test`
    return subprocess.run(call, cwd=folder, env=kept | variables, capture_output=True, text=True, check=False)


def test_without_venv_make_says_what_to_install(tmp_path: Path) -> None:
    """Debian's python3 has no `ensurepip` until python3-venv is installed, which only root can do."""
    programs = tmp_path / "programs"
    programs.mkdir()
    python = programs / "python3"
    python.write_text(f'#!/bin/sh\n[ "$2" = "import ensurepip" ] && exit 1; exec {sys.executable} "$@"\n')
    (programs / "id").write_text("#!/bin/sh\necho 1000\n")
    for program in (python, programs / "id"):
        program.chmod(0o755)
    failed = make(tmp_path, "demo", f"PYTHON={python}", PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    assert failed.returncode != 0
    assert f"{python} cannot create virtual environments. Install what is missing and retry: " in failed.stderr
    assert "sudo apt-get install python3-venv" in failed.stderr
    assert not (tmp_path / ".venv").exists()


def test_the_demo_uses_the_environment_of_the_tests(tmp_path: Path) -> None:
    """Nothing is installed again, in either order, until what is to be installed changes."""
    (tmp_path / ".venv").mkdir()
    for name in (".base", ".installed"):
        (tmp_path / ".venv" / name).touch()
    assert make(tmp_path, "--dry-run", "demo").stdout == ".venv/bin/dbcare demo\n"
    (tmp_path / ".venv" / ".base").unlink()
    assert "pip install" in make(tmp_path, "--dry-run", "demo").stdout
    for target, filled in (("reproduce", ".base .venv/.lab"), ("lint", ".base .venv/.lab .venv/.installed")):
        assert f"touch .venv/{filled}\n" in make(tmp_path, "--dry-run", "--always-make", target).stdout
