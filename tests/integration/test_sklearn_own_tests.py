"""scikit-learn's own tests of its searches pass with ours in their place, with an infinite value of a score."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import dbcare

TESTS = Path(__file__).parents[1]
SOURCE = Path(dbcare.__file__).parents[1]
PLUGIN = "helpers.searches_of_scikit_learn"

# Tests that pass with theirs and not with ours, and why.
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


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    """Run the tests in a folder where no settings of ours are found."""
    folder.mkdir()
    (folder / "test_replacement.py").write_text(CHECK_OF_REPLACEMENT)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=outcomes.xml", *options]
    command += ["test_replacement.py", "--pyargs", "sklearn.model_selection.tests.test_search"]
    environment = os.environ | {"PYTHONPATH": f"{SOURCE}{os.pathsep}{TESTS}", "PYTEST_ADDOPTS": ""}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def read_outcomes(folder: Path, process: subprocess.Popen[str]) -> dict[str, str]:
    """Return what became of each test: "passed", or "failure", "error" or "skipped"."""
    output, _ = process.communicate(timeout=300.0)
    assert process.returncode in (0, 1), output
    cases = ElementTree.parse(folder / "outcomes.xml").iter("testcase")
    return {str(case.get("name")): next((part.tag for part in case), "passed") for case in cases}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, str]]:
    folder = tmp_path_factory.mktemp("scikit-learn")
    runs = [(folder / "theirs", start(folder / "theirs")), (folder / "ours", start(folder / "ours", "-p", PLUGIN))]
    theirs, ours = (read_outcomes(*run) for run in runs)
    return theirs, ours


def test_what_passes_for_theirs_passes_for_ours(outcomes: tuple[dict[str, str], dict[str, str]]) -> None:
    theirs, ours = outcomes
    passed = {name for name, outcome in theirs.items() if outcome == "passed"}
    assert len(passed) >= 141
    assert {name for name in passed if ours.get(name) != "passed"} == set(EXCEPTIONS)


def test_the_tests_ran_on_ours(outcomes: tuple[dict[str, str], dict[str, str]]) -> None:
    theirs, ours = outcomes
    assert (theirs["test_whose_searches"], ours["test_whose_searches"]) == ("failure", "passed")
    assert set(theirs) == set(ours)
