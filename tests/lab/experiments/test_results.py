"""Stored results are used again exactly as long as no code has changed that could change a number."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dbcare
from dbcare.lab.experiments.passes import PRESENTATION_FILES, list_result_sources

PACKAGE = Path(dbcare.__file__).parent


FILES = {  # whether an edit can change a number
    "engines/simulate/rng.py": True,
    "policies/breakeven/rule.py": True,
    "theory/budgets.py": True,
    "problem/rewards.py": True,
    "lab/experiments/results.py": True,
    "server/pages/templates/study.html": False,
    "server/app.py": False,
    "studies/record/ledger.py": False,
    "client/transport.py": False,
    "cli/research.py": False,
    "planner/plan.py": False,
    "lab/figures.py": False,
    "policies/registry.py": False,
}
SCRIPT = """
import json, pathlib, sys
import dbcare.lab.experiments.passes as points
package, changed = pathlib.Path(points.__file__).parents[2], {}
before = points.digest_code.__wrapped__()
for file in sys.argv[1:]:
    path = package / file
    text = path.read_text()
    path.write_text(text + ("{# edited #}" if path.suffix == ".html" else "# edited"))
    changed[file] = points.digest_code.__wrapped__() != before
    path.write_text(text)
    assert points.digest_code.__wrapped__() == before
print(json.dumps([str(package), changed]))
"""


def test_an_edit_recomputes_results_only_if_it_can_change_them(tmp_path: Path) -> None:
    """In a copy of the package, whose files are edited one by one."""
    shutil.copytree(PACKAGE, tmp_path / "dbcare", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT, *FILES]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    package, changed = json.loads(ran.stdout)
    assert Path(package) == tmp_path / "dbcare"
    assert changed == FILES


def imported_by(path: Path) -> set[Path]:
    """Return the files of the package that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    parts = [PACKAGE.joinpath(*name.split(".")[1:]) for name in names if name.startswith("dbcare.")]
    files = {part.with_suffix(".py") for part in parts} | {part / "__init__.py" for part in parts}
    return {file for file in files if file.is_file()}


def test_everything_that_results_import_is_covered() -> None:
    """Whatever results can reach is in the digest, or only names, builds and shows policies, or shows amounts."""
    reached, waiting = set[Path](), {PACKAGE / "lab" / "experiments" / "results.py"}
    while waiting:
        path = waiting.pop()
        reached.add(path)
        waiting |= imported_by(path) - reached
    names = {path.relative_to(PACKAGE).as_posix() for path in reached}
    covered = {path.relative_to(PACKAGE).as_posix() for path in list_result_sources()}
    harmless = {*PRESENTATION_FILES, "errors.py", "base/numbers.py", "lab/__init__.py"}
    harmless |= {"base/html.py", "base/figures.py", "base/files.py", "base/extras.py", "base/look.py"}
    harmless |= {"base/__init__.py", "base/public.py", "lab/experiments/__init__.py"}
    assert names - covered - harmless == set()
    assert {
        "engines/runs.py",
        "lab/experiments/shared_runs.py",
        "engines/simulate/rng.py",
        "policies/policy.py",
        "problem/bandits.py",
    } <= names & covered
