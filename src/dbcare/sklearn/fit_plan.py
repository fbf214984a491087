"""Which folds of which candidates a search fits: batches of fits, each decided by what the earlier ones scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

Place = tuple[int, int]  # a candidate and a fold


@dataclass(frozen=True)
class FitOutcome:
    """What became of a candidate on a fold.

    Parameters
    ----------
    candidate, fold : int
        Which one was fitted, and where.
    score : float
        Its test score; larger is better. NaN if it has none, which rules a candidate out.
    price : float
        What the fit cost.
    """

    candidate: int
    fold: int
    score: float
    price: float


class FitPlan(ABC):
    """What to fit next.

    A batch depends on the outcomes of earlier batches alone: neither on the order in which its own fits finish, nor on
    how many are run at once.

    Attributes
    ----------
    fits : int
        Fits so far.
    spent : float
        What they cost.
    """

    def __init__(self) -> None:
        self.fits = 0
        self.spent = 0.0

    @abstractmethod
    def next_batch(self) -> list[Place]:
        """Return what to fit next; nothing once the search is over."""

    def tell(self, outcomes: Sequence[FitOutcome]) -> None:
        """Take the outcomes of a whole batch, in its order."""
        self.fits += len(outcomes)
        self.spent += sum(outcome.price for outcome in outcomes)

    @abstractmethod
    def describe_start(self) -> str:
        """Return what is going to be fitted, in a line."""

    @abstractmethod
    def why_stopped(self, labels: Sequence[str]) -> str:
        """Return why the search is over, in a sentence, given what candidates are called."""


class FitEverything(FitPlan):
    """Every candidate on every fold, as GridSearchCV does."""

    def __init__(self, candidates: int, folds: int) -> None:
        super().__init__()
        self.candidates, self.folds = candidates, folds

    def next_batch(self) -> list[Place]:
        if self.fits > 0:
            return []
        return [(candidate, fold) for candidate in range(self.candidates) for fold in range(self.folds)]

    def describe_start(self) -> str:
        return (
            f"Fitting {self.folds} folds for each of {self.candidates} candidates, "
            f"totalling {self.candidates * self.folds} fits"
        )

    def why_stopped(self, labels: Sequence[str]) -> str:
        return "All folds of all candidates were fitted."
