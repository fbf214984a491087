"""Cross-validation scores of many candidates on the data sets that come with scikit-learn: folds by candidates."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

FOLDS = 10
SUPPORT_VECTORS = {"C": [0.1, 0.3, 1.0, 3.0, 10.0, 30.0], "gamma": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]}
NEIGHBORS = {"n_neighbors": [1, 2, 3, 5, 7, 9, 12, 15, 20], "weights": ["uniform", "distance"], "p": [1, 2]}
TREES = {"max_depth": [2, 3, 4, 6, 8, None], "min_samples_leaf": [1, 2, 4, 8, 16, 32]}
FORESTS = {"max_depth": [2, 4, 8], "max_features": [0.2, 0.5, 1.0], "min_samples_leaf": [1, 2, 4, 8]}
LOGISTIC = {"C": np.geomspace(1e-4, 1e3, 30).tolist()}
KERNELS = {"alpha": [0.01, 0.1, 0.3, 1.0, 3.0], "gamma": [1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1]}


make_tree = partial(DecisionTreeClassifier, random_state=1)
make_forest = partial(RandomForestClassifier, n_estimators=20, random_state=1)

# Data, a class of estimators, and its parameters.
SCORES: dict[str, tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]] = {
    "digits, support vectors": (load_digits, SVC, SUPPORT_VECTORS),
    "digits, neighbors": (load_digits, KNeighborsClassifier, NEIGHBORS),
    "digits, trees": (load_digits, make_tree, TREES),
    "cancer, support vectors": (load_breast_cancer, SVC, SUPPORT_VECTORS),
    "cancer, trees": (load_breast_cancer, make_tree, TREES),
    "cancer, logistic": (load_breast_cancer, LogisticRegression, LOGISTIC),
    "wine, neighbors": (load_wine, KNeighborsClassifier, NEIGHBORS),
    "wine, forests": (load_wine, make_forest, FORESTS),
    "diabetes, kernel ridge": (load_diabetes, KernelRidge, KERNELS),
    "diabetes, neighbors": (load_diabetes, KNeighborsRegressor, NEIGHBORS),
}


def make_scores(name: str) -> npt.NDArray[np.float64]:
    """Return the scores of a matrix by fold and candidate: accuracy, or R^2 for numbers."""
    load, estimator, grid = SCORES[name]
    inputs, labels = load(return_X_y=True)
    is_regression = load is load_diabetes
    kind = KFold if is_regression else StratifiedKFold
    folds = kind(FOLDS, shuffle=True, random_state=1)
    candidates = [make_pipeline(StandardScaler(), estimator(**parameters)) for parameters in ParameterGrid(grid)]
    return np.stack([cross_val_score(candidate, inputs, labels, cv=folds) for candidate in candidates], axis=1)
