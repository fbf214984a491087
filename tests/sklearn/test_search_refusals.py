"""What a search refuses, in the words of scikit-learn where it is a parameter."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.utils._param_validation import InvalidParameterError

from dbcare.errors import StudyMismatchError
from dbcare.sklearn import BreakevenRandomizedSearchCV, BreakevenSearchCV
from tests.helpers.fold_searches import search_table
from tests.helpers.score_table import TableEstimator, draw_table, make_samples, make_task

TABLE = draw_table(4, 6, 1)


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/fits.db"


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        *(("value", given, "a float in the range (0.0, inf]") for given in (-1.0, 0, math.nan, "much", None)),
        *(("price", given, "a float in the range (0.0, inf)") for given in (-1.0, 0, math.nan, math.inf, "much")),
        ("per", "hour", "a str among"),
        *(("min_folds", given, "an int in the range [2, inf)") for given in (1, -3, 2.5)),
        ("storage", 3, "an instance of 'str' or None"),
        ("study_name", None, "an instance of 'str'"),
        ("random_state", -1, "an int in the range [0, 4294967295]"),
    ],
)
@pytest.mark.parametrize("finite", [True, False])
def test_parameters_are_validated_as_by_scikit_learn(name: str, given: Any, allowed: str, finite: bool) -> None:
    options = {"value": 10.0 if finite else math.inf} | {name: given}
    with pytest.raises(InvalidParameterError) as caught:
        search_table(TABLE, **options)
    message = str(caught.value)
    assert message.startswith(f"The '{name}' parameter of BreakevenSearchCV must be {allowed}")
    assert message.endswith(f"Got {given!r} instead.")


def test_a_value_is_required() -> None:
    kinds: tuple[Any, ...] = BreakevenSearchCV, BreakevenRandomizedSearchCV
    for kind in kinds:
        with pytest.raises(TypeError, match="'value'"):
            kind(Ridge(), {})


def test_min_folds_must_be_there_if_the_value_is_finite() -> None:
    with pytest.raises(ValueError, match=re.escape("min_folds=7 greater than the number of splits: n_splits=6")):
        search_table(TABLE, value=10.0, min_folds=7)
    assert search_table(TABLE, value=10.0, min_folds=6).n_fits_ == 24
    assert search_table(TABLE, value=math.inf, min_folds=7).n_fits_ == 24


@pytest.mark.parametrize("value", [10.0, math.inf])
def test_no_candidates_and_no_folds_are_errors(value: float) -> None:
    with pytest.raises(ValueError, match="No fits were performed"):
        search_table(TABLE, value=value, cv=iter([]))
    with pytest.raises(ValueError, match="need to be a non-empty sequence"):
        search_table(TABLE, value=value, param_grid={"candidate": []})


@pytest.mark.parametrize(("splitter", "options"), [(KFold, {"shuffle": True}), (ShuffleSplit, {})])
def test_storage_refuses_folds_that_cannot_be_replayed(splitter: Any, options: dict[str, Any], storage: str) -> None:
    with pytest.raises(ValueError, match=r"must yield consistent folds .* Set its random_state to an int"):
        search_table(TABLE, value=10.0, cv=splitter(4, **options), storage=storage)
    assert search_table(TABLE, value=10.0, cv=splitter(4, **options, random_state=1), storage=storage).n_fits_ == 12


@pytest.mark.parametrize("state", [None, np.random.RandomState(0)], ids=["none", "generator"])
def test_storage_refuses_candidates_that_cannot_be_replayed(state: Any, storage: str) -> None:
    task = make_task(TABLE)
    search = BreakevenRandomizedSearchCV(
        task["estimator"], task["param_grid"], n_iter=3, value=10.0, cv=task["cv"], storage=storage, random_state=state
    )
    with pytest.raises(ValueError, match=r"'random_state' parameter .* must be an int when storage is set"):
        search.fit(make_samples(TABLE))


def test_storage_refuses_a_single_candidate(storage: str) -> None:
    for value in (10.0, math.inf):
        with pytest.raises(ValueError, match="Cannot have storage with a single candidate"):
            search_table(TABLE[:1], value=value, storage=storage)


def test_storage_refuses_what_cannot_be_pickled(storage: str) -> None:
    with pytest.raises(ValueError, match=r"`storage` requires .* that can be pickled"):
        search_table(TABLE, value=10.0, storage=storage, scoring=lambda *_: 1.0)
    with pytest.raises(ValueError, match=r"`storage` requires .* that can be pickled"):
        search_table(TABLE, value=10.0, storage=storage, estimator_options={"seconds": lambda: 1.0})


class OtherEstimator(TableEstimator):
    """Scores as the other does."""


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"estimator": OtherEstimator(TABLE)}, "or other options differ"),
        ({"estimator": TableEstimator(TABLE + 1.0)}, "or other options differ"),
        ({"param_grid": {"candidate": [0, 1, 2]}}, "0 candidates are new, and 1 are gone, such as candidate=3"),
        ({"cv": KFold(5)}, "there are 5 folds, and it has 6"),
        ({"cv": [(np.arange(1, 6), [0])] * 6}, "or other options differ"),
        ({"scoring": "accuracy"}, "or other options differ"),
        ({"error_score": 0.0}, "or other options differ"),
        ({"return_train_score": True}, "or other options differ"),
        ({"value": 20.0}, "another `price` or `value`"),
        ({"price": 2.0}, "another `price` or `value`"),
        ({"random_state": 9}, "another `random_state`"),
        ({"min_folds": 4}, "or other options differ"),
        ({"refit": "score"}, "or other options differ"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else None,
)
def test_another_search_of_the_same_name_is_refused(changed: dict[str, Any], named: str, storage: str) -> None:
    search_table(TABLE, value=10.0, storage=storage)
    with pytest.raises(StudyMismatchError, match=named) as caught:
        search_table(TABLE, **{"value": 10.0, "storage": storage, **changed})
    assert "Make the same call again to resume that search, or choose another `study_name`." in str(caught.value)


def test_other_samples_are_refused_and_another_name_is_another_search(storage: str) -> None:
    task = make_task(TABLE) | {"value": 10.0, "storage": storage, "refit": False, "random_state": 0}
    BreakevenSearchCV(**task).fit(make_samples(TABLE))
    samples = np.column_stack([make_samples(TABLE), np.ones(6)])
    with pytest.raises(StudyMismatchError, match="or other options differ"):
        BreakevenSearchCV(**task).fit(samples)
    assert BreakevenSearchCV(**task, study_name="other").fit(samples).n_fits_ == 12
