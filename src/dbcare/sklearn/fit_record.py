"""Keeps the fits of a search in a study, so that a search that was killed goes on without fitting anything again.

The search decides by itself; decisions follow from the scores, and are the same when stored scores take the place of
fits. The study is for the record, and for whoever wants to watch: its arms are the candidates, its blocks the folds.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from pickle import PicklingError
from typing import Any

import joblib

from dbcare.errors import StudyMismatchError, StudyNotFoundError
from dbcare.live.settings import Settings
from dbcare.live.stores.base import Store
from dbcare.live.stores.open import open_store
from dbcare.live.studies import create_in
from dbcare.live.trial import Observation
from dbcare.policies.registry import BLOCK_POLICY
from dbcare.sklearn.fit_plan import Place
from dbcare.sklearn.fit_runner import FitResult

MAX_SEED = 2**31 - 1
LONGEST_LABEL = 100
LONGEST_ERROR = 500  # characters of a traceback that are kept, the last ones
LONGEST_NOTE = 2_500  # what an index of PostgreSQL can hold

HOW_TO_RESUME = (
    "Pass the same estimator, candidates, data, splits and options to resume that search, or another `study_name`."
)


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
    fingerprint : str
        What tells this search from others.
    seed : int or None
        Random seed; None to take that of the stored study, or a random one.
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
        fingerprint: str,
        seed: int | None,
    ) -> None:
        store = open_store(storage, create=True)
        if seed is None:
            seed = _find_seed(store, name)
        endless = math.isinf(value)  # a study has no words for that: its amounts are in units of the price
        settings = Settings(
            arms=tuple(labels),
            cost=price if endless else price / value,
            value=None if endless else value,
            unit="",
            policy=BLOCK_POLICY,
            blocks=folds,
            only_these_blocks=True,
            not_before=folds * len(labels) + 1,  # the search says when to stop
            seed=seed,
            description=f"Search of {len(labels):,} candidates on {folds} folds with the fingerprint {fingerprint}",
        )
        try:
            self.study = create_in(store, name, settings, load_if_exists=True)
        except StudyMismatchError as mismatch:
            raise StudyMismatchError(f"{mismatch} {HOW_TO_RESUME}") from None
        self._check_same(settings)
        self._scale = 1.0 if endless else value
        self.fits: dict[Place, FitResult] = {}
        self._read()

    @property
    def seed(self) -> int:
        """The random seed of the search."""
        return self.study.settings.seed

    def _check_same(self, settings: Settings) -> None:
        stored = self.study.settings.description
        if stored != settings.description:
            raise StudyMismatchError(
                f"Study {self.study.name!r} is of another search: {settings.description} was given, {stored} is "
                f"stored. {HOW_TO_RESUME}"
            )

    def _read(self) -> None:
        notes = self.study.notes()
        candidates = {label: candidate for candidate, label in enumerate(self.study.settings.arms)}
        for row in self.study.trials():
            if row.trial in notes and row.block is not None:
                self.fits[candidates[row.arm], int(row.block) - 1] = json.loads(notes[row.trial])

    def add(self, place: Place, result: FitResult, score: float, price: float) -> None:
        """Store a fit; it is safe once this returns."""
        candidate, fold = place
        settings = self.study.settings
        has_score = math.isfinite(score)
        outcome = Observation(
            candidate,
            score if has_score else None,
            settings.block_names.find(fold + 1),
            price / self._scale,
            encode_result(result),
        )
        self.study.add_outcomes([outcome])
        self.fits[place] = result

    def finish(self, reason: str) -> None:
        """Stop the study, unless it has stopped."""
        if not self.study.should_stop():
            self.study.stop(reason)


def _find_seed(store: Store, name: str) -> int:
    """Return the seed of a stored study, or a new one."""
    try:
        return int(store.record(name).settings["seed"])
    except StudyNotFoundError:
        return secrets.randbelow(MAX_SEED)


def encode_result(result: FitResult) -> str:
    """Return a fit's result as the note under which it is stored."""
    error = result["fit_error"]
    note = json.dumps(result | {"fit_error": None if error is None else error[-LONGEST_ERROR:]}, default=float)
    if len(note) > LONGEST_NOTE:
        raise ValueError(
            f"The scores of a fit take {len(note):,} characters, and `storage` has room for {LONGEST_NOTE:,}; "
            "use fewer metrics."
        )
    return note


def label_candidates(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what people call the candidates: their parameters, as scikit-learn writes them, all different."""
    labels: list[str] = []
    taken: set[str] = set()
    for number, parameters in enumerate(candidates):
        text = ", ".join(f"{name}={parameters[name]}" for name in sorted(parameters)) or "no parameters"
        text = "".join(each if each.isprintable() else " " for each in text)
        label = text if len(text) <= LONGEST_LABEL else f"{text[:LONGEST_LABEL]}..."
        labels.append(label if label not in taken else f"{label} (candidate {number})")
        taken.add(labels[-1])
    return labels


def make_fingerprint(parts: Any) -> str:
    """Return a text that differs where parts of a search do, and is the same in every process."""
    try:
        return str(joblib.hash(parts))
    except (PicklingError, AttributeError, TypeError) as failure:
        raise ValueError(
            f"`storage` requires an estimator, candidates, scoring and data that can be pickled: {failure}."
        ) from failure
