"""Scores that are constant, missing or huge, and searches of one, two and a thousand candidates."""

import math
import re
import time
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge

from dbcare.sklearn import BreakevenSearchCV
from tests.helpers.fold_searches import assert_same_results, collect_scores, search_table, search_table_fully
from tests.helpers.score_table import draw_table, make_samples, make_task

NON_FINITE = "ignore:One or more of the test scores are non-finite"
FAILED = "ignore::sklearn.exceptions.FitFailedWarning"


@pytest.mark.parametrize("level", [0.0, 0.5, -1e6])
@pytest.mark.parametrize("value", [1.0, 1e9, math.inf])
def test_candidates_that_are_all_alike_tie_and_the_first_is_chosen(level: float, value: float) -> None:
    search = search_table(np.full((4, 10), level), value=value)
    assert (search.best_index_, list(search.cv_results_["rank_test_score"])) == (0, [1, 1, 1, 1])
    assert search.best_score_ == level
    if math.isfinite(value):
        assert math.isnan(search.cv_results_["given_up_after"][0])
        assert re.search(r"(^|is better than )candidate=0 ", search.why_stopped_)


@pytest.mark.parametrize("seed", range(4))
def test_of_two_equal_candidates_the_first_is_chosen(seed: int) -> None:
    table = draw_table(5, 10, seed)
    order = np.argsort(table.mean(axis=1))
    table[order[0]] = table[order[4]]  # the worst is as good as the best
    search = search_table(table, value=1e12, random_state=seed)
    assert search.best_index_ == min(order[0], order[4]) == search_table_fully(table).best_index_


@pytest.mark.filterwarnings(NON_FINITE, FAILED)
@pytest.mark.parametrize("value", [1.0, 1e5, 1e12])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_candidate_that_fails_on_a_fold_is_ruled_out(value: float, seed: int) -> None:
    table = draw_table(5, 10, 3)
    table[1] += 0.3  # it would be the best
    first = search_table(table, value=value, random_state=seed)
    assert first.best_index_ == 1
    table[1, first.fold_order_[2]] = np.nan  # the last fold that all are fitted on
    search = search_table(table, value=value, random_state=seed)
    results = search.cv_results_
    assert math.isnan(results["mean_test_score"][1])
    assert (results["rank_test_score"][1], math.isnan(results["expected_loss"][1])) == (5, True)
    assert search.best_index_ == np.argmax(np.where(np.arange(5) == 1, -1.0, results["mean_test_score"]))
    assert np.isfinite(np.delete(results["expected_loss"], 1)).all()
    assert results["given_up_after"][1] == 15
    assert np.isfinite(np.delete(results["mean_test_score"], 1)).all()


@pytest.mark.filterwarnings(NON_FINITE, FAILED)
def test_what_failed_on_the_first_folds_gets_no_more_fits_and_the_rest_is_decided_without_it() -> None:
    table = draw_table(5, 10, 3)
    broken = table.copy()
    broken[2] = np.nan
    alone, with_failure = (
        search_table(np.delete(table, 2, axis=0), value=1e5),
        search_table(broken, value=1e5),
    )
    results = with_failure.cv_results_
    assert results["n_folds"][2] == 3
    np.testing.assert_array_equal(np.delete(results["rank_test_score"], 2), alone.cv_results_["rank_test_score"])
    assert [0, 1, 3, 4][alone.best_index_] == with_failure.best_index_


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("value", [10.0, math.inf])
def test_if_all_fits_fail_the_error_is_that_of_scikit_learn(value: float, refit: bool) -> None:
    table = np.full((3, 5), np.nan)
    fits = 9 if math.isfinite(value) else 15
    with pytest.raises(ValueError, match=f"All the {fits} fits failed"):
        search_table(table, value=value, refit=refit)


def test_error_score_raise_raises_and_a_number_is_a_score() -> None:
    table = draw_table(4, 10, 3)
    table[1, :] = np.nan
    with pytest.raises(ValueError, match="cannot be fitted"):
        search_table(table, value=100.0, error_score="raise")
    with pytest.warns(FitFailedWarning):
        search = search_table(table, value=1e6, error_score=-1.0)
    assert search.cv_results_["mean_test_score"][1] == -1.0
    assert search.cv_results_["rank_test_score"][1] == 4


@pytest.mark.filterwarnings(NON_FINITE)
def test_a_scorer_without_an_answer_rules_out() -> None:
    def score(estimator: Any, X: Any, y: Any = None) -> float:
        return math.nan if estimator.candidate == 2 else estimator.score(X)

    table = draw_table(4, 10, 3)
    table[2] += 1.0
    search = search_table(table, value=1e5, scoring=score)
    assert search.cv_results_["rank_test_score"][2] == 4
    assert (search.cv_results_["n_folds"][2], search.best_index_ != 2) == (3, True)


@pytest.mark.filterwarnings(NON_FINITE)
def test_without_any_score_the_first_candidate_is_chosen_as_in_grid_search() -> None:
    def score(estimator: Any, X: Any, y: Any = None) -> float:
        return math.nan

    search = search_table(draw_table(3, 5, 1), value=10.0, scoring=score)
    assert search.best_index_ == search_table_fully(draw_table(3, 5, 1), scoring=score).best_index_ == 0
    assert search.why_stopped_ == "No candidate has a score on all folds."
    assert math.isnan(search.expected_loss_)


@pytest.mark.parametrize("value", [1.0, 1e6])
def test_one_candidate_is_fitted_on_min_folds(value: float) -> None:
    search = search_table(draw_table(1, 10, 1), value=value)
    assert (search.n_fits_, search.best_index_, search.expected_loss_) == (3, 0, 0.0)
    assert list(search.cv_results_["rank_test_score"]) == [1]


def test_two_candidates_share_their_folds() -> None:
    table = draw_table(2, 10, 2, spread=0.0)
    search = search_table(table, value=1e12)
    assert search.best_index_ == np.argmax(table.mean(axis=1))
    assert search.n_fits_ > 6


def test_a_thousand_candidates_take_seconds() -> None:
    table = draw_table(1_000, 10, 5, spread=0.02)
    start = time.process_time()
    search = search_table(table, value=1e6)
    assert time.process_time() - start < 30.0
    assert 3_000 < search.n_fits_ < 6_000
    best = np.sort(table.mean(axis=1))[::-1]
    assert table.mean(axis=1)[search.best_index_] >= best[3]
    assert sorted(search.cv_results_["rank_test_score"])[0] == search.cv_results_["rank_test_score"][search.best_index_]


@pytest.mark.parametrize("size", [1e3, 1e6, 1e13, 1e20])
def test_a_candidate_that_diverges_does_not_blur_the_others(size: float) -> None:
    table = draw_table(6, 10, 1, spread=0.01)
    table[5] = -size * np.exp(np.random.default_rng(0).standard_normal(10))
    search = search_table(table, value=1e5)
    assert search.best_index_ == np.argmax(table.mean(axis=1))
    assert search.cv_results_["rank_test_score"][5] == 6
    assert len(set(search.cv_results_["rank_test_score"])) == 6
    np.testing.assert_array_equal(np.isnan(collect_scores(search)).sum(axis=1), 10 - search.cv_results_["n_folds"])


@pytest.mark.filterwarnings(NON_FINITE, "ignore:(invalid value|overflow) encountered:RuntimeWarning")
@pytest.mark.parametrize("score", [-math.inf, -1e300])
def test_a_score_too_large_to_reckon_with_rules_out(score: float) -> None:
    table = draw_table(4, 10, 1)
    table[2] = score
    search = search_table(table, value=1e6)
    assert (search.cv_results_["rank_test_score"][2], search.cv_results_["n_folds"][2]) == (4, 3)
    others = np.delete(table.mean(axis=1), 2)
    assert search.best_score_ == pytest.approx(others.max(), abs=0.1)
    assert search.best_index_ == [0, 1, 3][int(np.argmax(others))]


def test_scores_in_other_units_are_decided_alike() -> None:
    """A score in thousandths with a value in thousandths of the money."""
    table = draw_table(6, 10, 9, spread=0.01)
    plain, scaled = search_table(table, value=1e5), search_table(table * 2.0**20, value=1e5 / 2.0**20)
    np.testing.assert_array_equal(plain.cv_results_["n_folds"], scaled.cv_results_["n_folds"])
    np.testing.assert_array_equal(plain.cv_results_["rank_test_score"], scaled.cv_results_["rank_test_score"])
    assert scaled.expected_loss_ == pytest.approx(plain.expected_loss_ * 2.0**20)
    assert 18 < plain.n_fits_ < 60


def test_a_refit_candidate_predicts_and_a_search_without_refit_has_none() -> None:
    generator = np.random.default_rng(0)
    samples = generator.standard_normal((60, 3))
    targets = samples @ [1.0, 2.0, 3.0] + 0.1 * generator.standard_normal(60)
    grid = {"alpha": [0.01, 1.0, 1e4]}
    search = BreakevenSearchCV(Ridge(), grid, value=1e3, cv=5, random_state=0).fit(samples, targets)
    expected = Ridge(**search.best_params_).fit(samples, targets).predict(samples)
    np.testing.assert_allclose(search.predict(samples), expected)
    assert (search.refit_time_ > 0.0, search.n_features_in_) == (True, 3)
    bare = BreakevenSearchCV(Ridge(), grid, value=1e3, cv=5, random_state=0, refit=False).fit(samples, targets)
    assert not hasattr(bare, "best_estimator_")
    with pytest.raises(AttributeError, match="has no attribute 'predict'"):
        bare.predict(samples)
    assert_same_results(search.cv_results_, bare.cv_results_)


def test_splits_may_be_given_one_by_one() -> None:
    table = draw_table(4, 6, 1)
    splits = list(make_task(table)["cv"].split(make_samples(table)))
    given = search_table(table, value=1e5, cv=iter(splits))
    assert_same_results(given.cv_results_, search_table(table, value=1e5).cv_results_)
