"""The table `cv_results_` of a race: means over the folds that were fitted, and ranks by comparisons within folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from dbcare.base.checks import MAX_MAGNITUDE
from dbcare.sklearn.fit_runner import FitResult
from dbcare.sklearn.race import ROUNDING, FoldRace, Place

Floats = npt.NDArray[np.float64]

TIMES = ("fit_time", "score_time")
SMALLEST = 1e-300


def fill_gaps(fitted: Mapping[Place, FitResult], places: Iterable[Place]) -> list[FitResult]:
    """Return the result of each place, with NaN in those of folds that were not fitted."""
    example = next(iter(fitted.values()))
    empty = {name: _empty(value) for name, value in example.items()} | {"fit_error": None}
    return [fitted.get(place, empty) for place in places]


def _empty(value: Any) -> Any:
    return dict.fromkeys(value, np.nan) if isinstance(value, dict) else np.nan


def describe_race(table: dict[str, Any], results: Sequence[FitResult], race: FoldRace, metric: str) -> dict[str, Any]:
    """Return a table of scikit-learn's with means, deviations and ranks that allow for missing folds, and new columns.

    The new columns are `n_folds`; `expected_loss`, as `FoldRace.expected_losses` says; and `given_up_after`, the number
    of fits of the whole search after which a candidate left the race, NaN if it never did.
    """
    candidates, folds = race.candidates, len(race.order)
    described = dict(table)
    fitted = np.zeros((candidates, folds), dtype=bool)
    for candidate, fold in race.fitted:
        fitted[candidate, fold] = True
    for name in TIMES:
        times = np.array([result[name] for result in results], dtype=np.float64).reshape(candidates, folds)
        _describe_columns(described, name, times, fitted)
    for name in [key.removeprefix("mean_") for key in table if key.startswith(("mean_test_", "mean_train_"))]:
        scores = np.stack([table[f"split{fold}_{name}"] for fold in range(folds)], axis=1)
        _describe_columns(described, name, scores, fitted)
        means = described[f"mean_{name}"]
        if not np.isfinite(means).all():
            warnings.warn(
                f"One or more of the {name.split('_')[0]} scores are non-finite: {means}", UserWarning, stacklevel=4
            )
        if name.startswith("test_"):
            decided = name == f"test_{metric}"
            described[f"rank_{name}"] = rank_by_comparisons(scores, fitted, race.leader, decided=decided)
    described["n_folds"] = fitted.sum(axis=1)
    described["expected_loss"] = race.expected_losses()
    described["given_up_after"] = np.array([race.given_up.get(each, np.nan) for each in range(candidates)])
    return described


def _describe_columns(table: dict[str, Any], name: str, values: Floats, fitted: npt.NDArray[np.bool_]) -> None:
    """Write mean and standard deviation over the fitted folds; NaN if one of those has no value."""
    counts = fitted.sum(axis=1)
    means = np.where(fitted, values, 0.0).sum(axis=1) / counts
    squares = np.where(fitted, np.square(values - means[:, None]), 0.0)
    table[f"mean_{name}"] = means
    table[f"std_{name}"] = np.sqrt(squares.sum(axis=1) / counts)


def rank_by_comparisons(
    scores: Floats, fitted: npt.NDArray[np.bool_], leader: int | None, *, decided: bool = True
) -> npt.NDArray[np.int32]:
    """Return ranks by how much the leader is ahead on the folds that it shares with each candidate.

    Where that is equal, the candidate with more of these folds is better. Candidates without a score on some fitted
    fold share the last rank; all share the first if there is no leader. If it is the leader that has no score by this
    metric, the candidate with the most folds takes its place. By the metric that `decided` the race, none is before
    the leader.
    """
    usable = np.abs(scores) <= MAX_MAGNITUDE
    has_scores = np.asarray((usable | ~fitted).all(axis=1))
    if leader is None or not has_scores.any():
        return np.ones(len(scores), dtype=np.int32)
    if not has_scores[leader]:
        leader = int(np.argmax(np.where(has_scores, fitted.sum(axis=1), -1)))
    values, shared = np.where(usable, scores, 0.0), fitted & fitted[leader]
    counts = shared.sum(axis=1)
    leads = np.where(shared, values[leader] - values, 0.0).sum(axis=1) / counts
    leads = np.round(leads / (ROUNDING * max(np.abs(values[leader]).max(), SMALLEST)))
    if decided:
        leads[leads < 0.0] = 1.0  # candidates may be ahead of each other in turn: none is better than the leader
    order = np.lexsort((-counts, leads))
    steps = np.zeros(len(scores))
    steps[order[1:]] = np.cumsum((np.diff(leads[order]) != 0.0) | (np.diff(counts[order]) != 0))
    steps[~has_scores] = np.inf
    return rankdata(steps, method="min").astype(np.int32)
