"""A database written before the redesign opens, means the same, and its studies go on as they would have.

Their settings know no `sigma_pulls`: Breakeven is then the rule that trusts sigma until a guard contradicts it.
"""

import json
import random
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare.errors import InvalidValueError, StudyMismatchError
from dbcare.live.stores.open import open_store
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records

FOLDER = Path(__file__).parents[1] / "golden" / "study_database"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())
NAMES_NOW = {"breakeven": "breakeven-guarded", "breakeven-racing": "breakeven-racing", "dbcare": "dbcare"}
NEW_RULE = dbcare.Breakeven(dbcare.Risk.simple_regret(0.1), 2).rule
MEANS = {"A": 0.30, "B": 0.35, "C": 0.10, "D": 0.32}


@pytest.fixture
def address(tmp_path: Path) -> str:
    """A copy, since opening it writes."""
    return f"sqlite:///{shutil.copy(FOLDER / 'studies.db', tmp_path / 'studies.db')}"


def test_no_study_is_left_out(address: str) -> None:
    assert dbcare.list_studies(address) == list(EXPECTED["studies"])
    assert len(EXPECTED["studies"]) == 7


@pytest.mark.parametrize("name", EXPECTED["studies"])
def test_a_study_means_what_it_meant(address: str, name: str) -> None:
    """Settings, status, arms, history and recommendation, number by number.

    What was called the expected loss is now the loss that the policy weighs; intervals are other ones now.
    """
    study, expected = dbcare.load_study(name, address), EXPECTED["studies"][name]
    assert study.check() == expected["events"]
    settings = json.loads(json.dumps(study.settings.to_dict()))
    assert settings | expected["settings"] | {"policy": NAMES_NOW[expected["settings"]["policy"]]} == settings
    assert study.settings.built_policy.rule is not NEW_RULE
    status = asdict(study.status())
    status["expected_loss"] = status["policy_loss"]
    assert {key: status[key] for key in expected["status"]} == expected["status"]
    arms = json.loads(json.dumps(status["arms"]))
    for arm, before in zip(arms, expected["arms"], strict=True):
        assert (arm["left"] is not None) == before.pop("gone")
        del before["interval"]
        arm["expected_loss"] = arm["policy_loss"]
        assert {key: arm[key] for key in before} == before
    choice = study.recommendation()
    assert (choice.arm, choice.final) == (expected["recommended"], expected["final"])
    points = [(point.rewards, point.spent, point.policy_loss) for point in study.history()]
    assert points[-5:] == [tuple(point.values()) for point in expected["history"]]
    assert len(list(study.trials())) == expected["trials"]


@pytest.mark.parametrize("name", EXPECTED["studies"])
def test_a_study_goes_on_as_it_would_have(address: str, name: str) -> None:
    """The same trials, told the same rewards, lead to the same end."""
    study, expected = dbcare.load_study(name, address), EXPECTED["studies"][name]
    if study.status().state == "paused":
        study.resume()
    for pending in study.pending():
        if not pending.told:
            study.tell(pending.trial, 1.0)
    draws, trials = random.Random(11), []
    for _ in range(60):
        trial = study.ask(lease=None)
        if trial is None:
            break
        binary = study.settings.binary
        reward = float(draws.random() < 0.5) if binary else round(draws.gauss(MEANS[trial.arm], 0.5), 6)
        study.tell(trial, reward)
        trials.append([trial.id, trial.arm, reward])
    assert trials == expected["next"]
    status, choice = study.status(), study.recommendation()
    end = {"spent": status.spent, "recommended": choice.arm, "final": choice.final}
    assert end | {"expected_loss": status.policy_loss} == expected["then"]


def test_workers_that_create_or_load_a_stored_study_go_on_with_its_rule(address: str) -> None:
    """The default policy means the rule that the study was stored with; other settings must be equal."""
    options: dict[str, Any] = {"arms": ["A", "B"], "sigma": 0.5, "storage": address, "load_if_exists": True}
    study = dbcare.create_study("ended", cost=1e-4, **options)
    assert study.settings.policy == "breakeven-guarded"
    with pytest.raises(StudyMismatchError, match=r"different settings: sigma_pulls: 3\.0 given, 6\.0 stored\."):
        dbcare.create_study("ended", cost=1e-4, sigma_pulls=3, **options)


def test_new_studies_beside_stored_ones_use_the_new_rule(address: str) -> None:
    options: dict[str, Any] = {"cost": 0.01, "sigma": 0.5, "storage": address}
    study = dbcare.load_study(dbcare.create_study("new", ["A", "B"], **options).name, address)
    assert (study.settings.policy, study.settings.sigma_pulls) == ("breakeven", 6.0)
    assert study.settings.built_policy.rule is NEW_RULE
    again = dbcare.create_study("new", ["A", "B"], **options, load_if_exists=True)
    assert again.settings == study.settings
    with pytest.raises(InvalidValueError, match=r"`policy` must be one of breakeven, .* but got 'breakeven-guarded'"):
        dbcare.create_study("guarded", ["A", "B"], **options, policy="breakeven-guarded")


def test_keys_still_open_the_service(address: str) -> None:
    keys = Keys(open_records(open_store(address, create=True)))
    key = keys.find(EXPECTED["key"])
    assert key is not None
    assert (key.name, key.role) == ("fixture", "admin")
    assert [(listed.name, listed.revoked is None) for listed in keys.list_all()] == [("fixture", True), ("old", False)]
