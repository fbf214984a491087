"""Evaluations of 20 settings are those that were written down.

The file was compared bit for bit on the machine that wrote it. Here a relative difference of 1e-9 is allowed, since
the last bits of exponentials and of vectorized sums may differ between processors.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from dbcare import DBCARE, Bandit, Breakeven, BreakevenRacing, Policy, Risk, evaluate
from dbcare.policies import (
    Guess,
    KnownGapOracle,
    Racing,
    SequentialHalving,
    SuccessiveRejects,
    TwoArmConfidence,
    Uniform,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "evaluations.json").read_text())
ERROR, REGRET = Risk.misidentification, Risk.simple_regret
OBSERVED = [[0, 1, 2], [1, 1], [0, 3, 1, 1]]

Setting = tuple[Policy, Bandit, Risk | None, dict[str, Any]]
SETTINGS: dict[str, Setting] = {
    "dbcare, two arms, exact": (DBCARE(ERROR(1e-3), 2), Bandit.two_arm(0.5), None, {}),
    "dbcare, two arms, skip": (DBCARE(ERROR(1e-3), 2), Bandit.two_arm(0.5), None, {"engine": "skip"}),
    "dbcare, two arms, direct": (DBCARE(REGRET(1e-3), 2), Bandit.two_arm(0.5), None, {"engine": "direct"}),
    "dbcare, eight arms, control variate": (DBCARE(ERROR(1e-3), 8), Bandit.one_sparse(8, 0.5), None, {}),
    "dbcare, bernoulli pair, exact": (DBCARE(REGRET(1e-3), 2, sigma=0.5), Bandit.bernoulli([0.6, 0.4]), None, {}),
    "dbcare, five bernoulli arms, skip": (DBCARE(REGRET(1e-3), 5, sigma=0.5), Bandit.drug_binary(), None, {}),
    "dbcare, leveled drug": (DBCARE(ERROR(1e-3), 5, sigma=0.35), Bandit.drug_leveled(), None, {}),
    "breakeven, three arms": (
        Breakeven(REGRET(1e-3), 3, 1.0),
        Bandit.gaussian([0.5, 0.2, 0.0]),
        None,
        {"engine": "direct"},
    ),
    "breakeven, learned": (Breakeven(REGRET(1e-3), 4), Bandit.linear_decay(4, 0.3), None, {}),
    "breakeven, costs by arm": (
        Breakeven(REGRET((1e-3, 2e-3, 5e-3)), 3, 1.0),
        Bandit.gaussian([0.5, 0.2, 0.0]),
        None,
        {},
    ),
    "breakeven, known sigma": (
        Breakeven(ERROR(1e-3), 2, 1.0, math.inf),
        Bandit.two_arm(0.5),
        None,
        {"engine": "direct"},
    ),
    "breakeven racing, two arms": (BreakevenRacing(ERROR(1e-3), 2), Bandit.two_arm(0.4), None, {}),
    "breakeven racing, six arms": (BreakevenRacing(REGRET(1e-3), 6), Bandit.linear_decay(6, 0.3), None, {}),
    "racing, five arms": (Racing(5, 0.1, max_pulls=10_000), Bandit.one_sparse(5, 0.8), ERROR(1e-3), {}),
    "two-arm confidence": (TwoArmConfidence(0.1, max_pulls=10_000), Bandit.two_arm(0.6), ERROR(1e-3), {}),
    "sequential halving, eight arms": (SequentialHalving(8, 200), Bandit.one_sparse(8, 0.5), REGRET(1e-3), {}),
    "successive rejects, empirical": (SuccessiveRejects(3, 60), Bandit.empirical(OBSERVED), REGRET(1e-3), {}),
    "uniform, exact": (Uniform(2, 25), Bandit.two_arm(0.5), ERROR(1e-3), {}),
    "known-gap oracle, direct": (
        KnownGapOracle(ERROR(1e-3), 0.5),
        Bandit.two_arm(0.5),
        None,
        {"engine": "direct"},
    ),
    "guess": (Guess(4), Bandit.gaussian([0.3, 0.2, 0.1, 0.0]), REGRET(1e-3), {}),
}


def flatten(value: Any, path: str = "") -> dict[str, Any]:
    """Return the numbers and texts of a nested result, by where they are in it."""
    if isinstance(value, dict):
        return {key: leaf for name, item in value.items() for key, leaf in flatten(item, f"{path}.{name}").items()}
    if isinstance(value, list):
        return {key: leaf for place, item in enumerate(value) for key, leaf in flatten(item, f"{path}.{place}").items()}
    return {path: value}


def test_no_setting_is_left_out() -> None:
    assert SETTINGS.keys() == GOLDEN.keys()
    assert len(SETTINGS) == 20


@pytest.mark.parametrize("name", SETTINGS)
def test_evaluations_are_those_from_before(name: str) -> None:
    policy, bandit, risk, how = SETTINGS[name]
    plain = evaluate(policy, bandit, risk, runs=2_000, seed=7, threads=2, **how).to_dict()
    actual, expected = flatten(plain), flatten(GOLDEN[name])
    for path, value in expected.items():
        if isinstance(value, float):
            assert actual[path] == pytest.approx(value, rel=1e-9, abs=1e-15), path
        else:
            assert actual[path] == value, path


def test_another_seed_would_be_noticed() -> None:
    """Negative control: the comparison is sensitive to the random numbers."""
    policy, bandit, risk, how = SETTINGS["breakeven, three arms"]
    plain = evaluate(policy, bandit, risk, runs=2_000, seed=8, **how).to_dict()
    assert plain["risk"] != pytest.approx(GOLDEN["breakeven, three arms"]["risk"], rel=1e-9)
