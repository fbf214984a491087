"""The two searches: over a grid, and over candidates drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import GridSearchCV, ParameterGrid, ParameterSampler, RandomizedSearchCV

from dbcare.sklearn.fit import BreakevenSearch


class BreakevenSearchCV(BreakevenSearch, GridSearchCV):
    """Search a grid of parameters, fitting until break-even.

    Use it like GridSearchCV. Candidates are compared on the folds that they share; those that are unlikely
    to be worth their fits are given up, and the search stops once no rival's chance of being better is worth more than
    a quarter of what has been spent.

    Parameters
    ----------
    estimator : estimator
        What is fitted, with each candidate's parameters.
    param_grid : dict or list of dict
        Values to try for each parameter; candidates are all combinations.
    value : float
        What a mean test score higher by 1 is worth, in the unit of `price`: if a fit costs 1 and a hundredth of
        accuracy is worth 100 fits, 10,000. With `math.inf`, everything is fitted as in GridSearchCV.
    price : float, default=1.0
        What a fit costs, or a second of fitting and scoring; see `per`.
    per : {"fit", "second"}, default="fit"
        What `price` is for. By the second, candidates that are quick to fit are fitted first.
    min_folds : int, default=3
        Number of folds that every candidate is fitted on before any is given up, at least 2. An infinite `value`
        ignores it.
    scoring : str, callable, list, tuple or dict, default=None
        How predictions are scored; several metrics as in GridSearchCV. None for the estimator's own score.
    n_jobs : int, default=None
        Number of fits at once; -1 for all CPUs. With `per="fit"`, decisions do not depend on it.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate on all data. With several metrics, the name of the one that decides, or a
        function of `cv_results_` that returns the index of the best candidate; then the first metric decides which
        candidates stay in the race. Such a function should use `rank_test_...` and `n_folds`: means are over different
        folds.
    cv : int, splitter or iterable, default=None
        Folds: their number, a splitter, or pairs of training and test indices. None for five.
    verbose : int, default=0
        From 1 on, one line for each decision; from 2 on, also what scikit-learn prints about each fit.
    pre_dispatch : int or str, default="2*n_jobs"
        Number of fits that are handed to the workers in advance.
    error_score : "raise" or float, default=np.nan
        Score of a fit that fails; "raise" to raise its exception. A candidate with the score NaN on any fold is ruled
        out.
    return_train_score : bool, default=False
        Whether `cv_results_` has scores on the training data too.
    random_state : int, RandomState instance or None, default=None
        Random seed for the order of the folds. Folds that follow time keep theirs.
    storage : str, default=None
        Where fits are kept, such as "sqlite:///search.db". The same call then continues a search that was
        interrupted, and repeats only the fits that were running. Scores are kept, code is not compared. None to keep
        nothing.
    study_name : str, default="search"
        Name of the study in `storage`.

    Attributes
    ----------
    n_fits_ : int
        Number of fits, without the last one on all data.
    spent_ : float
        What they cost, in the unit of `price`.
    expected_loss_ : float
        By how much the best candidate's mean score on these folds is expected to fall short of the highest one.
    why_stopped_ : str
        Why no more was fitted, in a sentence.
    fold_order_ : ndarray of int
        Folds in the order in which every candidate is fitted on them.
    cv_results_ : dict of ndarray
        The table of GridSearchCV. For a finite `value`, scores are NaN where a fold was not fitted, means and
        standard deviations are over the fitted folds, and `rank_test_score` compares candidates with the best one on
        the folds that they share. Further columns: `n_folds`, `expected_loss`, and `given_up_after`, the number of
        fits of the whole search after which a candidate last left the race, NaN if it is still in it.
    best_score_ : float
        Mean test score of the best candidate over its fitted folds, so not over the same folds as in GridSearchCV.
    best_estimator_, best_params_, best_index_, scorer_, n_splits_, refit_time_, multimetric_
        As in GridSearchCV.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from dbcare.sklearn import BreakevenSearchCV
    >>> inputs, labels = load_iris(return_X_y=True)
    >>> grid = {"n_neighbors": [1, 5, 15, 60, 90]}
    >>> search = BreakevenSearchCV(KNeighborsClassifier(), grid, value=10_000, cv=10, random_state=0)
    >>> search.fit(inputs, labels).best_params_
    {'n_neighbors': 15}
    >>> search.n_fits_
    33
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GridSearchCV._parameter_constraints,
        **BreakevenSearch._own_constraints,
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        value: float,
        price: float = 1.0,
        per: str = "fit",
        min_folds: int = 3,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., int] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | str = np.nan,
        return_train_score: bool = False,
        random_state: Any = None,
        storage: str | None = None,
        study_name: str = "search",
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.value = value
        self.price = price
        self.per = per
        self.min_folds = min_folds
        self.random_state = random_state
        self.storage = storage
        self.study_name = study_name

    def _list_candidates(self) -> list[dict[str, Any]]:
        return list(ParameterGrid(self.param_grid))


class BreakevenRandomizedSearchCV(BreakevenSearch, RandomizedSearchCV):
    """Search candidates drawn at random, fitting until break-even.

    Use it like RandomizedSearchCV. Candidates are compared on the folds that they share; those that are unlikely
    to be worth their fits are given up, and the search stops once no rival's chance of being better is worth more than
    a quarter of what has been spent.

    Parameters
    ----------
    estimator : estimator
        What is fitted, with each candidate's parameters.
    param_distributions : dict or list of dict
        For each parameter, values to draw from, or a distribution with a method `rvs`.
    value : float
        What a mean test score higher by 1 is worth, in the unit of `price`: if a fit costs 1 and a hundredth of
        accuracy is worth 100 fits, 10,000. With `math.inf`, everything is fitted as in RandomizedSearchCV.
    price : float, default=1.0
        What a fit costs, or a second of fitting and scoring; see `per`.
    per : {"fit", "second"}, default="fit"
        What `price` is for. By the second, candidates that are quick to fit are fitted first.
    min_folds : int, default=3
        Number of folds that every candidate is fitted on before any is given up, at least 2. An infinite `value`
        ignores it.
    n_iter : int, default=10
        Number of candidates.
    scoring : str, callable, list, tuple or dict, default=None
        How predictions are scored; several metrics as in RandomizedSearchCV. None for the estimator's own score.
    n_jobs : int, default=None
        Number of fits at once; -1 for all CPUs. With `per="fit"`, decisions do not depend on it.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate on all data. With several metrics, the name of the one that decides, or a
        function of `cv_results_` that returns the index of the best candidate; then the first metric decides which
        candidates stay in the race. Such a function should use `rank_test_...` and `n_folds`: means are over different
        folds.
    cv : int, splitter or iterable, default=None
        Folds: their number, a splitter, or pairs of training and test indices. None for five.
    verbose : int, default=0
        From 1 on, one line for each decision; from 2 on, also what scikit-learn prints about each fit.
    pre_dispatch : int or str, default="2*n_jobs"
        Number of fits that are handed to the workers in advance.
    random_state : int, RandomState instance or None, default=None
        Random seed for the candidates and for the order of the folds. Folds that follow time keep theirs.
    error_score : "raise" or float, default=np.nan
        Score of a fit that fails; "raise" to raise its exception. A candidate with the score NaN on any fold is ruled
        out.
    return_train_score : bool, default=False
        Whether `cv_results_` has scores on the training data too.
    storage : str, default=None
        Where fits are kept, such as "sqlite:///search.db". The same call then continues a search that was
        interrupted, and repeats only the fits that were running. Scores are kept, code is not compared. None to keep
        nothing.
    study_name : str, default="search"
        Name of the study in `storage`.

    Attributes
    ----------
    n_fits_ : int
        Number of fits, without the last one on all data.
    spent_ : float
        What they cost, in the unit of `price`.
    expected_loss_ : float
        By how much the best candidate's mean score on these folds is expected to fall short of the highest one.
    why_stopped_ : str
        Why no more was fitted, in a sentence.
    fold_order_ : ndarray of int
        Folds in the order in which every candidate is fitted on them.
    cv_results_ : dict of ndarray
        The table of RandomizedSearchCV. For a finite `value`, scores are NaN where a fold was not fitted, means and
        standard deviations are over the fitted folds, and `rank_test_score` compares candidates with the best one on
        the folds that they share. Further columns: `n_folds`, `expected_loss`, and `given_up_after`, the number of
        fits of the whole search after which a candidate last left the race, NaN if it is still in it.
    best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_, multimetric_
        As in RandomizedSearchCV.

    Examples
    --------
    >>> from scipy.stats import randint
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from dbcare.sklearn import BreakevenRandomizedSearchCV
    >>> inputs, labels = load_iris(return_X_y=True)
    >>> ranges = {"n_neighbors": randint(1, 100)}
    >>> search = BreakevenRandomizedSearchCV(
    ...     KNeighborsClassifier(), ranges, n_iter=20, value=10_000, cv=10, random_state=0
    ... )
    >>> search.fit(inputs, labels).best_params_
    {'n_neighbors': 13}
    >>> search.n_fits_
    72
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RandomizedSearchCV._parameter_constraints,
        **BreakevenSearch._own_constraints,
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        value: float,
        price: float = 1.0,
        per: str = "fit",
        min_folds: int = 3,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., int] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: float | str = np.nan,
        return_train_score: bool = False,
        storage: str | None = None,
        study_name: str = "search",
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.value = value
        self.price = price
        self.per = per
        self.min_folds = min_folds
        self.storage = storage
        self.study_name = study_name

    def _list_candidates(self) -> list[dict[str, Any]]:
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=self.random_state))

    def _check_replay(self, splitter: Any) -> None:
        super()._check_replay(splitter)
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                "The 'random_state' parameter of BreakevenRandomizedSearchCV must be an int when storage is set, so "
                f"that the same candidates are drawn again. Got {self.random_state!r} instead."
            )
