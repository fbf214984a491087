"""A live study on SQLite makes the same decisions as the compiled simulator; in 1,000 runs by `make soak`."""

from pathlib import Path

import pytest

import dbcare
from dbcare import Bandit
from dbcare.engines.simulate.draws import make_arms
from dbcare.engines.simulate.simulators import trace
from dbcare.studies.stores.open import open_store

ARMS = ("A", "B", "C")
BANDIT = Bandit.gaussian([0.6, 0.3, 0.0], sigma=0.5)  # its rewards never tie, so no tie is broken at random
SEED = 3
SOAK = [("breakeven", 700), ("breakeven-racing", 150), ("dbcare", 150)]


@pytest.mark.parametrize(
    ("policy", "runs"),
    [("breakeven", 30), ("breakeven-racing", 8), ("dbcare", 8)]
    + [pytest.param(*case, marks=pytest.mark.soak) for case in SOAK],
)
def test_a_live_study_equals_the_simulated_run(tmp_path: Path, policy: str, runs: int) -> None:
    address = f"sqlite:///{tmp_path / 'live.db'}"
    truth, trials = make_arms(BANDIT), 0
    for number in range(runs):
        study = dbcare.create_study(f"run {number}", ARMS, cost=0.01, sigma=0.5, policy=policy, storage=address)
        simulated = trace(study.settings.built_policy, truth, SEED, number)
        for arm, reward in simulated.pulls:
            trial = study.ask()
            assert trial is not None
            assert trial.arm == ARMS[arm]
            study.tell(trial, reward)
        assert study.ask() is None
        assert study.should_stop()
        assert study.recommendation().arm == ARMS[simulated.recommended]
        trials += len(simulated.pulls)
    assert trials > 5 * runs
    open_store(address).close()
