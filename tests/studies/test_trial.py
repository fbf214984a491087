"""Outcomes that are added with prices and notes of their own, or without a reward."""

from pathlib import Path

import pytest

import dbcare
from dbcare.errors import InvalidValueError
from dbcare.policies.registry import BLOCK_POLICY
from dbcare.studies.stored import StoredStudy
from dbcare.studies.trial import Observation
from tests.helpers.memory_studies import create_memory_study

OUTCOMES = [
    Observation(0, 0.5, 1, 0.25, "first"),
    Observation(1, None, 1, 0.125, "failed"),
    Observation(1, 0.75, 2),
    Observation(0, 0.25, 2, None, "last"),
]
SETTINGS = {"arms": ("a", "b"), "cost": 0.01, "sigma": None, "policy": BLOCK_POLICY, "blocks": 4}


def test_outcomes_keep_rewards_prices_blocks_and_notes() -> None:
    study = create_memory_study(**SETTINGS)
    study.add_outcomes(OUTCOMES)
    rows = list(study.trials())
    first, second = study.settings.name_block(1), study.settings.name_block(2)
    assert first != second
    assert [(row.arm, row.block, row.status, row.reward) for row in rows] == [
        ("a", first, "told", 0.5),
        ("b", first, "failed", None),
        ("b", second, "told", 0.75),
        ("a", second, "told", 0.25),
    ]
    assert study.notes() == {1: "first", 2: "failed", 4: "last"}
    assert study.status().spent == pytest.approx(0.25 + 0.125 + 0.01 + 0.01)
    assert study.check() > 0


def test_notes_are_those_of_outcomes_alone_and_none_at_first() -> None:
    study = create_memory_study()
    assert study.notes() == {}
    (trial,) = study.ask(1, key="mine")  # stored as a note with the question
    study.tell(trial, 1.0)
    assert study.notes() == {}


def test_notes_are_read_by_another_process(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/notes.db"
    study = dbcare.create_study("notes", ["a", "b"], cost=0.01, policy=BLOCK_POLICY, blocks=4, storage=storage)
    assert isinstance(study, StoredStudy)
    study.add_outcomes(OUTCOMES)
    read = dbcare.load_study("notes", storage)
    assert isinstance(read, StoredStudy)
    assert read.notes() == study.notes() == {1: "first", 2: "failed", 4: "last"}


def test_an_outcome_of_the_same_arm_and_block_is_refused_with_all_that_came_with_it() -> None:
    study = create_memory_study(**SETTINGS)
    study.add_outcomes(OUTCOMES[:1])
    with pytest.raises(InvalidValueError, match="at most once in a block but got 'a' again"):
        study.add_outcomes([OUTCOMES[2], OUTCOMES[0]])
    assert [row.trial for row in study.trials()] == [1]
    assert study.notes() == {1: "first"}
