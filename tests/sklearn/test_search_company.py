"""Searches with a finite value among scikit-learn's other parts: pickles, pipelines, callbacks, metadata, metrics."""

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # its stubs are another package
import pytest
import sklearn
from sklearn.base import clone
from sklearn.callback.tests._utils import RecordingCallback
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dbcare.sklearn import BreakevenRandomizedSearchCV, BreakevenSearchCV
from tests.helpers.fold_searches import assert_same_results, collect_scores, search_table
from tests.helpers.score_table import draw_table

TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": [1, 2, 3, None]}
SAMPLES, TARGETS = load_iris(return_X_y=True)


def make_search(**options: Any) -> Any:
    return BreakevenSearchCV(TREE, DEPTHS, **({"value": 1e4, "cv": 6, "random_state": 0} | options))


@pytest.mark.parametrize("kind", [BreakevenSearchCV, BreakevenRandomizedSearchCV])
def test_searches_can_be_cloned_and_pickled(kind: Any) -> None:
    options = {"n_iter": 3} if kind is BreakevenRandomizedSearchCV else {}
    search = kind(TREE, DEPTHS, value=1e4, price=2.0, per="fit", min_folds=2, cv=5, random_state=4, **options)
    for copy in (clone(search), pickle.loads(pickle.dumps(search))):
        assert repr(copy.get_params()) == repr(search.get_params())
        assert not hasattr(copy, "cv_results_")
    search.fit(SAMPLES, TARGETS)
    again = clone(search).fit(SAMPLES, TARGETS)
    read = pickle.loads(pickle.dumps(search))
    for copy in (again, read):
        assert_same_results(copy.cv_results_, search.cv_results_)
        assert (copy.n_fits_, copy.why_stopped_) == (search.n_fits_, search.why_stopped_)
        np.testing.assert_array_equal(copy.predict(SAMPLES), search.predict(SAMPLES))


def test_a_search_is_part_of_a_pipeline_and_of_a_cross_validation() -> None:
    pipeline = make_pipeline(StandardScaler(), make_search())
    scores = cross_val_score(pipeline, SAMPLES, TARGETS, cv=3)
    assert (scores > 0.8).all()
    outer = BreakevenSearchCV(pipeline, {"breakevensearchcv__min_folds": [2, 3]}, value=1.0, cv=4, min_folds=2)
    assert outer.fit(SAMPLES, TARGETS).score(SAMPLES, TARGETS) > 0.9


def test_output_of_a_search_can_be_a_data_frame() -> None:
    frame = pd.DataFrame(SAMPLES, columns=list("abcd"))
    scaler = StandardScaler().set_output(transform="pandas")
    search = BreakevenSearchCV(scaler, {"with_mean": [True, False]}, value=1.0, scoring=lambda *_: 0.5, cv=4)
    search.fit(frame)
    shown = search.transform(frame)
    assert isinstance(shown, pd.DataFrame)
    assert list(shown.columns) == list(search.feature_names_in_) == list("abcd")


@pytest.mark.parametrize(("refit", "jobs"), [(True, 1), (False, 1), (True, 2)])
def test_callbacks_are_called_for_every_fit(refit: bool, jobs: int) -> None:
    callback = RecordingCallback()
    search = make_search(refit=refit, n_jobs=jobs, value=1.0).set_callbacks(callback).fit(SAMPLES, TARGETS)
    assert search.n_fits_ == 12
    tasks = 2 + search.n_fits_ + refit  # the whole, the search, every fit, and the refit
    assert [callback.count_hooks(name) for name in ("setup", "teardown")] == [1, 1]
    assert [callback.count_hooks(name) for name in ("on_fit_task_begin", "on_fit_task_end")] == [tasks, tasks]
    begun = [each["context"] for each in callback.record if each["name"] == "on_fit_task_begin"]
    fits = [context for context in begun if context.task_name == "candidate-split-evaluation"]
    fitted = ~np.isnan(collect_scores(search))
    assert sorted(context.task_id for context in fits) == list(np.flatnonzero(fitted.ravel()))


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_metadata_are_routed_to_fits_scores_and_splits() -> None:
    weights, groups = np.linspace(0.01, 3.0, 150), np.arange(150) % 9
    estimator = (
        LogisticRegression(max_iter=500).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    )
    search = BreakevenSearchCV(estimator, {"C": [0.01, 1.0]}, value=1.0, cv=GroupKFold(4), random_state=0)
    search.fit(SAMPLES, TARGETS, sample_weight=weights, groups=groups)
    splits = list(GroupKFold(4).split(SAMPLES, TARGETS, groups))
    scores = collect_scores(search)
    assert list(search.cv_results_["n_folds"]) == [3, 3]
    for candidate, fold in np.argwhere(~np.isnan(scores)):
        train, test = splits[fold]
        plain = clone(estimator).set_params(C=[0.01, 1.0][candidate])
        plain.fit(SAMPLES[train], TARGETS[train], sample_weight=weights[train])
        expected = plain.score(SAMPLES[test], TARGETS[test], sample_weight=weights[test])
        assert scores[candidate, fold] == pytest.approx(expected)


def test_the_metric_of_the_refit_decides() -> None:
    table = draw_table(5, 10, 1)
    metrics = {"plain": score_plainly, "negative": score_negatively}
    plain = search_table(table, value=1e6, scoring=metrics, refit="plain")
    negative = search_table(table, value=1e6, scoring=metrics, refit="negative")
    assert (plain.best_index_, negative.best_index_) == (np.argmax(table.mean(axis=1)), np.argmin(table.mean(axis=1)))
    for search in (plain, negative):
        assert search.multimetric_
        for metric in metrics:
            leads = np.nanmean(
                collect_scores(search, metric)[search.best_index_] - collect_scores(search, metric), axis=1
            )
            ranks = search.cv_results_[f"rank_test_{metric}"]
            np.testing.assert_array_equal(np.argsort(np.argsort(leads)) + 1, ranks)


def test_a_function_chooses_from_the_table_and_without_refit_the_first_metric_decides() -> None:
    table = draw_table(5, 10, 1)
    metrics = {"negative": score_negatively, "plain": score_plainly}
    chosen = search_table(table, value=1e6, scoring=metrics, refit=lambda results: int(np.argmax(results["n_folds"])))
    assert chosen.best_index_ == np.argmax(chosen.cv_results_["n_folds"])
    assert not hasattr(chosen, "best_score_")
    assert chosen.expected_loss_ == chosen.cv_results_["expected_loss"][chosen.best_index_]
    none = search_table(table, value=1e6, scoring=metrics, refit=False)
    assert not hasattr(none, "best_index_")
    assert list(none.cv_results_["rank_test_negative"]).index(1) == np.argmin(table.mean(axis=1))


def score_plainly(estimator: Any, X: Any, y: Any = None) -> float:
    return float(estimator.score(X))


def score_negatively(estimator: Any, X: Any, y: Any = None) -> float:
    return -float(estimator.score(X))
