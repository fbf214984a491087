"""The two searches: over a grid, and over candidates drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import GridSearchCV, ParameterGrid, ParameterSampler, RandomizedSearchCV

from dbcare.sklearn.breakeven_search import BreakevenSearch


class BreakevenSearchCV(BreakevenSearch, GridSearchCV):
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
