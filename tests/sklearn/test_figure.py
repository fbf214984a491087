"""The picture of a search: every cell is the table's, rows follow the ranks, and the title has the search's numbers."""

import math
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from dbcare.sklearn import BreakevenSearchCV
from dbcare.sklearn.figure import MAX_LABELED, shorten_candidates

SAMPLES, TARGETS = load_iris(return_X_y=True)
FOLDS = 6
NEIGHBORS = [1, 3, 5, 9, 15, 60, 95]


def make_search(**options: Any) -> BreakevenSearchCV:
    usual: dict[str, Any] = {"param_grid": {"n_neighbors": NEIGHBORS}, "value": 2_000.0, "cv": FOLDS, "random_state": 1}
    return BreakevenSearchCV(KNeighborsClassifier(), **(usual | options))


@cache
def fit_search(value: float = 2_000.0) -> BreakevenSearchCV:
    """Return a search that has been fitted, and is not changed by drawing it."""
    fitted: BreakevenSearchCV = make_search(value=value).fit(SAMPLES, TARGETS)
    return fitted


def read_cells(axes: Axes) -> np.ma.MaskedArray[Any, Any]:
    """Return what is drawn, one row for each candidate."""
    return np.ma.asarray(axes.images[0].get_array())


def read_title(axes: Axes) -> str:
    return axes.get_title(loc="left").replace("\n", " ")


def read_rows(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def list_texts(axes: Axes) -> list[Text]:
    """Return everything written: titles, labels, and the names of ticks within view."""
    found: list[Any] = axes.findobj(Text)
    texts = [text for text in found if text.get_visible() and text.get_text()]
    for axis, place in ((axes.xaxis, 0), (axes.yaxis, 1)):
        low, high = sorted(axis.get_view_interval())
        hidden = {tick for tick in axis.get_ticklabels() if not low <= tick.get_position()[place] <= high}
        texts = [text for text in texts if text not in hidden]
    return texts


@pytest.mark.parametrize("value", [2_000.0, math.inf])
@pytest.mark.parametrize("is_given", [False, True])
def test_cells_are_those_of_the_table(value: float, is_given: bool) -> None:
    """Each is computed here one by one; what was not fitted is blank."""
    search = fit_search(value)
    given = Figure(figsize=(8, 6)).add_subplot() if is_given else None
    axes = search.plot(given)
    assert (axes is given) == is_given
    cells, table = read_cells(axes), search.cv_results_
    rows = sorted(range(len(NEIGHBORS)), key=lambda candidate: (table["rank_test_score"][candidate], candidate))
    assert cells.shape == (len(NEIGHBORS), FOLDS)
    for row, candidate in enumerate(rows):
        for column, fold in enumerate(search.fold_order_):
            scores = table[f"split{fold}_test_score"]
            if math.isnan(scores[candidate]):
                assert np.ma.getmaskarray(cells)[row, column]
            else:
                assert cells[row, column] == max(scores[~np.isnan(scores)]) - scores[candidate]
    assert read_rows(axes) == [f"n_neighbors={NEIGHBORS[candidate]}" for candidate in rows]
    assert [label.get_text() for label in axes.get_xticklabels()] == [str(fold) for fold in search.fold_order_]
    assert np.count_nonzero(~np.ma.getmaskarray(cells)) == search.n_fits_
    assert ("blank: not fitted" in axes.get_xlabel()) == (search.n_fits_ < cells.size)
    assert (search.n_fits_ < cells.size) == math.isfinite(value)


def test_folds_are_in_the_order_of_fitting() -> None:
    """By numbers of fits: the first folds have all candidates, and later ones never more than earlier ones."""
    search = fit_search()
    counts = [np.isfinite(search.cv_results_[f"split{fold}_test_score"]).sum() for fold in search.fold_order_]
    assert counts[:3] == [len(NEIGHBORS)] * 3
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0]
    assert sorted(search.fold_order_) == list(range(FOLDS))
    assert list(search.fold_order_) != list(range(FOLDS))
    assert list(fit_search(math.inf).fold_order_) == list(range(FOLDS))


def test_the_title_says_what_was_chosen_and_for_how_many_fits() -> None:
    search = fit_search()
    assert read_title(search.plot()) == (
        f"n_neighbors={search.best_params_['n_neighbors']} is chosen after {search.n_fits_} of "
        f"{len(NEIGHBORS) * FOLDS} fits, with an expected loss of {search.expected_loss_:.2g}."
    )


def test_the_metric_that_decides_is_drawn_and_the_choice_is_bold() -> None:
    """A callable chooses the worst candidate; ranks are those of the first metric."""
    search = make_search(
        scoring=["balanced_accuracy", "accuracy"],
        value=math.inf,
        refit=lambda table: int(np.argmax(table["rank_test_balanced_accuracy"])),
    ).fit(SAMPLES, TARGETS)
    axes = search.plot()
    ranks = search.cv_results_["rank_test_balanced_accuracy"]
    weights = [label.get_fontweight() for label in axes.get_yticklabels()]
    assert weights.index("bold") == sorted(range(len(ranks)), key=lambda each: (ranks[each], each)).index(
        search.best_index_
    )
    assert weights.count("bold") == 1
    assert axes.figure.axes[1].get_ylabel() == "balanced_accuracy behind\nthe best on the fold"
    named = make_search(scoring=["balanced_accuracy", "accuracy"], refit="accuracy").fit(SAMPLES, TARGETS)
    assert named.plot().figure.axes[1].get_ylabel() == "accuracy behind\nthe best on the fold"


@pytest.mark.parametrize("value", [2_000.0, math.inf])
def test_candidates_without_a_score_are_gray(value: float) -> None:
    """A candidate fails where it is fitted; the other cells stay blank."""
    search = make_search(param_grid={"n_neighbors": [3, 9, 0, 15]}, value=value)
    with (
        pytest.warns(UserWarning, match="One or more of the test scores are non-finite"),
        pytest.warns(match="fits failed out of"),
    ):
        search.fit(SAMPLES, TARGETS)
    axes = search.plot()
    assert read_rows(axes)[-1] == "n_neighbors=0"
    assert np.ma.getmaskarray(read_cells(axes))[-1].all()
    gray = ~np.ma.getmaskarray(axes.images[1].get_array())
    assert gray[-1].tolist() == [fold < 3 or math.isinf(value) for fold in range(FOLDS)]
    assert not gray[:-1].any()
    assert "gray: no score" in axes.get_xlabel()


def test_no_candidate_with_a_score() -> None:
    search = make_search(
        param_grid={"n_neighbors": [3, 5]}, scoring=lambda estimator, samples, targets: math.nan, refit=False
    )
    with pytest.warns(UserWarning, match="One or more of the test scores are non-finite"):
        search.fit(SAMPLES, TARGETS)
    axes = search.plot()
    assert read_title(axes) == "No candidate has a score on all of its folds after 6 of 12 fits."
    assert np.ma.getmaskarray(read_cells(axes)).all()


def test_one_terrible_candidate_leaves_the_others_their_colors() -> None:
    """Scores are a function of the parameter: gaps are 0, 1, 2, 3 and a million."""
    search = make_search(
        param_grid={"n_neighbors": [1, 2, 3, 4, 5]},
        value=math.inf,
        scoring=lambda estimator, samples, targets: [0, 0, -1, -2, -3, -1e6][estimator.n_neighbors],
    ).fit(SAMPLES, TARGETS)
    axes = search.plot()
    assert axes.images[0].get_clim() == (0.0, 7.5)  # three times the median of those above 0, which are 1, 2, 3, 1e6
    assert axes.figure.axes[1]._colorbar.extend == "max"
    assert fit_search(math.inf).plot().images[0].get_clim()[1] < 1.0


@pytest.mark.parametrize("candidates", [1, 2, MAX_LABELED, MAX_LABELED + 1])
def test_texts_do_not_overlap(candidates: int) -> None:
    """Drawn for real: names of rows and columns, the title and the scale keep apart and within the figure."""
    grid = {"var_smoothing": np.geomspace(1e-12, 1e-2, candidates)}
    search = BreakevenSearchCV(GaussianNB(), grid, value=1_000.0, cv=FOLDS, random_state=1).fit(SAMPLES, TARGETS)
    axes = search.plot()
    axes.figure.draw_without_rendering()
    texts = [text for each in axes.figure.axes for text in list_texts(each)]
    boxes = [text.get_window_extent() for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert [other.get_text() for other, place in zip(texts, boxes, strict=True) if box.overlaps(place)] == [
            text.get_text()
        ]
        assert axes.figure.bbox.x0 <= box.x0 < box.x1 <= axes.figure.bbox.x1
        assert axes.figure.bbox.y0 <= box.y0 < box.y1 <= axes.figure.bbox.y1
    assert len(texts) > FOLDS + 4
    assert (len(read_rows(axes)) == candidates) == (candidates <= MAX_LABELED)


def test_names_of_candidates() -> None:
    """Steps of a pipeline are left out where the rest is clear; numbers are rounded, objects named by their class."""
    assert shorten_candidates([{"svc__C": 0.1 + 0.2, "svc__kernel": "rbf"}]) == ["C=0.3, kernel=rbf"]
    assert shorten_candidates([{"first__size": 1}, {"second__size": 2}]) == ["first__size=1", "second__size=2"]
    assert shorten_candidates([{"C": 1, "tol": 0.1}, {"C": 2, "tol": 0.1}]) == ["C=1", "C=2"]  # all share the other
    assert shorten_candidates([{"model": GaussianNB()}, {}]) == ["model=GaussianNB", "no parameters"]
    (long,) = shorten_candidates([{"text": "x\n" * 100, "other": "y" * 100}])
    assert len(long) <= 60
    assert long.endswith("…")
    assert "\n" not in long


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    search = fit_search()
    monkeypatch.delitem(sys.modules, "dbcare.sklearn.figure")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install (-e )?'.*\[lab\]'"):
        search.plot()
