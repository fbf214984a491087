"""What both searches do: fit candidates on folds until break-even, then refit the best."""

from __future__ import annotations

import math
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._split import _yields_constant_splits
from sklearn.model_selection._validation import _insert_error_scores, _warn_or_raise_about_fit_failures
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import _check_method_params, check_is_fitted, indexable

from dbcare.sklearn.figure import label_candidates
from dbcare.sklearn.fit_runner import FitResult, FitRunner, choose_metric, read_score
from dbcare.sklearn.race import FitEverything, FitOutcome, FitPlan, FoldRace, Place
from dbcare.sklearn.record import MAX_SEED, FitRecord, make_fingerprint
from dbcare.sklearn.results import describe_race, fill_gaps
from dbcare.studies.settings import order_blocks

Splits = Sequence[tuple[Any, Any]]


class BreakevenSearch(BaseSearchCV):
    """A search whose plan of fits follows from what a fit costs and what a better score is worth."""

    _own_constraints: ClassVar[dict[str, list[Any]]] = {
        "value": [Interval(Real, 0, None, closed="right")],
        "price": [Interval(Real, 0, None, closed="neither")],
        "per": [StrOptions({"fit", "second"})],
        "min_folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "storage": [str, None],
        "study_name": [str],
    }

    @abstractmethod
    def _list_candidates(self) -> list[dict[str, Any]]:
        """Return the candidates."""

    @_fit_context(prefer_skip_nested_validation=False)  # nobody has validated the estimator's parameters
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit candidates on folds until break-even, then refit the best one on all data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            Training data; with a precomputed kernel or distance, of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets; None for unsupervised learning.
        **params : dict
            Parameters for the `fit` method of the estimator, the scorer, and the splitter, as in GridSearchCV.

        Returns
        -------
        self : object
            The fitted search.
        """
        for name in ("best_index_", "best_score_", "best_params_", "best_estimator_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        scorers, refit_metric = self._get_scorers()
        X, y = indexable(X, y)
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        weights = params.get("sample_weight")
        shown = {"X": X, "y": y, "metadata": None if weights is None else {"sample_weight": weights}}
        root = self._init_callback_context(max_subtasks=1 + (self.refit is not False))
        root.call_on_fit_task_begin(estimator=self, **shown)

        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = splitter.get_n_splits(X, y, **routed.splitter.split)
        candidates = self._list_candidates()
        context = root.subcontext(
            task_name="search", max_subtasks=len(candidates) * self.n_splits_, sequential_subtasks=False
        ).call_on_fit_task_begin(estimator=self)
        splits = list(splitter.split(X, y, **routed.splitter.split))
        self._check_sizes(len(candidates), len(splits))

        labels = label_candidates(candidates)
        record = None
        if self.storage is not None:
            self._check_replay(splitter)
            data = np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X  # whose layout does not matter
            identity = candidates, splits, data, y, routed.estimator.fit, routed.scorer.score
            record = self._open_record(labels, identity)
        plan = self._make_plan(len(candidates), splits, record)
        estimator = clone(self.estimator)
        with Parallel(
            n_jobs=self.n_jobs,
            pre_dispatch=self.pre_dispatch,
            return_as="list" if record is None else "generator_unordered",  # which not every backend of joblib has
            batch_size="auto" if record is None else 1,  # so that a kill loses no fit that waits for its batch
        ) as parallel:
            arguments = {
                "X": X,
                "y": y,
                "scorer": scorers,
                "fit_params": routed.estimator.fit,
                "score_params": routed.scorer.score,
                "return_train_score": self.return_train_score,
                "error_score": self.error_score,
                "verbose": self.verbose,
            }
            runner = FitRunner(self, parallel, estimator, candidates, splits, arguments, context)
            fitted = self._fit_batches(plan, runner, record, labels)
        table = self._make_table(candidates, plan, fitted)
        context.call_on_fit_task_end(estimator=self)

        self.multimetric_ = isinstance(next(iter(fitted.values()))["test_scores"], dict)
        if self.multimetric_ and callable(self.scoring):
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, refit_metric, table)
            if not callable(self.refit):
                self.best_score_ = table[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = table["params"][self.best_index_]
        self._describe_end(plan, labels, table)
        if record is not None:
            record.finish(self.why_stopped_)
        if self.refit:
            self.best_estimator_ = clone(estimator).set_params(**clone(self.best_params_, safe=False))
            self._refit_best(root.subcontext(task_name="refit-with-best-params"), shown, routed.estimator.fit)
        self.scorer_ = scorers._scorers if isinstance(scorers, _MultimetricScorer) else scorers
        self.cv_results_ = table
        root.call_on_fit_task_end(estimator=self, **shown)
        return self

    def _check_sizes(self, candidates: int, splits: int) -> None:
        if splits != self.n_splits_:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. "
                f"Expected {self.n_splits_} splits, got {splits}"
            )
        if candidates * splits == 0:
            raise ValueError("No fits were performed. Was the CV iterator empty? Were there no candidates?")
        if self.storage is not None and candidates == 1:
            raise ValueError(
                "Cannot have storage with a single candidate, as a study compares several. Set storage=None."
            )
        if math.isfinite(self.value) and splits < self.min_folds:
            raise ValueError(
                f"Cannot have min_folds={self.min_folds} greater than the number of splits: n_splits={splits}. "
                "Use more splits, or lower min_folds."
            )

    def _check_replay(self, splitter: Any) -> None:
        """Refuse what would be different when the search is resumed."""
        if not _yields_constant_splits(splitter):
            raise ValueError(
                "The cv parameter must yield consistent folds across calls to split() when storage is set. "
                f"Set its random_state to an int, or set shuffle=False. Got {splitter!r} instead."
            )

    def _open_record(self, labels: Sequence[str], identity: Any) -> FitRecord:
        options = self.scoring, self.refit if isinstance(self.refit, str) else None, self.error_score, self.per
        races = math.isfinite(self.value)
        parts = clone(self.estimator), options, self.return_train_score, self.min_folds if races else None, identity
        return FitRecord(
            self.storage,
            self.study_name,
            labels=labels,
            folds=self.n_splits_,
            price=float(self.price),
            value=float(self.value),
            currency=f"{self.per}s" if self.price == 1.0 else "units",
            fingerprint=make_fingerprint(parts),
            seed=self._draw_seed(),
            keep_seed=isinstance(self.random_state, Integral),
        )

    def _make_plan(self, candidates: int, splits: Splits, record: FitRecord | None) -> FitPlan:
        if math.isinf(self.value):
            return FitEverything(candidates, len(splits))
        seed = self._draw_seed() if record is None else record.seed
        return FoldRace(
            candidates,
            range(len(splits)) if follow_time(splits) else order_blocks(len(splits), seed),
            min_folds=self.min_folds,
            price=float(self.price),
            value=float(self.value),
            seed=seed,
        )

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(MAX_SEED))

    def _fit_batches(
        self, plan: FitPlan, runner: FitRunner, record: FitRecord | None, labels: Sequence[str]
    ) -> dict[Place, FitResult]:
        """Fit batch after batch until the plan is done; what a record has is not fitted again."""
        stored = {} if record is None else record.fits
        fitted: dict[Place, FitResult] = {}
        if self.verbose > 0:
            print(plan.describe_start())
            if stored:
                print(f"[Breakeven] {len(stored)} fits were read from storage")
        while batch := plan.next_batch():
            fitted |= {place: stored[place] for place in batch if place in stored}
            for place, result in runner.run([place for place in batch if place not in fitted]):
                fitted[place] = result
                if record is not None:
                    score, price = read_score(result, self.refit), self._price_of(result)
                    fitted[place] = record.add(place, result, score, price)
            self._check_metrics(fitted[place] for place in batch)
            plan.tell(
                [
                    FitOutcome(*place, read_score(fitted[place], self.refit), self._price_of(fitted[place]))
                    for place in batch
                ]
            )
            if self.verbose > 0 and isinstance(plan, FoldRace):
                print(plan.describe_standing(labels))
        return fitted

    def _price_of(self, result: FitResult) -> float:
        units = 1.0 if self.per == "fit" else result["fit_time"] + result["score_time"]
        return float(self.price * units)

    def _check_metrics(self, results: Iterable[FitResult]) -> None:
        """Check `refit` against the metrics of a scorer that is a function, which are known once it has been called."""
        if callable(self.scoring):
            scores = next((each["test_scores"] for each in results if isinstance(each["test_scores"], dict)), None)
            if scores is not None:
                self._check_refit_for_multimetric(scores)

    def _make_table(
        self, candidates: list[dict[str, Any]], plan: FitPlan, fitted: Mapping[Place, FitResult]
    ) -> dict[str, Any]:
        """Return `cv_results_`."""
        places = list(product(range(len(candidates)), range(self.n_splits_)))
        made = [fitted[place] for place in places if place in fitted]
        _warn_or_raise_about_fit_failures(made, self.error_score)
        if callable(self.scoring):
            _insert_error_scores(made, self.error_score)
        if not isinstance(plan, FoldRace):
            return dict(self._format_results(candidates, self.n_splits_, made))
        results = fill_gaps(fitted, places)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "One or more of the .* scores are non-finite")  # where folds are missing
            table = self._format_results(candidates, self.n_splits_, results)
        metrics = [name.removeprefix("mean_test_") for name in table if name.startswith("mean_test_")]
        return describe_race(table, results, plan, choose_metric(metrics, self.refit))

    def _refit_best(self, context: Any, shown: Mapping[str, Any], params: Mapping[str, Any]) -> None:
        """Fit the best candidate on all data."""
        with context.propagate_callback_context(self.best_estimator_):
            context.call_on_fit_task_begin(estimator=self, **shown)
            start = time.time()
            targets = () if shown["y"] is None else (shown["y"],)
            self.best_estimator_.fit(shown["X"], *targets, **params)
            self.refit_time_ = time.time() - start
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        context.call_on_fit_task_end(estimator=self, **shown)

    def _describe_end(self, plan: FitPlan, labels: Sequence[str], table: Mapping[str, Any]) -> None:
        self.n_fits_ = plan.fits
        self.spent_ = plan.spent
        self.why_stopped_ = plan.why_stopped(labels)
        self.fold_order_ = np.array(plan.order if isinstance(plan, FoldRace) else range(self.n_splits_))
        self.expected_loss_ = 0.0
        if isinstance(plan, FoldRace):
            chosen = getattr(self, "best_index_", plan.leader)
            self.expected_loss_ = math.nan if chosen is None else float(table["expected_loss"][chosen])
            if self.verbose > 0:
                print(f"[Breakeven] Stopped after {plan.fits} fits. {self.why_stopped_}")

    def plot(self, axes: Any = None) -> Any:
        """Draw which candidates were fitted on which folds, and how far behind the best one they are.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes; `axes.figure` is the figure.
        """
        from dbcare.sklearn.figure import draw_search  # noqa: PLC0415 - matplotlib is optional

        check_is_fitted(self)
        return draw_search(self, axes)


def follow_time(splits: Splits) -> bool:
    """Return whether every split tests on samples that come after all it trains on, as TimeSeriesSplit does."""
    return all(len(train) > 0 and len(test) > 0 and np.max(train) < np.min(test) for train, test in splits)
