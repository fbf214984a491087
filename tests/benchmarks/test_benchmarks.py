"""The one entry to the benchmarks, and the table of what they measure."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.__main__ import find_benchmarks

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_table_has_every_benchmark_and_no_other() -> None:
    rows = re.findall(r"^\|.*\|.*\| `(\w+)` \|.*\|.*\|.*\|$", (ROOT / "benchmarks" / "README.md").read_text(), re.M)
    assert set(rows) == set(find_benchmarks())


def test_links_of_the_table_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "benchmarks" / "README.md").read_text())
    assert len(links) > 10
    assert [link for link in links if not (ROOT / "benchmarks" / link).exists()] == []


def test_every_benchmark_says_what_it_measures_and_has_a_main_function() -> None:
    for path in find_benchmarks().values():
        tree = ast.parse(path.read_text())
        assert (ast.get_docstring(tree) or "").startswith(("Measure ", "Compare ")), path
        assert "main" in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)], path


def test_names_are_listed_and_others_refused() -> None:
    listed = run()
    assert listed.returncode == 0
    assert set(re.findall(r"^  (\w+)", listed.stdout, re.M)) == set(find_benchmarks())
    refused = run("policy")
    assert refused.returncode == 1
    assert refused.stderr == "There is no benchmark 'policy'; `python -m benchmarks` lists their names.\n"
