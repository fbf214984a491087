"""Searches for a model of some data, and what a search costs and loses: fits, seconds, and loss of CV score."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_gaussian_quantiles,
    make_moons,
)
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - without it, the class cannot be imported
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

from benchmarks.parts.fold_scores import FOLDS, FORESTS, KERNELS, LOGISTIC, NEIGHBORS, SUPPORT_VECTORS, TREES, make_tree
from dbcare.sklearn import BreakevenSearchCV
from dbcare.sklearn.race import FitOutcome, FoldRace
from dbcare.studies.settings import order_blocks

DIGITS = 400  # samples of 1,797, to stay quick
AT_ONCE = 2  # searches; fits of one search are made one by one, so that their times can be compared
MIN_FOLDS = 3

Floats = npt.NDArray[np.float64]
Loader = Callable[[], tuple[Any, Any]]
Grid = dict[str, list[Any]]


def load_some_digits() -> tuple[Any, Any]:
    """Return the first digits."""
    inputs, labels = load_digits(return_X_y=True)
    return inputs[:DIGITS], labels[:DIGITS]


REAL: dict[str, Loader] = {
    "iris": partial(load_iris, return_X_y=True),
    "wine": partial(load_wine, return_X_y=True),
    "cancer": partial(load_breast_cancer, return_X_y=True),
    "digits": load_some_digits,
    "diabetes": partial(load_diabetes, return_X_y=True),
}
SYNTHETIC: dict[str, Loader] = {
    "two classes": partial(make_classification, 300, n_informative=5, flip_y=0.05, random_state=1),
    "four classes": partial(make_classification, 500, n_informative=8, n_classes=4, class_sep=1.5, random_state=1),
    "moons": partial(make_moons, 400, noise=0.25, random_state=1),
    "circles": partial(make_circles, 200, noise=0.15, factor=0.5, random_state=1),
    "blobs": partial(make_blobs, 200, 8, centers=6, cluster_std=4.0, random_state=1),
    "shells": partial(make_gaussian_quantiles, n_samples=400, n_features=4, n_classes=3, random_state=1),
    "friedman1": partial(make_friedman1, 400, noise=2.0, random_state=1),
    "friedman2": partial(make_friedman2, 300, noise=200.0, random_state=1),
}


def list_mixed() -> list[Grid]:
    """Return candidates of four kinds."""
    return [
        {"model": [SVC()], "model__C": [0.3, 3.0, 30.0], "model__gamma": [0.003, 0.03, 0.3]},
        {"model": [KNeighborsClassifier()], "model__n_neighbors": [1, 3, 7, 15], "model__p": [1, 2]},
        {"model": [make_tree()], "model__max_depth": [2, 4, None], "model__min_samples_leaf": [1, 4, 16]},
        {"model": [LogisticRegression()], "model__C": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]},
    ]


make_forest = partial(RandomForestClassifier, n_estimators=10, random_state=1)
make_forest_of_numbers = partial(RandomForestRegressor, n_estimators=10, random_state=1)
make_kernel_ridge = partial(KernelRidge, kernel="rbf")

KINDS: dict[str, tuple[Callable[[], Any], Grid]] = {
    "support vectors": (SVC, SUPPORT_VECTORS),
    "neighbors": (KNeighborsClassifier, NEIGHBORS),
    "trees": (make_tree, TREES),
    "forests": (make_forest, FORESTS),
    "logistic": (LogisticRegression, LOGISTIC),
    "kernel ridge": (make_kernel_ridge, KERNELS),
    "neighbors of numbers": (KNeighborsRegressor, NEIGHBORS),
    "forests of numbers": (make_forest_of_numbers, FORESTS),
}
MIXED = "mixed"
OF_NUMBERS = ("kernel ridge", "neighbors of numbers", "forests of numbers")
SEARCHES: dict[str, tuple[str, str, str]] = {
    "iris": ("support vectors", "neighbors", MIXED),
    "wine": ("neighbors", "trees", "logistic"),
    "cancer": ("support vectors", "trees", MIXED),
    "digits": ("support vectors", "neighbors", "trees"),
    "diabetes": OF_NUMBERS,
    "two classes": ("support vectors", "forests", MIXED),
    "four classes": ("support vectors", "neighbors", "trees"),
    "moons": ("neighbors", "trees", MIXED),
    "circles": ("support vectors", "trees", "neighbors"),
    "blobs": ("neighbors", "logistic", MIXED),
    "shells": ("support vectors", "trees", "neighbors"),
    "friedman1": OF_NUMBERS,
    "friedman2": OF_NUMBERS,
}


@dataclass(frozen=True)
class ModelSearch:
    """A kind of model for a data set, and a seed for the folds."""

    data: str
    kind: str
    seed: int

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.data}, {self.kind}"

    def load(self) -> tuple[Any, Any]:
        """Return inputs and targets; numbers are standardized, as kernel ridge has no intercept."""
        inputs, targets = (REAL | SYNTHETIC)[self.data]()
        return inputs, scale(targets) if self.kind in OF_NUMBERS else targets

    def make_pipeline(self) -> Pipeline:
        """Return what is fitted."""
        model = SVC() if self.kind == MIXED else KINDS[self.kind][0]()
        return Pipeline([("scale", StandardScaler()), ("model", model)])

    def list_candidates(self) -> Any:
        """Return the grid, or several."""
        if self.kind == MIXED:
            return list_mixed()
        return {f"model__{name}": values for name, values in KINDS[self.kind][1].items()}

    def make_folds(self) -> Any:
        """Return a splitter, the same for every search of these data with this seed."""
        kind = KFold if self.kind in OF_NUMBERS else StratifiedKFold
        return kind(FOLDS, shuffle=True, random_state=self.seed)


def list_searches(data: Iterable[str], seeds: Iterable[int]) -> list[ModelSearch]:
    """Return three searches for each of these data sets and each seed."""
    return [ModelSearch(name, kind, seed) for seed in seeds for name in data for kind in SEARCHES[name]]


@dataclass(frozen=True)
class SearchTrial:
    """What a search cost, and what its choice loses.

    Parameters
    ----------
    search : ModelSearch
        Data, candidates and folds.
    fits : float
        Fits, refit not included.
    seconds : float
        Time of fits and scores.
    loss : float
        The best mean score over all folds minus that of the chosen candidate.
    """

    search: ModelSearch
    fits: float
    seconds: float
    loss: float


@dataclass(frozen=True)
class HalvingSetting:
    """Which share of the candidates goes on, and with which share of the samples the first iteration is made."""

    factor: int
    first: float | str

    def __str__(self) -> str:
        return f"factor {self.factor}, {self.first if isinstance(self.first, str) else format(self.first, '.2g')}"


@dataclass(frozen=True)
class FullTable:
    """The results of GridSearchCV: what any other choice is measured by."""

    search: ModelSearch
    candidates: list[dict[str, Any]]
    scores: Floats  # by fold and candidate
    seconds: float

    def loss_of(self, chosen: int) -> float:
        """Return the loss of CV score of a candidate."""
        means = self.scores.mean(axis=0)
        return float(means.max() - means[chosen])


def fit_everything(search: ModelSearch) -> FullTable:
    """Fit all candidates on all folds."""
    results = run_search(GridSearchCV, search).cv_results_
    scores = np.stack([results[f"split{fold}_test_score"] for fold in range(FOLDS)])
    return FullTable(search, results["params"], scores, sum_seconds(results, FOLDS))


def fit_by_value(table: FullTable, value: float) -> SearchTrial:
    """Let BreakevenSearchCV search."""
    found = run_search(
        BreakevenSearchCV, table.search, value=value, min_folds=MIN_FOLDS, random_state=table.search.seed
    )
    seconds = sum_seconds(found.cv_results_, found.cv_results_["n_folds"])
    assert found.n_fits_ == race_over(table, value, found._draw_seed()).fits  # scores from a table decide alike
    return SearchTrial(table.search, found.n_fits_, seconds, table.loss_of(found.best_index_))


def fit_by_halving(table: FullTable, setting: HalvingSetting) -> SearchTrial:
    """Let HalvingGridSearchCV search, with samples as its resource."""
    samples, first = len(table.search.load()[0]), setting.first
    found = run_search(
        HalvingGridSearchCV,
        table.search,
        factor=setting.factor,
        min_resources=first if isinstance(first, str) else round(first * samples),
        random_state=table.search.seed,
        return_train_score=False,
    )
    seconds, fits = sum_seconds(found.cv_results_, FOLDS), FOLDS * len(found.cv_results_["params"])
    return SearchTrial(table.search, fits, seconds, table.loss_of(find_candidate(table, found.best_params_)))


def find_candidate(table: FullTable, parameters: dict[str, Any]) -> int:
    """Return the number of a candidate; models are other objects after a search, so they are compared by their text."""
    return [repr(each) for each in table.candidates].index(repr(parameters))


def run_search(make: Callable[..., Any], search: ModelSearch, **parameters: Any) -> Any:
    """Run one of scikit-learn's searches, or ours, and return it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few samples, some candidates cannot be fitted
        found = make(
            search.make_pipeline(), search.list_candidates(), cv=search.make_folds(), refit=False, **parameters
        )
        return found.fit(*search.load())


def sum_seconds(results: dict[str, Any], folds: Any) -> float:
    """Return the time of all fits and scores."""
    return float(np.sum((results["mean_fit_time"] + results["mean_score_time"]) * folds))


def race_over(table: FullTable, value: float, seed: int) -> SearchTrial:
    """Let BreakevenSearchCV's own race search in a table, where fits cost no time."""
    folds, candidates = table.scores.shape
    race = FoldRace(candidates, order_blocks(folds, seed), min_folds=MIN_FOLDS, price=1.0, value=value, seed=seed)
    while batch := race.next_batch():
        race.tell([FitOutcome(candidate, fold, table.scores[fold, candidate], 1.0) for candidate, fold in batch])
    assert race.leader is not None  # all have scores
    return SearchTrial(table.search, race.fits, 0.0, table.loss_of(race.leader))


def run_all(function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
    """Call a function for each of these arguments, several at once."""
    return list(Parallel(AT_ONCE)(delayed(function)(*each) for each in zip(*arguments, strict=True)))
