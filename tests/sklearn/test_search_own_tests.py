"""scikit-learn's own tests of its searches pass with ours in their place, with an infinite value of a score."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

import dbcare
from tests.helpers.fork_server import ForkServer

# They take 20 s of work; test_search.py and test_search_checks.py compare ours with theirs in every run.
pytestmark = pytest.mark.soak

TESTS = Path(__file__).parents[2]
SOURCE = Path(dbcare.__file__).parents[1]
PLUGIN = "tests.helpers.searches_of_scikit_learn"

# Tests that do not pass with ours, and why.
EXCEPTIONS = {
    "test_custom_run_search": (
        "compares all fitted attributes with those of a bare BaseSearchCV; ours also has n_fits_, spent_, fold_order_, "
        "expected_loss_ and why_stopped_"
    ),
}

WITH_OURS = "-p", PLUGIN, "test_replacement.py", "--pyargs", "sklearn.model_selection.tests.test_search"

CHECK_OF_REPLACEMENT = """
from sklearn.model_selection.tests import test_search
from dbcare.sklearn import BreakevenRandomizedSearchCV, BreakevenSearchCV

def test_whose_searches():
    ours = (BreakevenSearchCV, BreakevenRandomizedSearchCV)
    assert issubclass(test_search.GridSearchCV, ours)
    assert issubclass(test_search.RandomizedSearchCV, ours)
    assert test_search.GridSearchCV(None, {}).value == float("inf")
"""


# In our process, markers that our settings do not know are errors.
RUN = """
import os, sys
folder, tests, *arguments = sys.argv[1:]
os.chdir(folder)
sys.path[:0] = [folder, tests]
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--junitxml=outcomes.xml", *arguments]))
"""


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    """Runs tests in processes that have loaded what takes longest."""
    server = ForkServer("import pytest, sklearn.model_selection, dbcare.sklearn", SOURCE)
    yield server
    server.close()


def run_tests(server: ForkServer, folder: Path, *arguments: str) -> dict[str, str]:
    """Run tests in a folder where no settings of ours are found; return "passed", "failure" or "skipped" by name."""
    (folder / "test_replacement.py").write_text(CHECK_OF_REPLACEMENT)
    (folder / "pytest.ini").write_text("[pytest]\n")
    # Plugins that they do not need take seconds to load.
    variables = {"PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    process = server.start(RUN, str(folder), str(TESTS), *arguments, **variables)
    output, _ = process.communicate()
    assert process.wait() in (0, 1), output
    cases = ElementTree.parse(folder / "outcomes.xml").iter("testcase")
    return {str(case.get("name")): next((part.tag for part in case), "passed") for case in cases}


def check_outcomes(outcomes: dict[str, str], exceptions: set[str]) -> None:
    assert outcomes.pop("test_whose_searches") == "passed"
    assert {name for name, outcome in outcomes.items() if outcome not in ("passed", "skipped")} == exceptions
    assert all("array_api" in name for name, outcome in outcomes.items() if outcome == "skipped")


def test_their_tests_pass_with_ours(tmp_path: Path, fork_server: ForkServer) -> None:
    """All pass, as they do with theirs, but for those that need libraries that are not installed."""
    outcomes = run_tests(fork_server, tmp_path, *WITH_OURS)
    check_outcomes(outcomes, set(EXCEPTIONS))
    assert sum(outcome == "passed" for outcome in outcomes.values()) >= 139


def test_without_the_plugin_they_test_their_own(tmp_path: Path, fork_server: ForkServer) -> None:
    """Negative control."""
    assert run_tests(fork_server, tmp_path, "test_replacement.py") == {"test_whose_searches": "failure"}
