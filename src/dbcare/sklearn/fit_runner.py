"""Runs the fits of a batch, several at once, by the same function as scikit-learn's own searches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.model_selection._validation import _fit_and_score
from sklearn.utils.parallel import Parallel, delayed

from dbcare.base.checks import MAX_MAGNITUDE
from dbcare.sklearn.race import Place

FitResult = dict[str, Any]  # scores, times and the error of one fit, as scikit-learn returns them


@dataclass
class FitRunner:
    """Fits candidates on folds.

    Parameters
    ----------
    search : estimator
        The search, for its callbacks.
    parallel : Parallel
        Where fits are run.
    estimator : estimator
        What is fitted, with the parameters of a candidate.
    candidates : sequence of dict
        The candidates.
    splits : sequence of tuple
        The samples to train and to test on, by fold.
    arguments : dict
        All other arguments of a fit: the data, the scorers, and options.
    context : CallbackContext
        The callbacks' context of the search.
    """

    search: Any
    parallel: Parallel
    estimator: Any
    candidates: Sequence[dict[str, Any]]
    splits: Sequence[tuple[Any, Any]]
    arguments: dict[str, Any]
    context: Any

    def run(self, places: Sequence[Place]) -> Iterator[tuple[Place, FitResult]]:
        """Yield the results of these fits, in the order in which they are ready."""
        # Created before the first fit starts: pickling must not meet a context that is still growing.
        contexts = [
            self.context.subcontext(task_name="candidate-split-evaluation", task_id=candidate * len(self.splits) + fold)
            for candidate, fold in places
        ]
        yield from self.parallel(
            delayed(_fit_place)(
                place,
                clone(self.estimator),
                train=self.splits[place[1]][0],
                test=self.splits[place[1]][1],
                parameters=self.candidates[place[0]],
                split_progress=(place[1], len(self.splits)),
                candidate_progress=(place[0], len(self.candidates)),
                caller=self.search,
                callback_ctx=context,
                **self.arguments,
            )
            for place, context in zip(places, contexts, strict=True)
        )


def _fit_place(place: Place, estimator: Any, **arguments: Any) -> tuple[Place, FitResult]:
    result = _fit_and_score(
        estimator, return_n_test_samples=True, return_times=True, return_parameters=False, **arguments
    )
    return place, result


def choose_metric(metrics: Sequence[str], refit: Any) -> str:
    """Return the metric by which candidates are compared: the one that `refit` names, or else the first."""
    return next((metric for metric in metrics if metric == refit), metrics[0])


def read_score(result: FitResult, refit: Any) -> float:
    """Return the test score by which candidates are compared.

    It is NaN if it is too large to reckon with, as that of a fit that diverged may be.
    """
    scores = result["test_scores"]
    if isinstance(scores, dict):
        scores = scores[choose_metric(list(scores), refit)]
    return float(scores) if abs(scores) <= MAX_MAGNITUDE else math.nan
