"""An estimator whose scores stand in a table, by candidate and fold, and which notes every fit in a file.

Every sample is a fold of its own: its only feature is the number of the fold that tests on it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold


class TableEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Scores `table[candidate, fold]`; cannot be fitted where that is NaN. A fit takes `seconds[candidate]`."""

    def __init__(
        self, table: Any, candidate: int = 0, seconds: tuple[float, ...] | None = None, journal: str | None = None
    ) -> None:
        self.table = table
        self.candidate = candidate
        self.seconds = seconds
        self.journal = journal

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on every fold but one, or on all."""
        folds = self.table.shape[1]
        fold = next((number for number in range(folds) if number not in X[:, 0]), folds)
        if self.journal is not None:
            note(self.journal, f"{self.candidate} {fold}")
        if self.seconds is not None:
            time.sleep(self.seconds[self.candidate])
        if fold < folds and np.isnan(self.table[self.candidate, fold]):
            raise ValueError(f"Candidate {self.candidate} cannot be fitted without fold {fold}.")
        self.fitted_ = True
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the score on the fold of the first sample."""
        return float(self.table[self.candidate, int(X[0, 0])])


def note(journal: str, line: str) -> None:
    """Append a line, also when several processes do."""
    descriptor = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def read_fits(journal: Path) -> list[tuple[int, int]]:
    """Return the fits in a journal, as candidate and fold, except those on all data."""
    lines = [line.split() for line in journal.read_text().splitlines()] if journal.exists() else []
    return [(int(candidate), int(fold)) for candidate, fold in lines]


def make_task(table: Any, **options: Any) -> dict[str, Any]:
    """Return what a search of all candidates of a table takes: the estimator, the grid, and the splitter."""
    table = np.asarray(table, dtype=np.float64)
    return {
        "estimator": TableEstimator(table, **options),
        "param_grid": {"candidate": list(range(len(table)))},
        "cv": KFold(table.shape[1]),
    }


def make_samples(table: Any) -> Any:
    """Return a sample for each fold of a table."""
    return np.arange(np.shape(table)[1], dtype=np.float64).reshape(-1, 1)


def draw_table(candidates: int, folds: int, seed: int, *, spread: float = 0.05, noise: float = 0.01) -> Any:
    """Draw scores: a level for each candidate, a difficulty for each fold that all share, and noise."""
    generator = np.random.default_rng(seed)
    levels = 0.7 + spread * generator.standard_normal((candidates, 1))
    return levels + 0.1 * generator.standard_normal((1, folds)) + noise * generator.standard_normal((candidates, folds))
