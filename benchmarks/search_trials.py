"""One search by GridSearchCV, BreakevenSearchCV and HalvingGridSearchCV: fits, seconds, and loss of CV score."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from model_searches import FOLDS, ModelSearch
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - without it, the class cannot be imported
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV

from dbcare.live.block_names import order_blocks
from dbcare.sklearn import BreakevenSearchCV
from dbcare.sklearn.fit_plan import FitOutcome
from dbcare.sklearn.fold_race import FoldRace

AT_ONCE = 2  # searches; fits of one search are made one by one, so that their times can be compared
MIN_FOLDS = 3

Floats = npt.NDArray[np.float64]


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
