"""Searches for a model of some data: a pipeline, its candidates, and folds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fold_scores import FOLDS, FORESTS, KERNELS, LOGISTIC, NEIGHBORS, SUPPORT_VECTORS, TREES, make_tree
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
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

DIGITS = 400  # samples of 1,797, to stay quick

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
