"""A run stepped by hand: the protocol, what it refuses, and snapshots in JSON."""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dbcare.errors import InvalidRewardError, InvalidValueError, NotAskedError, ProtocolError, StoppedError
from dbcare.policies.breakeven.policy import Breakeven
from dbcare.policies.breakeven.rounds import BreakevenRounds
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.racing import Racing
from dbcare.policies.planned import SequentialHalving, Uniform
from dbcare.policies.policy import Policy
from dbcare.policies.run import RunEvent, Wording
from dbcare.problem.risk import Risk


def test_protocol() -> None:
    run = Uniform(2, pulls=1).start(seed=3)
    assert (run.ask(), run.ask(), run.pulls) == (0, 0, 0)
    assert run.why() == "waiting for pull 1, of arm 0 (round 1, 2 of 2 arms left)"
    run.tell(1.0)
    assert (run.ask(), run.pulls) == (1, 1)
    run.tell(2.0, arm=1)
    assert (run.ask(), run.pulls, run.recommendation()) == (None, 2, 1)


def test_the_reason_for_waiting_names_epoch_and_survivors() -> None:
    run = Racing(3, delta=0.1).start()
    for reward in (10.0, 0.0, 10.0, 9.0):
        run.tell(reward)
    assert run.why() == "waiting for pull 5, of arm 2 (epoch 2, 2 of 3 arms left)"


def test_sentences_of_a_live_study() -> None:
    """They have names for the arms and a currency, and leave the numbers of trials to the study."""
    run = Breakeven(Risk.simple_regret(price=0.4, value=20_000), arms=2, sigma=1.0).start()
    run.tell(1.0)
    run.tell(0.0)
    sentence = run.why(Wording(("red", "blue"), "trial", "USD"))
    assert sentence.startswith("waiting for a trial of ")
    assert "(red leads. Choosing it now is expected to lose " in sentence
    assert sentence.endswith(" USD to blue; 0.8 USD has been spent)")


def test_recommendation_at_any_moment() -> None:
    """It is the arm with the largest mean so far; arms without a pull are considered only if no arm has one."""
    run = Uniform(3, pulls=2).start()
    assert run.recommendation() in range(3)
    # Means after the fourth pull -1.5, -2, 0; after the sixth -1.5, 3, 2.5.
    for reward, best in ((-1.0, 0), (-2.0, 0), (0.0, 2), (-2.0, 2), (8.0, 1), (5.0, 1)):
        run.tell(reward)
        assert run.recommendation() == best


@pytest.mark.parametrize(
    "reward", [1, 1.0, True, np.float64(1.0), np.float32(1.0), np.int64(1), np.True_, Fraction(1)], ids=repr
)
def test_every_real_number_is_a_valid_reward(reward: Any) -> None:
    run = Uniform(2, pulls=1).start()
    run.tell(reward)
    run.tell(0.5)
    assert run.recommendation() == 0
    assert json.loads(json.dumps(run.snapshot())) == run.snapshot()


@pytest.mark.parametrize(
    "reward", [math.nan, math.inf, -math.inf, np.nan, None, "1", 1j, [1.0], 10**400], ids=lambda x: repr(x)[:8]
)
def test_bad_rewards_name_arm_and_pull_and_change_nothing(reward: Any) -> None:
    run = Uniform(3, pulls=1).start()
    run.tell(1.0)
    before = run.snapshot()
    with pytest.raises(
        InvalidRewardError,
        match=r"Pull 2, of arm 1: `reward` must be .* but got .*\.",
    ):
        run.tell(reward)
    assert run.snapshot() == before
    run.tell(2.0)
    run.tell(0.0)
    assert run.recommendation() == 1


def test_a_reward_for_another_arm_is_refused() -> None:
    run = Uniform(2, pulls=1).start()
    with pytest.raises(NotAskedError, match=r"`arm` must be 0, the arm asked for, but got 1\."):
        run.tell(1.0, arm=1)
    assert run.pulls == 0
    assert issubclass(NotAskedError, ProtocolError)


def test_a_reward_after_the_stop_is_refused() -> None:
    run = Uniform(2, pulls=1).start()
    run.tell(0.0)
    run.tell(1.0)
    before = run.snapshot()
    with pytest.raises(StoppedError, match=r"Cannot accept 7\.0: the run stopped after 2 pulls\."):
        run.tell(7.0)
    with pytest.raises(StoppedError):
        run.tell(math.nan, arm=0)
    assert run.snapshot() == before


@pytest.mark.parametrize(
    ("seed", "condition"),
    [(-1, "at least 0"), (1.5, "a whole number"), ("1", "a real number"), (2**63, "at most 9223372036854775807")],
)
def test_bad_seeds(seed: Any, condition: str) -> None:
    with pytest.raises(InvalidValueError, match=f"`seed` must be {condition} but got"):
        Uniform(2, pulls=1).start(seed=seed)


def test_a_whole_seed_may_have_any_type() -> None:
    """1e5 counts as whole."""
    policy = Uniform(2, pulls=1)
    seeds: list[Any] = [100_000, 1e5, np.int64(100_000)]
    states = [policy.start(seed=seed).snapshot() for seed in seeds]
    assert states[0] == states[1] == states[2]
    assert policy.start(seed=2**63 - 1).ask() == 0


def test_events_survive_json() -> None:
    policy = DBCARE(Risk.misidentification(0.02), arms=4, sigma=0.1)
    run = policy.start()
    for reward in (1.0, 1.0, 0.0, 1.0, 0.9):
        run.tell(reward)
    again = policy.resume(json.loads(json.dumps(run.snapshot())))
    assert again.events == run.events == [RunEvent(2, run.events[0].text)]
    assert str(again.events[0]).startswith("arm 2 dropped at epoch 1: its mean is 1 below the best")
    assert (again.ask(), again.pulls, again.why()) == (run.ask(), 5, run.why())


def test_a_resumed_run_is_independent() -> None:
    policy = Uniform(2, pulls=2)
    run = policy.start()
    snapshot = run.snapshot()
    resumed = policy.resume(snapshot)
    resumed.tell(1.0)
    assert (run.pulls, resumed.pulls) == (0, 1)
    assert run.snapshot() == snapshot == policy.start().snapshot()


@pytest.mark.parametrize("other", [Uniform(2, pulls=1), Uniform(3, pulls=2), SequentialHalving(3, 30)])
def test_a_snapshot_of_another_policy_is_refused(other: Policy) -> None:
    policy = Uniform(3, pulls=1)
    with pytest.raises(InvalidValueError, match="must be of a run of Uniform") as caught:
        policy.resume(other.start().snapshot())
    assert repr(other) in str(caught.value)


@pytest.mark.parametrize("missing", ["policy", "state", "pulls", "events"])
def test_an_invalid_snapshot_is_refused(missing: str) -> None:
    policy = Uniform(2, pulls=1)
    snapshot = policy.start().snapshot()
    broken: list[Any] = [{**snapshot, missing: None}, {**snapshot, missing: ["text"]}, None, []]
    if missing == "state":
        broken.append({**snapshot, "state": [float("nan")] * policy.state_size})
    del snapshot[missing]
    for invalid in (snapshot, *broken):
        with pytest.raises(InvalidValueError, match="`snapshot` must"):
            policy.resume(invalid)


@pytest.mark.parametrize("pool", [50, 500])
def test_long_states_are_packed(pool: int) -> None:
    """A run goes on the same from a snapshot in JSON, whether its state is listed or packed."""
    policy = BreakevenRounds(Risk.simple_regret(1e-9), arms=3, pool=pool)
    run, chance = policy.start(seed=4), np.random.default_rng(4)
    for _ in range(100):
        run.tell(float(chance.normal()))
    snapshot = json.loads(json.dumps(run.snapshot()))
    assert isinstance(snapshot["state"], str) is (pool > 400)
    again = policy.resume(snapshot)
    assert again.state == run.state
    for _ in range(20):
        reward = float(chance.normal())
        assert again.ask() == run.ask()
        run.tell(reward)
        again.tell(reward)
    assert again.snapshot() == run.snapshot()
    listed = snapshot | {"state": policy.resume(snapshot).state}
    assert policy.resume(listed).state == policy.resume(snapshot).state
    for damaged in ("", "?", snapshot["state"][:-8]):
        with pytest.raises(InvalidValueError, match="`snapshot` must"):
            policy.resume(snapshot | {"state": damaged})
