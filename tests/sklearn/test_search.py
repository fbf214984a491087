"""With an infinite value of a score, a search gives what scikit-learn's own gives, with and without storage."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, RandomizedSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dbcare.sklearn import BreakevenRandomizedSearchCV, BreakevenSearchCV
from tests.helpers.fold_searches import assert_same_results

METRICS = {"accuracy": "accuracy", "f1": "f1_macro"}


def choose_third(results: dict[str, Any]) -> int:
    """Return an index that no metric would choose."""
    assert "mean_test_accuracy" in results
    return 2


def score_twice(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    """Return two scores at once."""
    predicted = estimator.predict(X)
    return {"accuracy": accuracy_score(y, predicted), "f1": f1_score(y, predicted, average="macro")}


def load_classes() -> tuple[Any, Any]:
    samples, targets = load_iris(return_X_y=True)
    return samples[::2], targets[::2]


def load_numbers() -> tuple[Any, Any]:
    samples, targets = load_diabetes(return_X_y=True)
    return samples[:120], targets[:120]


class SometimesFails(BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Fails with an odd level on folds without the first sample."""

    def __init__(self, level: int = 0) -> None:
        self.level = level

    def fit(self, X: Any, y: Any) -> "SometimesFails":
        if self.level % 2 == 1 and X[0, 0] != 5.1:
            raise ValueError("Cannot be fitted.")
        return self

    def score(self, X: Any, y: Any) -> float:
        return 0.1 * self.level


TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": [1, None], "min_samples_leaf": [1, 5]}
FEW: dict[str, Any] = {"cv": 3}
WEIGHTS = np.linspace(0.1, 3.0, 75)
MAKERS = Pipeline([("scale", StandardScaler()), ("classify", KNeighborsClassifier())])
RANGES = Pipeline([("scale", MinMaxScaler()), ("classify", KNeighborsClassifier())])
STEPS = [
    {"scale": [StandardScaler(), MinMaxScaler(), "passthrough"], "classify__n_neighbors": [1, 5]},
    {"classify": [DummyClassifier(), DecisionTreeClassifier(max_depth=2, random_state=0)]},
]

# By name: the estimator, its grid, its data, options of the search, and parameters of `fit`.
CASES: dict[str, tuple[Any, Any, tuple[Any, Any], dict[str, Any], dict[str, Any]]] = {
    "classification": (TREE, DEPTHS, load_classes(), {}, {}),
    "regression": (Ridge(), {"alpha": [0.01, 0.1, 1.0]}, load_numbers(), {"cv": KFold(4), "scoring": "r2"}, {}),
    "train scores": (Ridge(), {"alpha": [0.01, 1.0]}, load_numbers(), {"return_train_score": True}, {}),
    "metrics, refit by name": (TREE, DEPTHS, load_classes(), FEW | {"scoring": METRICS, "refit": "f1"}, {}),
    "metrics, refit by function": (TREE, DEPTHS, load_classes(), FEW | {"scoring": METRICS, "refit": choose_third}, {}),
    "metrics, no refit": (TREE, DEPTHS, load_classes(), FEW | {"scoring": METRICS, "refit": False}, {}),
    "function of several metrics": (
        TREE,
        DEPTHS,
        load_classes(),
        FEW | {"scoring": score_twice, "refit": "accuracy"},
        {},
    ),
    "groups": (TREE, DEPTHS, load_classes(), {"cv": GroupKFold(3)}, {"groups": np.arange(75) % 7}),
    "sample weights": (TREE, DEPTHS, load_classes(), {}, {"sample_weight": WEIGHTS}),
    "shuffled folds": (TREE, DEPTHS, load_classes(), {"cv": StratifiedKFold(4, shuffle=True, random_state=3)}, {}),
    "error score": (SometimesFails(), {"level": [0, 1, 2, 3]}, load_classes(), {"error_score": -1.0, "cv": 3}, {}),
    "error score of NaN": (SometimesFails(), {"level": [0, 1, 2, 3]}, load_classes(), {"cv": 3}, {}),
    "tuples as values": (RANGES, {"scale__feature_range": [(0, 1), (-2, 2)]}, load_classes(), {"cv": 3}, {}),
    "estimators as values": (MAKERS, STEPS, load_classes(), {"cv": 3}, {}),
    "one candidate": (TREE, {"max_depth": [2]}, load_classes(), {}, {}),
}

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the test scores are non-finite"
)


def assert_equal_searches(ours: Any, theirs: Any, samples: Any) -> None:
    assert_same_results(ours.cv_results_, theirs.cv_results_)
    for name in ("best_index_", "best_score_", "multimetric_", "n_splits_", "n_features_in_"):
        assert hasattr(ours, name) == hasattr(theirs, name), name
        if hasattr(theirs, name):
            assert getattr(ours, name) == getattr(theirs, name), name
    assert repr(getattr(ours, "best_params_", None)) == repr(getattr(theirs, "best_params_", None))
    assert hasattr(ours, "best_estimator_") == hasattr(theirs, "best_estimator_")
    if hasattr(theirs, "predict"):
        np.testing.assert_array_equal(ours.predict(samples), theirs.predict(samples))
    assert (ours.n_fits_, ours.spent_) == (len(ours.cv_results_["params"]) * ours.n_splits_,) * 2
    assert (ours.expected_loss_, ours.why_stopped_) == (0.0, "All folds of all candidates were fitted.")


@pytest.mark.parametrize("case", CASES)
def test_a_search_over_a_grid_equals_that_of_scikit_learn(case: str, tmp_path: Path) -> None:
    estimator, grid, (samples, targets), options, params = CASES[case]
    theirs = GridSearchCV(estimator, grid, **options).fit(samples, targets, **params)
    file = f"sqlite:///{tmp_path}/fits.db"
    storages = [None, file, file] if case != "one candidate" else [None]  # a study compares at least two
    for storage in storages:  # the last finds what the one before has stored
        ours = BreakevenSearchCV(estimator, grid, value=math.inf, storage=storage, **options)
        assert_equal_searches(ours.fit(samples, targets, **params), theirs, samples)


def test_a_randomized_search_equals_that_of_scikit_learn(tmp_path: Path) -> None:
    samples, targets = load_classes()
    distributions = {"ccp_alpha": np.logspace(-3, 0, 50), "max_depth": [1, 2, None]}
    options: dict[str, Any] = {"n_iter": 6, "random_state": 5, "cv": 3, "scoring": METRICS, "refit": "f1"}
    theirs = RandomizedSearchCV(TREE, distributions, **options).fit(samples, targets)
    for storage in (None, f"sqlite:///{tmp_path}/fits.db"):
        ours = BreakevenRandomizedSearchCV(TREE, distributions, value=math.inf, storage=storage, **options)
        assert_equal_searches(ours.fit(samples, targets), theirs, samples)
    options["random_state"] = 6
    other = BreakevenRandomizedSearchCV(TREE, distributions, value=math.inf, **options).fit(samples, targets)
    assert other.cv_results_["params"] != ours.cv_results_["params"]


@pytest.mark.parametrize("verbose", [1, 2, 3, 10])
def test_a_search_prints_what_that_of_scikit_learn_prints(verbose: int, capsys: pytest.CaptureFixture[str]) -> None:
    samples, targets = load_classes()
    printed = []
    for search in (
        GridSearchCV(TREE, DEPTHS, cv=3, verbose=verbose),
        BreakevenSearchCV(TREE, DEPTHS, cv=3, verbose=verbose, value=math.inf),
    ):
        search.fit(samples, targets)
        printed.append(re.sub(r"\d+\.\ds", "TIME", capsys.readouterr().out))
    assert printed[0] == printed[1]
    assert printed[0].startswith("Fitting 3 folds for each of 4 candidates, totalling 12 fits\n")


def test_a_finite_value_is_not_equal() -> None:
    """Shows that the comparison can fail."""
    samples, targets = load_classes()
    theirs = GridSearchCV(TREE, DEPTHS).fit(samples, targets)
    ours = BreakevenSearchCV(TREE, DEPTHS, value=1.0, random_state=0).fit(samples, targets)
    with pytest.raises(AssertionError):
        assert_same_results(ours.cv_results_, theirs.cv_results_)
    assert list(ours.cv_results_) == [*theirs.cv_results_, "n_folds", "expected_loss", "given_up_after"]
