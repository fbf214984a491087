"""A search with a finite value: which folds it fits, and what its table says."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit

from dbcare.sklearn import BreakevenSearchCV
from tests.helpers.fold_searches import assert_same_results, collect_scores, search_table, search_table_fully
from tests.helpers.score_table import draw_table, make_samples, make_task, read_fits

VALUES = (1.0, 1e4, 1e6)


@pytest.fixture(params=[(seed, value) for seed in (1, 2, 3) for value in VALUES], ids=str)
def raced(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    seed, value = request.param
    table = draw_table(8, 10, seed)
    return table, search_table(table, value=value, price=0.5, random_state=seed)


def test_the_table_describes_the_folds_that_were_fitted(raced: tuple[Any, Any]) -> None:
    table, search = raced
    results, scores = search.cv_results_, collect_scores(search)
    fitted = ~np.isnan(scores)
    np.testing.assert_array_equal(scores[fitted], table[fitted])
    assert [sum(row) for row in fitted] == list(results["n_folds"])
    for candidate, row in enumerate(fitted):
        assert results["mean_test_score"][candidate] == pytest.approx(np.mean(table[candidate][row]))
        assert results["std_test_score"][candidate] == pytest.approx(np.std(table[candidate][row]))
    assert search.n_fits_ == fitted.sum() == results["n_folds"].sum()
    assert search.spent_ == pytest.approx(0.5 * fitted.sum())


def test_the_best_candidate_has_rank_1_and_was_never_given_up(raced: tuple[Any, Any]) -> None:
    _, search = raced
    results, best = search.cv_results_, search.best_index_
    given_up = results["given_up_after"]
    assert list(np.flatnonzero(results["rank_test_score"] == 1)) == [best]
    assert math.isnan(given_up[best])
    assert search.expected_loss_ == results["expected_loss"][best] == min(results["expected_loss"])
    left = given_up[~np.isnan(given_up)]
    assert (left >= 3 * 8).all()
    assert (left <= search.n_fits_).all()
    assert search.best_params_ == {"candidate": best}
    assert search.best_score_ == results["mean_test_score"][best]
    assert f"candidate={best} " in search.why_stopped_


def test_ranks_follow_from_differences_with_the_leader_on_shared_folds(raced: tuple[Any, Any]) -> None:
    _, search = raced
    scores, best = collect_scores(search), search.best_index_
    leads = np.nanmean(scores[best] - scores, axis=1)  # a difference is NaN where one of the two is
    np.testing.assert_array_equal(np.argsort(np.argsort(leads)) + 1, search.cv_results_["rank_test_score"])


def test_means_over_different_folds_do_not_decide() -> None:
    """The last folds are hard: candidates that stay in the race have the lower means."""
    table = draw_table(6, 10, 4, spread=0.001, noise=0.001)
    table[4:] -= 0.05  # given up early
    table[:, 3:] -= np.linspace(0.3, 0.5, 7)
    # In the order of the folds, the easy ones come first.
    samples = np.arange(11.0).reshape(-1, 1)
    task = make_task(np.column_stack([np.zeros(6), table])) | {"cv": TimeSeriesSplit(10, test_size=1)}
    search = BreakevenSearchCV(**task, value=1e6, refit=False).fit(samples)
    results = search.cv_results_
    assert list(results["n_folds"][4:]) == [3, 3]
    assert results["n_folds"][search.best_index_] > 6
    assert np.argmax(results["mean_test_score"]) in (4, 5)  # which means would have chosen
    assert sorted(results["rank_test_score"][4:]) == [5, 6]
    assert search.best_index_ == np.argmax(table.mean(axis=1))


def test_folds_that_follow_time_are_fitted_in_order() -> None:
    table = draw_table(6, 11, 5)
    task = make_task(table) | {"cv": TimeSeriesSplit(10, test_size=1)}
    searches = [
        BreakevenSearchCV(**task, value=1e5, refit=False, random_state=seed).fit(make_samples(table))
        for seed in range(3)
    ]
    fitted = [~np.isnan(collect_scores(search)) for search in searches]
    for each in fitted:
        assert not each.all()
        for row in each:
            assert row[: sum(row)].all()


def test_the_order_of_folds_is_random_and_repeats_with_its_seed() -> None:
    table = draw_table(6, 10, 5)
    first = [
        frozenset(np.flatnonzero(~np.isnan(collect_scores(search_table(table, value=1.0, random_state=seed))[0])))
        for seed in range(12)
    ]
    assert {len(folds) for folds in first} == {3}
    assert len(set(first)) > 6
    for seed in (0, np.random.RandomState(4)):
        again = [search_table(table, value=1e5, random_state=np.random.RandomState(4) if seed else 0) for _ in range(2)]
        assert_same_results(again[0].cv_results_, again[1].cv_results_)


def test_a_random_state_is_drawn_from_so_that_the_next_search_differs() -> None:
    table, state = draw_table(6, 10, 5), np.random.RandomState(0)
    fitted = [np.isnan(collect_scores(search_table(table, value=1.0, random_state=state))) for _ in range(4)]
    assert any((each != fitted[0]).any() for each in fitted[1:])


@pytest.mark.parametrize("min_folds", [2, 3, 7])
def test_a_tiny_value_buys_min_folds_of_every_candidate(min_folds: int) -> None:
    search = search_table(draw_table(5, 8, 1), value=1e-9, min_folds=min_folds)
    assert list(search.cv_results_["n_folds"]) == [min_folds] * 5
    assert search.spent_ == search.n_fits_ == 5 * min_folds


@pytest.mark.parametrize("seed", range(5))
def test_a_huge_value_chooses_as_grid_search_does(seed: int) -> None:
    table = draw_table(7, 10, seed, spread=0.003)
    search, theirs = search_table(table, value=1e12, random_state=seed), search_table_fully(table)
    assert search.best_index_ == theirs.best_index_ == np.argmax(table.mean(axis=1))
    assert search.best_score_ == pytest.approx(theirs.best_score_)
    assert search_table(table, value=1.0, random_state=seed).n_fits_ < search.n_fits_


def test_more_value_buys_no_fewer_fits_and_fits_grow_with_the_difficulty() -> None:
    table = draw_table(8, 10, 1)
    fits = [search_table(table, value=value).n_fits_ for value in (1.0, 1e4, 1e6, 1e40)]
    assert fits == sorted(fits)
    assert (fits[0], fits[-1]) == (24, 80)
    assert search_table(table, value=1e6, price=1e6).n_fits_ == 24  # only the ratio counts


def test_decisions_do_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    table = draw_table(6, 10, 7, spread=0.01)
    searches, journals = [], []
    for jobs in (1, 2):
        journals.append(tmp_path / str(jobs))
        options = {"journal": str(journals[-1])}
        searches.append(search_table(table, value=1e5, n_jobs=jobs, estimator_options=options))
    assert_same_results(searches[0].cv_results_, searches[1].cv_results_)
    assert searches[0].why_stopped_ == searches[1].why_stopped_
    assert 18 < searches[0].n_fits_ < 60
    fits = [read_fits(journal) for journal in journals]
    assert sorted(fits[0]) == sorted(fits[1])
    scores = collect_scores(searches[0])
    assert sorted(fits[0]) == [(int(row), int(column)) for row, column in np.argwhere(~np.isnan(scores))]


def test_seconds_are_what_a_fit_costs() -> None:
    table = draw_table(4, 10, 3, spread=0.0, noise=0.02)
    seconds = (0.001, 0.001, 0.001, 0.05)
    search = search_table(table, value=100.0, price=0.5, per="second", estimator_options={"seconds": seconds})
    results = search.cv_results_
    times = (results["mean_fit_time"] + results["mean_score_time"]) * results["n_folds"]
    assert search.spent_ == pytest.approx(0.5 * times.sum())
    assert results["mean_fit_time"][3] > 0.05
    dear = search_table(table, value=100.0, price=1e6, per="second", estimator_options={"seconds": seconds})
    assert list(dear.cv_results_["n_folds"]) == [3, 3, 3, 3]


def test_every_decision_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    search = search_table(draw_table(5, 10, 1), value=1e5, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Fitting 3 to 10 folds for each of 5 candidates, totalling 15 to 50 fits"
    assert lines[1].startswith("[Breakeven] 15 fits, 15 spent: ")
    assert lines[-1] == f"[Breakeven] Stopped after {search.n_fits_} fits. {search.why_stopped_}"
    assert f"candidate={search.best_index_} leads" in lines[-2]
    assert all(line.startswith("[Breakeven] ") for line in lines[1:])


@pytest.mark.parametrize("seed", [214, 344, 355])
def test_the_race_decides_also_where_candidates_are_ahead_of_each_other_in_turn(seed: int) -> None:
    """Pairs share different folds, so A may be ahead of B, B of C, and C of A."""
    search = search_table(draw_table(12, 10, seed, spread=0.004, noise=0.02), value=1e5, random_state=seed)
    results = search.cv_results_
    assert results["rank_test_score"][search.best_index_] == 1
    assert math.isnan(results["given_up_after"][search.best_index_])
    assert f"candidate={search.best_index_} " in search.why_stopped_.replace(",", " ").replace(".", " ")
