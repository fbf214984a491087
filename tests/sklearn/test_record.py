"""Stored searches whose candidates, errors, or company are unusual."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import dbcare
from dbcare.errors import StudyError
from dbcare.sklearn import BreakevenSearchCV
from dbcare.sklearn.figure import label_candidates
from dbcare.sklearn.record import LONGEST_ERROR, encode_result
from tests.helpers.fold_searches import assert_same_results, search_table
from tests.helpers.score_table import draw_table, make_samples, make_task

NON_FINITE = "ignore:One or more of the test scores are non-finite"
FAILED = "ignore::sklearn.exceptions.FitFailedWarning"
TABLE = draw_table(5, 8, 1)


class Plain:
    """Has no text of its own."""


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/fits.db"


def test_labels_are_the_same_in_every_process_and_all_different() -> None:
    candidates: list[dict[str, Any]] = [{"call": len}, {"call": Plain()}, {"call": Plain}, {"call": Ridge(alpha=2.0)}]
    assert label_candidates(candidates) == [
        "call=len",
        "call=Plain",
        "call=Plain (candidate 2)",
        "call=Ridge(alpha=2.0)",
    ]
    texts = ["x", "x (candidate 2)", "x", "a\nb", "y" * 1_000]
    labels = label_candidates([{"a": text} for text in texts])
    assert len(set(labels)) == 5
    assert all(label.isprintable() and len(label) <= 200 for label in labels)
    assert label_candidates([{}]) == ["no parameters"]


@pytest.mark.parametrize("error", ["失敗しました" * 500, "x" * 10_000, '"\\' * 2_000, "\ud800" * 3_000])
def test_of_a_long_error_the_end_is_stored(error: str) -> None:
    result: dict[str, Any] = {"fit_error": error, "test_scores": {"a": 0.5, "b": np.float64(0.25)}, "fit_time": 0.1}
    read = json.loads(encode_result(result).encode())
    assert read["fit_error"] == error[-LONGEST_ERROR:]
    assert read["test_scores"] == result["test_scores"]


@pytest.mark.filterwarnings(NON_FINITE, FAILED)
def test_the_study_does_not_recommend_what_the_search_ruled_out(storage: str) -> None:
    table = draw_table(5, 10, 3)
    table[1] += 0.3
    table[1, 4] = np.nan
    search = search_table(table, value=1e12, storage=storage)
    study = dbcare.load_study("search", storage)
    assert search.best_index_ != 1
    assert study.recommendation().arm == f"candidate={search.best_index_}"
    assert search.why_stopped_.removesuffix(".") in str(study.recommendation())


def test_a_fit_that_another_process_stored_takes_the_place_of_ours(storage: str) -> None:
    """The other process stores all of its fits while ours is about to store its first."""
    journal: list[int] = []

    def let_another_search_run(*_: Any) -> float:
        if not journal:
            journal.append(1)
            other.append(search_table(TABLE, value=1e5, storage=storage))
        return 0.0

    other: list[Any] = []

    class Interrupted(BreakevenSearchCV):
        def _price_of(self, result: Any) -> float:
            let_another_search_run()
            return float(super()._price_of(result))

    task = make_task(TABLE) | {"refit": False, "random_state": 0}
    ours = Interrupted(**task, value=1e5, storage=storage).fit(make_samples(TABLE))
    assert_same_results(ours.cv_results_, other[0].cv_results_)
    assert sum(1 for _ in dbcare.load_study("search", storage).trials()) == ours.n_fits_


def test_a_trial_that_somebody_else_asked_for_is_named(storage: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        search_table(TABLE, value=1e5, storage=storage, scoring=interrupt_fourth)
    interrupt_fourth.calls = 0  # type: ignore[attr-defined]  # the count of its calls
    dbcare.load_study("search", storage).ask()
    with pytest.raises(StudyError, match=r"that no search made. Choose another `study_name`"):
        search_table(TABLE, value=1e5, storage=storage, scoring=interrupt_fourth)


def interrupt_fourth(estimator: Any, X: Any, y: Any = None) -> float:
    """Score as usual, but for the fourth time press Ctrl-C."""
    interrupt_fourth.calls = getattr(interrupt_fourth, "calls", 0) + 1  # type: ignore[attr-defined]  # as above
    if interrupt_fourth.calls == 4:  # type: ignore[attr-defined]  # as above
        raise KeyboardInterrupt
    return float(estimator.score(X))


def test_a_generator_orders_the_folds_of_a_new_study(tmp_path: Path) -> None:
    orders = [
        search_table(TABLE, value=1e5, random_state=np.random.RandomState(5), storage=address).fold_order_.tolist()
        for address in (f"sqlite:///{tmp_path}/first.db", f"sqlite:///{tmp_path}/second.db", None)
    ]
    assert orders[0] == orders[1] == orders[2]


@pytest.mark.filterwarnings(NON_FINITE)
def test_a_second_fit_does_not_remember_the_first() -> None:
    task = make_task(TABLE)
    search = BreakevenSearchCV(**task, value=1e5, random_state=0, refit=lambda results: 4).fit(make_samples(TABLE))
    assert search.best_index_ == 4
    search.set_params(refit=False, scoring=score_nothing, param_grid={"candidate": [0, 1]})
    search.fit(make_samples(TABLE))
    assert not hasattr(search, "best_index_")
    assert np.isnan(search.expected_loss_)
    assert search.why_stopped_ == "No candidate has a score on all folds."


def score_nothing(estimator: Any, X: Any, y: Any = None) -> dict[str, float]:
    """Return two scores, of which the first does not exist."""
    return {"first": np.nan, "second": 1.0}
