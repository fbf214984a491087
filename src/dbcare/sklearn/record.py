"""Keeps the fits of a search in a study, so that a search that was killed repeats only what was running.

The search decides by itself; decisions follow from the scores, and are the same when stored scores take the place of
fits. The study is for the record, and for whoever wants to watch: its arms are the candidates, its blocks the folds.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from pickle import PicklingError
from typing import Any

import joblib

from dbcare.base.checks import show
from dbcare.errors import InvalidValueError, StudyError, StudyMismatchError, StudyNotFoundError
from dbcare.policies.registry import BLOCK_POLICY
from dbcare.sklearn.fit_runner import FitResult
from dbcare.sklearn.race import Place
from dbcare.studies.api import create_in
from dbcare.studies.settings import Settings
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.open import open_store
from dbcare.studies.trial import Observation

MAX_SEED = 2**31 - 1
LONGEST_ERROR = 2_000  # characters


class FitRecord:
    """A stored study and the fits in it.

    Parameters
    ----------
    storage, name : str
        Where the study is, and its name; it is created if there is none.
    labels : sequence of str
        What the candidates are called.
    folds : int
        How many folds there are.
    price, value : float
        What a fit is expected to cost, and what a score higher by 1 is worth, which may be infinite.
    currency : str
        What amounts are counted in.
    fingerprint : str
        What tells this search from others.
    seed : int
        Random seed of a new study.
    keep_seed : bool
        Whether a stored study must have that seed, rather than its own.
    """

    def __init__(
        self,
        storage: str,
        name: str,
        *,
        labels: Sequence[str],
        folds: int,
        price: float,
        value: float,
        currency: str,
        fingerprint: str,
        seed: int,
        keep_seed: bool,
    ) -> None:
        store = open_store(storage, create=True)
        if not keep_seed:
            with contextlib.suppress(StudyNotFoundError):
                seed = int(store.record(name).settings["seed"])
        endless = math.isinf(value)  # a study has no words for that: its amounts are in units of the price
        settings = Settings(
            arms=tuple(labels),
            cost=price if endless else price / value,
            value=None if endless else value,
            currency=currency,
            policy=BLOCK_POLICY,
            blocks=folds,
            only_these_blocks=True,
            not_before=folds * len(labels) + 1,  # the search says when to stop
            seed=seed,
            description=f"Search of {len(labels):,} candidates on {folds} folds with the fingerprint {fingerprint}",
        )
        try:
            self.study = create_in(store, name, settings, load_if_exists=True)
        except StudyMismatchError:
            raise _refuse(name, describe_difference(settings, StoredStudy(store, name).settings)) from None
        if self.study.settings.description != settings.description:
            raise _refuse(name, "the data, the splits, the estimator or other options differ")
        self._scale = 1.0 if endless else value
        self.fits: dict[Place, FitResult] = {}
        self._read()

    @property
    def seed(self) -> int:
        """The random seed of the search."""
        return self.study.settings.seed

    def _read(self) -> None:
        notes = self.study.notes()
        candidates = {label: candidate for candidate, label in enumerate(self.study.settings.arms)}
        for row in self.study.trials():
            if row.trial in notes and row.block is not None:
                self.fits[candidates[row.arm], int(row.block) - 1] = json.loads(notes[row.trial])

    def add(self, place: Place, result: FitResult, score: float, price: float) -> FitResult:
        """Store a fit, which is safe once this returns; return it, or the one that another process stored before."""
        candidate, fold = place
        settings = self.study.settings
        has_score = math.isfinite(score)
        block = settings.block_names.find(fold + 1)
        outcome = Observation(
            candidate, score if has_score else None, block, price / self._scale, encode_result(result)
        )
        try:
            self.study.add_outcomes([outcome])
        except InvalidValueError:
            self._read()
            if place not in self.fits:
                raise StudyError(
                    f"Study {self.study.name!r} has a trial of {settings.arms[candidate]!r} on fold {fold} that no "
                    "search made. Choose another `study_name`, and ask the study of a search for no trials."
                ) from None
            return self.fits[place]
        if not has_score:
            with contextlib.suppress(InvalidValueError):  # it was ruled out before, or is the only one left
                self.study.retire(settings.arms[candidate], "a fit has no score")
        return result

    def finish(self, reason: str) -> None:
        """Stop the study, unless it has stopped."""
        if not self.study.should_stop():
            self.study.stop(reason.removesuffix("."))


def describe_difference(given: Settings, stored: Settings) -> str:
    """Return in a clause why a stored study is not that of a search."""
    new, gone = set(given.arms) - set(stored.arms), set(stored.arms) - set(given.arms)
    if new or gone:
        example = next(label for label in (*given.arms, *stored.arms) if label in new | gone)
        return f"{len(new):,} candidates are new, and {len(gone):,} are gone, such as {example}"
    if given.pool != stored.pool:
        return f"there are {given.pool} folds, and it has {stored.pool}"
    if given.seed != stored.seed:
        return "it has another `random_state`"
    if (given.cost, given.value) != (stored.cost, stored.value):
        return "it has another `price` or `value`"
    return "; ".join(given.differences(stored))


def _refuse(name: str, difference: str) -> StudyMismatchError:
    return StudyMismatchError(
        f"Study {name!r} is of another search: {difference}. Make the same call again to resume that search, or choose "
        "another `study_name`. Within an outer cross-validation, whose data differ, set storage=None."
    )


def encode_result(result: FitResult) -> str:
    """Return a fit's result as the note under which it is stored; of an error, its end says the most."""
    error = result["fit_error"]
    shortened = None if error is None else error[-LONGEST_ERROR:]
    return json.dumps(result | {"fit_error": shortened}, default=float)


def make_fingerprint(parts: Any) -> str:
    """Return a text that differs where parts of a search do, and is the same in every process."""
    try:
        return str(joblib.hash(parts))
    except (PicklingError, AttributeError, TypeError) as failure:
        raise ValueError(
            "`storage` requires an estimator, candidates, scoring and data that can be pickled, so define functions "
            f"and classes at the top of a module: {show(str(failure))}."
        ) from failure
