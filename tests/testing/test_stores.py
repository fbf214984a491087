"""A store that is neither in memory nor SQL passes the suite, and works wherever a storage address does."""

from typing import Any

import pytest

import dbcare
from dbcare.errors import InvalidValueError, StudyMismatchError, StudyNotFoundError
from dbcare.studies.stores.base import Store
from dbcare.studies.stores.memory import MemoryStore
from dbcare.testing import StoreSuite
from tests.helpers.dict_store import DictStore


class TestDictStore(StoreSuite):
    def make(self) -> Store:
        self.first = DictStore()
        return self.first

    def open_again(self) -> Store:
        return self.first.share()


def test_studies_in_a_custom_store() -> None:
    store = DictStore()
    study = dbcare.create_study("ads", arms=["A", "B"], cost=0.01, sigma=1.0, storage=store)
    trial = study.ask()
    assert trial is not None
    study.tell(trial, 0.25)
    dbcare.create_study("shop", arms=["A", "B"], cost=0.01, sigma=1.0, storage=store)
    assert dbcare.list_studies(store) == ["ads", "shop"]
    assert dbcare.list_studies(DictStore()) == []
    loaded = dbcare.load_study("ads", store.share())
    assert loaded.settings == study.settings
    assert loaded.recommendation() == study.recommendation()
    assert [row.reward for row in loaded.trials()] == [0.25]
    assert loaded.check() == 2
    dbcare.delete_study("ads", store)
    assert dbcare.list_studies(store) == ["shop"]
    with pytest.raises(StudyNotFoundError, match="Study 'ads' not found"):
        dbcare.load_study("ads", store)


def test_a_study_that_exists_in_a_custom_store_is_loaded_on_request() -> None:
    store = DictStore()
    options: dict[str, Any] = {"arms": ["A", "B"], "sigma": 1.0, "storage": store, "load_if_exists": True}
    study = dbcare.create_study("ads", cost=0.01, **options)
    study.add([("A", 1.0)])
    assert dbcare.create_study("ads", cost=0.01, **options).status().counted == 1
    with pytest.raises(StudyMismatchError, match=r"cost: 0\.02 given, 0\.01 stored"):
        dbcare.create_study("ads", cost=0.02, **options)


def test_a_custom_store_gives_the_same_decisions_as_memory() -> None:
    """A long study, with summaries, in both: the same trials in the same order, and the same end."""
    means, reports = {"A": 0.3, "B": 0.29, "C": 0.0}, []
    for store in (DictStore(), MemoryStore()):
        study = dbcare.create_study("same decisions", ["A", "B", "C"], cost=1e-6, sigma=0.5, seed=3, storage=store)
        while not study.should_stop():
            study.tell_many((trial, means[trial.arm] + trial.id % 7 / 7) for trial in study.ask(20))
        study.check()
        reports.append(([row.arm for row in study.trials()], study.recommendation(), study.explain()))
        with store.session("same decisions", write=False) as session:
            assert session.summary() is not None
    assert reports[0] == reports[1]


def test_a_storage_must_be_a_store_or_an_address() -> None:
    with pytest.raises(InvalidValueError, match="`storage` must be a Store or an address such as sqlite:///"):
        dbcare.list_studies({})  # type: ignore[arg-type]  # wrong on purpose
