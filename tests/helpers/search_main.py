"""A search in a process of its own, which notes every fit in a file: `search_main.py STORAGE JOURNAL JOBS RESULT`.

It fits slowly, by two metrics and with train scores, and pickles its results.
"""

import math
import pickle
import sys
from pathlib import Path
from typing import Any

from dbcare.sklearn import BreakevenSearchCV
from tests.helpers.score_table import draw_table, make_samples, make_task

TABLE = draw_table(6, 10, 7, spread=0.01)
SECONDS = (0.04,) * 6
NAME = "killed"


def score_twice(estimator: Any, X: Any, y: Any = None) -> dict[str, float]:
    """Return the score of the table, and another that orders candidates the other way around."""
    score = estimator.score(X)
    return {"plain": score, "reversed": 1.0 / 3.0 - math.pi * score}


def make_search(storage: str | None, journal: str | None, jobs: int) -> Any:
    """Return the search."""
    task = make_task(TABLE, seconds=SECONDS, journal=journal)
    options: dict[str, Any] = {"scoring": score_twice, "refit": "plain", "return_train_score": True, "random_state": 3}
    return BreakevenSearchCV(**task, **options, value=1e5, n_jobs=jobs, storage=storage, study_name=NAME)


def main() -> None:
    storage, journal, jobs, result = sys.argv[1:]
    search = make_search(storage, journal, int(jobs)).fit(make_samples(TABLE))
    with Path(result).open("wb") as file:
        pickle.dump({name: getattr(search, name) for name in LISTED}, file)


LISTED = ("cv_results_", "best_params_", "n_fits_", "spent_", "expected_loss_", "why_stopped_")

if __name__ == "__main__":
    main()
