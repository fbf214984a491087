"""scikit-learn's own tests of its searches pass with ours in their place, with an infinite value of a score."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import dbcare

TESTS = Path(__file__).parents[1]
SOURCE = Path(dbcare.__file__).parents[1]
PLUGIN = "helpers.searches_of_scikit_learn"

# Tests that do not pass with ours, and why.
EXCEPTIONS = {
    "test_custom_run_search": (
        "compares all fitted attributes with those of a bare BaseSearchCV; ours also has n_fits_, spent_, fold_order_, "
        "expected_loss_ and why_stopped_"
    ),
}

CHECK_OF_REPLACEMENT = """
from sklearn.model_selection.tests import test_search
from dbcare.sklearn import BreakevenRandomizedSearchCV, BreakevenSearchCV

def test_whose_searches():
    ours = (BreakevenSearchCV, BreakevenRandomizedSearchCV)
    assert issubclass(test_search.GridSearchCV, ours)
    assert issubclass(test_search.RandomizedSearchCV, ours)
    assert test_search.GridSearchCV(None, {}).value == float("inf")
"""


def run_tests(folder: Path, *arguments: str) -> dict[str, str]:
    """Run tests in a folder where no settings of ours are found; return "passed", "failure" or "skipped" by name."""
    (folder / "test_replacement.py").write_text(CHECK_OF_REPLACEMENT)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=outcomes.xml", *arguments]
    environment = os.environ | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{TESTS}", "PYTEST_ADDOPTS": ""}
    process = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300.0
    )
    assert process.returncode in (0, 1), process.stdout
    cases = ElementTree.parse(folder / "outcomes.xml").iter("testcase")
    return {str(case.get("name")): next((part.tag for part in case), "passed") for case in cases}


def test_their_tests_pass_with_ours(tmp_path: Path) -> None:
    """All pass, as they do with theirs, but for those that need libraries that are not installed."""
    arguments = "-p", PLUGIN, "test_replacement.py", "--pyargs", "sklearn.model_selection.tests.test_search"
    outcomes = run_tests(tmp_path, *arguments)
    assert sum(outcome == "passed" for outcome in outcomes.values()) >= 141
    assert {name for name, outcome in outcomes.items() if outcome not in ("passed", "skipped")} == set(EXCEPTIONS)
    assert all("array_api" in name for name, outcome in outcomes.items() if outcome == "skipped")
    assert outcomes["test_whose_searches"] == "passed"


def test_without_the_plugin_they_test_their_own(tmp_path: Path) -> None:
    """Negative control."""
    assert run_tests(tmp_path, "test_replacement.py") == {"test_whose_searches": "failure"}
