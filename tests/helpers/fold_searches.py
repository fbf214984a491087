"""Searches over tables of scores, and what two tables of results have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from dbcare.sklearn import BreakevenSearchCV
from tests.helpers.score_table import make_samples, make_task

TIMES = ("mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time")


def search_table(table: Any, *, estimator_options: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """Search all candidates of a table, without a refit if nothing else is said."""
    task = make_task(table, **(estimator_options or {}))
    return BreakevenSearchCV(**(task | {"refit": False, "random_state": 0} | options)).fit(make_samples(table))


def search_table_fully(table: Any, **options: Any) -> Any:
    """Fit everything, by scikit-learn."""
    return GridSearchCV(**(make_task(table) | {"refit": False} | options)).fit(make_samples(table))


def collect_scores(search: Any, metric: str = "score") -> Any:
    """Return the test scores, by candidate and fold."""
    return np.stack([search.cv_results_[f"split{fold}_test_{metric}"] for fold in range(search.n_splits_)], axis=1)


def assert_same_results(left: Mapping[str, Any], right: Mapping[str, Any]) -> None:
    """Check that two `cv_results_` have the same keys in the same order, and the same values, except times."""
    assert list(left) == list(right)
    for key in left:
        if key in TIMES:
            continue
        if key == "params":
            assert list(map(repr, left[key])) == list(map(repr, right[key]))
            continue
        first, second = np.ma.asarray(left[key]), np.ma.asarray(right[key])
        assert first.dtype == second.dtype, key
        if first.dtype == object:
            assert list(map(repr, first)) == list(map(repr, second)), key
        else:
            np.testing.assert_array_equal(first, second, err_msg=key)
