"""Limits on numbers, arms and tables: what is refused, and that everything within them stays finite."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

import dbcare
from dbcare.base import checks
from dbcare.base.checks import MAX_MAGNITUDE
from dbcare.errors import InvalidRewardError, InvalidValueError
from dbcare.policies.breakeven import racing
from dbcare.policies.breakeven.racing import BreakevenRacing
from dbcare.policies.policy import Policy
from dbcare.policies.registry import BLOCK_POLICY, POLICIES
from dbcare.problem.risk import Loss, Risk
from dbcare.studies.stores.sql.errors import translate_error

# Block policies have tests of their own, and KL-LUCB takes rewards from 0 to 1.
LIVE = [name for name in POLICIES.live if name not in (BLOCK_POLICY, "kl-lucb")]
LARGEST = MAX_MAGNITUDE
REWARDS = 1_200  # more than two summaries


def make_rewards(pattern: str) -> list[float]:
    """Return rewards of the largest size: in turns, all alike, or with tiny ones between them."""
    cycle = {"turns": (LARGEST, -LARGEST, -LARGEST, LARGEST), "alike": (LARGEST,), "tiny": (LARGEST, 5e-324, -LARGEST)}
    return [cycle[pattern][number % len(cycle[pattern])] for number in range(REWARDS)]


@pytest.mark.filterwarnings("ignore::dbcare.errors.GuessingIsBestWarning")
@pytest.mark.parametrize("policy", LIVE)
@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"cost": 1e-3 * LARGEST, "sigma": LARGEST}, "turns"),
        ({"price": LARGEST, "value": LARGEST, "sigma": 1.0}, "tiny"),
        ({"cost": LARGEST, "sigma": LARGEST}, "alike"),
    ],
)
def test_a_study_of_the_largest_rewards_can_be_used_and_stored(
    tmp_path: Path, policy: str, options: dict[str, Any], pattern: str
) -> None:
    """The summary is written every 500 events, and JSON has no infinite numbers."""
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    study = dbcare.create_study("large", ["A", "B"], policy=policy, storage=storage, **options)
    trial = study.ask()
    assert trial is not None
    study.tell(trial, LARGEST)
    study.add([("AB"[number % 2], reward) for number, reward in enumerate(make_rewards(pattern))])
    study.pause()
    study.stop()
    assert study.check() == 2 * (REWARDS + 1) + 2
    again = dbcare.load_study("large", storage)
    assert again.status().asked == REWARDS + 1
    price = options["price"] if "price" in options else options["cost"]
    assert again.status().spent == pytest.approx((REWARDS + 1) * price)
    json.dumps([again.status().spent, [point.spent for point in again.history()]], allow_nan=False)
    assert str(again.recommendation())


BLOCKS: list[dict[str, Any]] = [{"rounds": True}, {"blocks": 600}]


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
@pytest.mark.parametrize("pattern", ["turns", "alike", "tiny"])
def test_a_study_with_blocks_of_the_largest_rewards_can_be_used_and_stored(
    tmp_path: Path, blocks: dict[str, Any], pattern: str
) -> None:
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    study = dbcare.create_study("large", ["A", "B"], cost=1e-3 * LARGEST, storage=storage, **blocks)
    rewards = iter(make_rewards(pattern)[:1_000])
    for _ in range(500):
        study.tell_many((trial, next(rewards)) for trial in study.ask(2))
    assert study.check() >= 24
    again = dbcare.load_study("large", storage)
    assert again.status().asked >= 12
    json.dumps([again.status().spent, [point.policy_loss for point in again.history()]], allow_nan=False)
    assert str(again.recommendation())


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
@pytest.mark.parametrize("reward", [1e200, 10**400, math.nextafter(LARGEST, math.inf)], ids=range(3))
def test_larger_rewards_are_refused_in_blocks(blocks: dict[str, Any], reward: float) -> None:
    study = dbcare.create_study("refused in blocks", ["A", "B"], cost=0.01, **blocks)
    try:
        trial = study.ask()
        assert trial is not None
        with pytest.raises(InvalidRewardError, match=r"Trial 1, of A: `reward` must be (at most 1e\+50|finite)"):
            study.tell(trial, reward)
        with pytest.raises(InvalidValueError, match=r"Trial 1, of A: `price` must be (at most 1e\+50|finite)"):
            study.tell(trial, 1.0, price=reward)
        assert study.status().waiting == 1
    finally:
        dbcare.delete_study("refused in blocks")


SHIPPED: list[Policy] = [
    dbcare.Breakeven(Risk.misidentification(5e-5), 2, sigma=LARGEST),
    dbcare.Breakeven(Risk.simple_regret(1e-8 * LARGEST), 2, sigma=LARGEST),
    dbcare.Breakeven(Risk.misidentification(5e-5), 2, sigma=None),
    dbcare.DBCARE(Risk.misidentification(1e-5), 2, sigma=LARGEST),
    dbcare.BreakevenRacing(Risk.misidentification(1e-5), 2, sigma=LARGEST),
    dbcare.policies.Racing(2, 0.1, sigma=LARGEST, max_pulls=REWARDS),
    dbcare.policies.TwoArmConfidence(0.1, sigma=LARGEST, max_pulls=REWARDS),
    dbcare.policies.Uniform(2, REWARDS // 2),
    dbcare.policies.SequentialHalving(2, REWARDS),
    dbcare.policies.SuccessiveRejects(2, REWARDS),
]


@pytest.mark.parametrize("policy", SHIPPED, ids=lambda policy: repr(policy)[:60])
def test_the_state_of_a_run_stays_finite(policy: Policy) -> None:
    run = policy.start()
    for reward in make_rewards("turns"):
        if run.ask() is None:
            break
        run.tell(reward)
    assert run.pulls > REWARDS // 2
    assert policy.resume(json.loads(json.dumps(run.snapshot(), allow_nan=False))).ask() == run.ask()


@pytest.mark.parametrize("policy", LIVE)
@pytest.mark.parametrize("reward", [1e200, -1.7e308, 10**400, math.nextafter(LARGEST, math.inf)], ids=range(4))
def test_larger_rewards_are_refused_by_every_policy(policy: str, reward: float) -> None:
    study = dbcare.create_study("refused", ["A", "B"], cost=0.01, sigma=1.0, policy=policy)
    try:
        trial = study.ask()
        assert trial is not None
        with pytest.raises(InvalidRewardError, match=r"Trial 1, of A: `reward` must be (at most 1e\+50|finite)"):
            study.tell(trial, reward)
        for call in (study.add, lambda rows: study.tell_many([(1, rows[0][1])])):
            with pytest.raises(InvalidValueError, match="`reward` must be"):
                call([("A", reward)])
        assert study.status().waiting == 1
    finally:
        dbcare.delete_study("refused")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"cost": 1e308}, "`cost` must be at most 1e+50 in absolute value but got 1e+308."),
    ({"cost": 5e-324}, "`cost` must be at least 1e-50 but got 5e-324."),
    ({"cost": np.array(1.0)}, "`cost` must be one number, or one per arm but got array(1.)."),
    ({"cost": (0.1, 1e51)}, "`cost[1]` must be at most 1e+50 in absolute value but got 1e+51."),
    ({"price": 1e50, "value": 0.1}, "`price / value` must be at most 1e+50 in absolute value but got 1e+51."),
    ({"sigma": 1e200}, "`sigma` must be at most 1e+50 in absolute value but got 1e+200."),
    ({"sigma": None, "bounds": (-1e50, 1e50)}, "`bounds` must be 2e-50 to 1e+50 apart but got -1e+50 and 1e+50."),
    ({"sigma": None, "bounds": (0.0, 5e-324)}, "`bounds` must be 2e-50 to 1e+50 apart but got 0 and 4.94066e-324."),
    ({"max_spend": 1e300}, "`max_spend` must be at most 1e+50 in absolute value but got 1e+300."),
    ({"timeout_reward": 1e300}, "`timeout_reward` must be at most 1e+50 in absolute value but got 1e+300."),
    ({"seed": 2**63}, "`seed` must be at most 9223372036854775807 but got 9223372036854775808."),
    ({"seed": 10**400}, "`seed` must be finite but got inf."),
    ({"max_ahead": 10**9}, "`max_ahead` must be at most 1000000 but got 1000000000."),
    ({"arms": [str(arm) for arm in range(1001)]}, "`arms` must be at most 1,000 names but got 1,001."),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_a_study_beyond_the_limits_is_not_created(options: dict[str, Any], message: str) -> None:
    sound: dict[str, Any] = {"arms": ["A", "B"], "sigma": 1.0} | ({} if "price" in options else {"cost": 0.1})
    with pytest.raises(InvalidValueError) as caught:
        dbcare.create_study("limits", **sound | options)
    assert str(caught.value) == message
    assert "limits" not in dbcare.list_studies()


def test_a_study_of_the_most_arms_works() -> None:
    arms = [f"arm {number}" for number in range(1000)]
    study = dbcare.create_study("most arms", arms, cost=1e-6, sigma=1.0)
    try:
        trials = study.ask(1000)
        study.tell_many((trial, float(trial.arm == "arm 7")) for trial in trials)
        assert {trial.arm for trial in trials} == set(arms)
        assert study.recommendation().arm == "arm 7"
    finally:
        dbcare.delete_study("most arms")


WRONG_SHAPES: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda study: study.tell_many(None),
        "`outcomes` must be pairs of a trial and its reward, with or without a price, but got None.",
    ),
    (
        lambda study: study.tell_many([1]),
        "`outcomes` must be pairs of a trial and its reward, with or without a price, but got 1 at position 0.",
    ),
    (
        lambda study: study.tell_many([(1, 0.5), (1,)]),
        "`outcomes` must be pairs of a trial and its reward, with or without a price, but got (1,) at position 1.",
    ),
    (lambda study: study.add(None), "`observations` must be pairs of an arm's name and a reward but got None."),
    (
        lambda study: study.add([("A",)]),
        "`observations` must be pairs of an arm's name and a reward but got ('A',) at position 0.",
    ),
    (
        lambda study: study.add(["AB"]),
        "`observations` must be pairs of an arm's name and a reward but got 'AB' at position 0.",
    ),
    (lambda study: study.add([(["A"], 1.0)]), "`arm` must be one of A, B but got ['A']."),
    (lambda study: study.tell(dbcare.Trial(None, "A", None), 1.0), "`trial` must be a real number but got None."),  # type: ignore[arg-type]  # wrong on purpose
]


@pytest.mark.parametrize(("call", "message"), WRONG_SHAPES, ids=[message for _, message in WRONG_SHAPES])
def test_outcomes_of_the_wrong_shape_are_refused(call: Callable[[Any], Any], message: str) -> None:
    study = dbcare.create_study("shapes", ["A", "B"], cost=0.1, sigma=1.0)
    try:
        study.ask()
        with pytest.raises(InvalidValueError) as caught:
            call(study)
        assert str(caught.value) == message
        assert study.status().waiting == 1
    finally:
        dbcare.delete_study("shapes")


def test_rewards_may_be_numpy_booleans() -> None:
    study = dbcare.create_study("booleans", ["A", "B"], cost=0.1, binary=True)
    try:
        study.tell(study.ask(), np.bool_(True))  # type: ignore[call-overload]  # wrong on purpose
        assert study.status().arms[0].mean == 1.0
    finally:
        dbcare.delete_study("booleans")


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("arms", [2, 3, 40])
@pytest.mark.parametrize("sigma", [1.0, 1e6])
def test_tables_of_breakeven_racing_have_a_largest_size(
    monkeypatch: pytest.MonkeyPatch, loss: Loss, arms: int, sigma: float
) -> None:
    """The smallest cost that the message states is accepted, and its tables have about the largest size."""
    monkeypatch.setitem(racing.MAX_TABLE_SIZES, loss, 50_000)
    with pytest.raises(InvalidValueError, match=f"`cost` must be at least .* for {arms} arms at sigma") as caught:
        BreakevenRacing(Risk(loss, 1e-40), arms, sigma)
    smallest = float(str(caught.value).split()[5])
    size = len(BreakevenRacing(Risk(loss, 1.01 * smallest), arms, sigma).tables.boundary)
    assert 0.95 * 50_000 < size <= 50_000
    with pytest.raises(InvalidValueError, match="`cost` must be at least"):
        BreakevenRacing(Risk(loss, 0.98 * smallest), arms, sigma)


def test_a_cost_that_would_build_tables_for_minutes_is_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"`cost` must be at least 3.94e-11 for 2 arms .* but got 1e-11"):
        dbcare.create_study("slow", ["A", "B"], cost=1e-11, binary=True, policy="breakeven-racing")


def test_the_oracle_refuses_a_cost_that_allows_more_pulls_than_can_be_counted() -> None:
    """4 sigma^2/gap^2 ln(gap^2/(8 sigma^2 c)) is 4e20 ln(1e9 / 8) at a gap of 1e-10."""
    with pytest.raises(InvalidValueError, match=r"`cost` must allow at most 4.61169e\+18 pulls of an arm"):
        dbcare.policies.KnownGapOracle(Risk.misidentification(1e-29), gap=1e-10)


def test_a_gap_whose_inverse_square_overflows_counts_as_a_tie() -> None:
    assert dbcare.Bandit.gaussian([1e-300, 0.0]).complexity == math.inf
    assert dbcare.Bandit.gaussian([1e-140, 0.0]).complexity == pytest.approx(1e280)


def test_whole_numbers_are_exact_up_to_64_bits() -> None:
    assert checks.whole("n", 2**63 - 1, at_least=0) == 2**63 - 1
    assert checks.whole("n", np.uint64(2**53 + 1), at_least=0) == 2**53 + 1
    with pytest.raises(InvalidValueError, match="`n` must be at most 9223372036854775807 but got 18446744073709551615"):
        checks.whole("n", np.uint64(2**64 - 1), at_least=0)


def test_messages_show_any_value_in_short() -> None:
    """Python refuses to write integers of more than 4300 digits in decimal."""
    assert checks.show("x" * 1000) == "'" + "x" * 79 + "..."
    assert checks.show(10**5000) == "an object of type int"


def test_a_database_in_recovery_is_not_ready() -> None:
    """The sentence is PostgreSQL's own, which a failed connection carries without a code."""
    failure = Exception("connection failed: FATAL:  the database system is in recovery mode")
    message = str(translate_error(sa.make_url("postgresql://me@host/studies"), failure, NotImplementedError))
    assert message == "postgresql://me@host/studies is starting or stopping; retry in a moment."
