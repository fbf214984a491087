"""A plugin for pytest that lets scikit-learn's own tests of its searches test ours, with an infinite value of a score.

The test module imports the searches from `sklearn.model_selection`, also for decorators, so they are replaced there
before it is imported. Ours get the names and the signatures of those that they stand for.
"""

import math
from inspect import signature
from typing import Any

import sklearn.model_selection

from dbcare.sklearn import BreakevenRandomizedSearchCV, BreakevenSearchCV


class GridSearchCV(BreakevenSearchCV):
    """Ours in place of scikit-learn's."""

    def __init__(self, estimator: Any, param_grid: Any, *, value: float = math.inf, **options: Any) -> None:
        super().__init__(estimator, param_grid, value=value, **options)


class RandomizedSearchCV(BreakevenRandomizedSearchCV):
    """Ours in place of scikit-learn's."""

    def __init__(self, estimator: Any, param_distributions: Any, *, value: float = math.inf, **options: Any) -> None:
        super().__init__(estimator, param_distributions, value=value, **options)


for ours in (GridSearchCV, RandomizedSearchCV):
    # Parameters of an estimator are those that its signature names.
    listed = signature(ours.__mro__[1].__init__)
    changed = [each.replace(default=math.inf) if each.name == "value" else each for each in listed.parameters.values()]
    vars(ours.__init__)["__signature__"] = listed.replace(parameters=changed)
    setattr(sklearn.model_selection, ours.__name__, ours)
