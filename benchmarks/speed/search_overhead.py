"""Measure how much time a search takes outside its fits.

The figure is for a search in memory; those in SQLite and by GridSearchCV are saved with it.
"""

import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold

from benchmarks.parts.bars import Bars
from dbcare.sklearn import BreakevenSearchCV

CANDIDATES, FOLDS = 30, 10
PAUSE = 0.01  # seconds that a fit takes
VALUE = 1e15  # finite, so that the candidates race, and so high that none is given up
BAR = 0.1


class SlowEstimator(BaseEstimator):
    """An estimator whose fit takes PAUSE; candidates are equally good."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def fit(self, inputs: Any, targets: Any = None) -> "SlowEstimator":
        """Sleep."""
        time.sleep(PAUSE)
        return self

    def score(self, inputs: Any, targets: Any = None) -> float:
        """Return a random number that follows from candidate and fold."""
        return random.Random(f"{self.number} {inputs[0, 0]}").random()


def measure_share(make: Any, **parameters: Any) -> float:
    """Return the share of the time of a search that is not spent in fits and scores."""
    search = make(
        SlowEstimator(), {"number": list(range(CANDIDATES))}, cv=KFold(FOLDS), refit=False, n_jobs=1, **parameters
    )
    inputs = np.arange(100.0).reshape(-1, 1)
    began = time.perf_counter()
    search.fit(inputs)
    wall = time.perf_counter() - began
    results = search.cv_results_
    assert not np.isnan([results[f"split{fold}_test_score"] for fold in range(FOLDS)]).any()  # all fits were made
    fits = FOLDS * float(np.sum(results["mean_fit_time"] + results["mean_score_time"]))
    return (wall - fits) / wall


def main() -> None:
    bars = Bars(__doc__)
    ours = {"value": VALUE, "random_state": 1}
    measure_share(BreakevenSearchCV, **ours)  # loads what is needed
    share = measure_share(BreakevenSearchCV, **ours)
    with tempfile.TemporaryDirectory() as folder:
        stored = measure_share(BreakevenSearchCV, **ours, storage=f"sqlite:///{Path(folder)}/fits.db")
    details = {"SQLite": stored, "GridSearchCV": measure_share(GridSearchCV)}
    bars.report("time outside fits over all time, 300 fits of 10 ms", share, BAR, **details)
    bars.save()
