"""scikit-learn's own checks of estimators have the same outcome for our searches as for its own."""

import math
import warnings
from collections import Counter
from functools import cache
from typing import Any

import pytest
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.utils.estimator_checks import check_estimator

from dbcare.sklearn import BreakevenRandomizedSearchCV, BreakevenSearchCV

# With this seed, the first folds have the one without the sample that a check spoils: else all fits of it fail, and the
# error is that of fits that all failed, rather than that of the refit.
RACE: dict[str, Any] = {"cv": 3, "min_folds": 2, "random_state": 0}
GRID = {"alpha": [0.1, 10.0]}
CLASSIFIER = RidgeClassifier(solver="cholesky")  # the fastest solver
# The two searches differ only in their candidates: what classifiers are checked for need not be repeated with both.
SEARCHES: dict[str, tuple[Any, Any, Any, Any]] = {
    "grid": (CLASSIFIER, GRID, GridSearchCV, BreakevenSearchCV),
    "randomized": (Ridge(solver="cholesky"), GRID, RandomizedSearchCV, BreakevenRandomizedSearchCV),
}


def list_outcomes(search: Any) -> Counter[tuple[str, str, str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks filter for themselves what they look for
        outcomes = check_estimator(search, on_fail=None, on_skip=None)
    return Counter((each["check_name"], each["status"], type(each["exception"]).__name__) for each in outcomes)


@cache
def list_outcomes_of_theirs(kind: str) -> Counter[tuple[str, str, str]]:
    """Check theirs with one candidate and two folds, which take a third of the time; no check depends on how many."""
    estimator, grid, theirs, _ = SEARCHES[kind]
    options = {"n_iter": 1, "random_state": 0} if kind == "randomized" else {}
    return list_outcomes(theirs(estimator, {name: values[:1] for name, values in grid.items()}, cv=2, **options))


# With an infinite value, searches of both kinds also pass scikit-learn's own tests: see test_search_own_tests.py.
@pytest.mark.parametrize(("value", "kind"), [(1.0, "grid"), (1.0, "randomized"), (math.inf, "randomized")])
def test_checks_have_the_same_outcome(value: float, kind: str) -> None:
    estimator, grid, _, ours = SEARCHES[kind]
    options = {"cv": 2, "random_state": 0} if math.isinf(value) else RACE
    options |= {"n_iter": 2} if kind == "randomized" else {}
    outcomes = list_outcomes(ours(estimator, grid, value=value, **options))
    assert outcomes == list_outcomes_of_theirs(kind)
    statuses = Counter(status for _, status, _ in outcomes.elements())
    assert statuses["passed"] > 45
    assert statuses["failed"] <= 1


def test_a_search_that_breaks_a_rule_has_another_outcome() -> None:
    class ForgetsParameters(BreakevenSearchCV):
        def get_params(self, deep: bool = True) -> Any:
            return super().get_params(deep) | {"value": 2.0 * self.value}

    outcomes = list_outcomes(ForgetsParameters(CLASSIFIER, GRID, value=1.0, cv=2, min_folds=2))
    assert outcomes != list_outcomes_of_theirs("grid")
