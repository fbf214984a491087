"""Searches for scikit-learn that stop at break-even.

search       `BreakevenSearchCV` over a grid, `BreakevenRandomizedSearchCV` over candidates drawn at random
fit          what both do: batches of fits until the plan is done, then the table and the refit
race         the plan: candidates race over folds, and the unlikely ones drop out
fit_runner   runs the fits of a batch, by the same function as scikit-learn's own searches
record       keeps fits in a study, so that a search can be resumed and watched
results      `cv_results_` of a race
figure       the picture of a search, with short labels; requires matplotlib
"""

from dbcare.base.extras import say_how_to_install

try:
    import sklearn
except ImportError as failure:
    raise ImportError(f"dbcare.sklearn requires scikit-learn: {say_how_to_install('sklearn')}.") from failure
if tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 9):
    raise ImportError(
        f"dbcare.sklearn requires scikit-learn 1.9 or later, and {sklearn.__version__} is installed: "
        f"{say_how_to_install('sklearn')}."
    )

from dbcare.sklearn.search import BreakevenRandomizedSearchCV, BreakevenSearchCV

__all__ = ["BreakevenRandomizedSearchCV", "BreakevenSearchCV"]
