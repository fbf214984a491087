"""The runs of a plan: rows against plain simulation, limits where runs are too few, and an end when nobody waits."""

import math
import threading
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dbcare import Bandit, Breakeven, Risk, evaluate, plan, register_policy, unregister_policy
from dbcare.engines.simulate.halt import Halt
from dbcare.errors import NotCompiledWarning, WorkCancelledError
from dbcare.planner.plan import MAX_ARMS, Plan
from dbcare.planner.runs import build_cells, hide_between
from dbcare.policies import CustomPolicy, Rule
from dbcare.policies.registry import POLICIES

ERRORS = 5.5  # standard errors of both: the chance that a right row is refused is below 1e-7
# Rewards, the arms' means by the gap, and policies.
CASES: list[dict[str, Any]] = [
    {"arms": 4, "price": 0.5, "value": 20_000, "sigma": 0.5, "gaps": [0.02, 0.1]},
    {"arms": 3, "price": 0.5, "value": 20_000, "baseline": 0.1, "gaps": [0.02, 0.1], "control": "A"},
    {"arms": 3, "cost": 1e-3, "sigma": 1.0, "risk": "misidentification", "gaps": [0.3, 0.6]},
]
# No figure of Breakeven can be known at the smaller gap: a run makes a million million pulls.
ENDLESS: dict[str, Any] = {"arms": 2, "cost": 1e-18, "sigma": 1.0, "gaps": [1e-3, 1.0], "policies": "breakeven"}


def count_far(planned: Plan, runs: int) -> tuple[int, int]:
    """Return how many rows there are, and how many are too far from plain runs at the plan's own price."""
    far = rows = 0
    for outlook in (*planned.outlooks, *planned.if_control_best):
        if not outlook.runs:
            continue
        setting = planned.setting if not outlook.control_is_best else planned.setting.flipped
        assert setting is not None
        plain = evaluate(outlook.policy, setting.bandit(outlook.gap), setting.risk, runs=runs, seed=77, engine="direct")
        pulls, expected = outlook.evaluation.pulls, plain.pulls
        error = math.hypot(pulls.standard_error, expected.standard_error)
        far += abs(pulls.mean - expected.mean) > ERRORS * error + 1e-7 * expected.mean
        error = math.hypot(outlook.evaluation.standard_error, plain.standard_error)
        far += abs(outlook.evaluation.risk - plain.risk) > ERRORS * error + 1e-7 * plain.risk
        rows += 1
    return rows, far


@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_of_plain_runs(case: dict[str, Any]) -> None:
    planned = plan(**case, policies=["breakeven", "dbcare"], seed=3)
    assert planned.omissions == ()
    assert all(outlook.measured_total.is_known for outlook in planned.outlooks)
    rows, far = count_far(planned, 10_000)
    assert rows >= 4
    assert far == 0


def test_a_wrong_price_would_be_noticed() -> None:
    """A plan at 1.3 times the price, whose rows are compared with runs at the right one."""
    right, wrong = (plan(**(CASES[0] | {"price": price}), policies="breakeven", seed=3) for price in (0.5, 0.65))
    policy = right.outlooks[0].policy
    for outlook in wrong.outlooks:
        plain = evaluate(policy, right.setting.bandit(outlook.gap), right.setting.risk, runs=10_000, seed=77)
        apart = abs(outlook.observations - plain.pulls.mean)
        assert apart > ERRORS * math.hypot(outlook.evaluation.pulls.standard_error, plain.pulls.standard_error)


def test_rare_wrong_choices_are_seen_from_smaller_gaps() -> None:
    """At this gap alone, hardly a run goes wrong: the chance came out several times too small at a small stated error.

    The truth is in its interval from 400,000 plain runs with a probability of 1 - 1e-7.
    """
    risk = Risk.simple_regret(4e-6)
    truth = evaluate("breakeven-racing", Bandit.one_sparse(3, 0.5), risk, runs=400_000, seed=9)
    wrong = round(400_000 * truth.error)
    assert truth.engine != "pooled"
    low = stats.beta.ppf(5e-8, wrong, 400_000 - wrong + 1)
    high = stats.beta.isf(5e-8, wrong + 1, 400_000 - wrong)
    assert high < 10.0 * low
    options: dict[str, Any] = {"cost": 4e-6, "sigma": 1.0, "gaps": 0.5, "policies": "breakeven-racing"}
    chances = [plan(3, **options, seed=seed).outlooks[0].chance_wrong for seed in range(6)]
    assert 0.7 * low < np.mean(chances) < 1.4 * high


def test_hidden_gaps_are_where_neighbors_are_far() -> None:
    setting = plan(3, cost=1e-3, sigma=1.0, gaps=[0.1, 0.2, 1.0], policies="decide-now").setting
    cells = build_cells(setting, ["breakeven"], [0.1, 0.2, 1.0])
    assert sorted(cell.gap for cell in hide_between(cells)) == pytest.approx([0.025, 0.05, 0.25, 0.5])


@pytest.mark.parametrize("name", POLICIES.live)
def test_every_live_policy_can_be_planned(name: str) -> None:
    planned = plan(3, cost=1e-2, baseline=0.2, gaps=[0.2, 0.4], policies=[name], seed=1)
    assert [outlook.gap for outlook in planned.outlooks] == [0.2, 0.4]
    assert all(outlook.measured_total.is_known for outlook in planned.outlooks)
    assert count_far(planned, 2_000) == (2, 0)


def test_unequal_prices_have_plain_runs() -> None:
    prices = [0.5, 1.0, 3.0]
    planned = plan(3, price=prices, value=5_000, sigma=1.0, gaps=[0.2, 1.0], policies="breakeven", control="A")
    assert {outlook.evaluation.engine for outlook in planned.outlooks} == {"direct"}
    assert count_far(planned, 10_000) == (4, 0)  # also if the control, which is the cheapest, is the best arm
    assert planned.if_control_best[0].spend < planned.outlooks[0].spend


def test_a_best_control_has_rows_of_its_own_for_rates() -> None:
    planned = plan(["old", "new"], price=0.055, value=4_000_000, baseline=0.05, gaps=[0.002, 0.05], control="old")
    [breakeven] = [outlook for outlook in planned.if_control_best if outlook.name == "breakeven"]  # no rate below 0
    [keep] = [outlook for outlook in planned.if_control_best if outlook.name == "decide-now"]
    bandit = planned.setting.flipped.bandit(0.002) if planned.setting.flipped else None
    assert bandit == Bandit.bernoulli([0.05, 0.048])
    # By 400 runs of `evaluate`, the example of the guide: a total of 2,701 +- 270, 23% wrong switches.
    assert breakeven.total_loss == pytest.approx(2_700, rel=0.15)
    assert breakeven.chance_wrong == pytest.approx(0.23, rel=0.15)
    assert keep.total_loss == 0.0
    assert planned.advice[1].startswith(
        "If old is the best itself, keeping it loses nothing, and Breakeven loses up to "
    )
    assert "wrongly switches in 2" in planned.advice[1]
    assert " -0.002 " in str(planned)
    rows = [row for row in planned.to_dict()["rows"] if row["control_is_best"]]
    assert {row["gap"] for row in rows} == {0.002}
    assert [row["policy"] for row in rows if row["is_lowest"]] == ["decide-now"]


def test_what_does_not_fit_is_left_out_with_a_reason() -> None:
    planned = plan(**ENDLESS)
    assert [omission.gap for omission in planned.omissions] == [1e-3]
    assert "observations" in planned.omissions[0].why
    assert planned.advice[-1].startswith("That is more work than a plan takes by default: choose larger gaps, or state")
    lines = [line.split() for line in str(planned).splitlines()]
    assert ["0.001", "Breakeven", "left", "out"] in lines
    assert planned.to_dict()["omissions"][0]["gap"] == 1e-3
    nothing = plan(**(ENDLESS | {"gaps": 1e-3}))
    assert (nothing.outlooks, nothing.policies) == ((), ())
    assert nothing.omissions[0].why.startswith("runs make more than ")


def test_few_runs_give_limits() -> None:
    planned = plan(**CASES[0], policies="breakeven", runs=50)
    for outlook in planned.outlooks:
        shown = planned.to_dict()["rows"][0]["shown"]
        assert not outlook.measured_total.is_known
        assert outlook.least_loss < outlook.total_loss < outlook.largest_loss
        assert {shown[name][0] for name in ("observations", "spend", "total_loss")} == {"<"}
    assert "< marks a limit" in str(planned)


def test_a_plan_is_the_same_for_any_number_of_threads() -> None:
    one, other = (plan(**CASES[1], seed=5, threads=threads).to_dict() for threads in (1, 3))
    assert one == other
    assert one != plan(**CASES[1], seed=6).to_dict()
    assert (one["seed"], one["version"]) == (5, "0.1.0")
    assert {row["engine"] for row in one["rows"]} == {"pooled", "exact"}


def test_long_tables_are_left_out() -> None:
    planned = plan(2, cost=5e-9, sigma=1.0, risk="misidentification", gaps=1.0, policies=["dbcare", "decide-now"])
    assert planned.policies == ("decide-now",)
    assert planned.omissions[0].why == "its tables have up to 36,787,945 epochs"


def test_policies_that_cannot_be_compiled_are_planned_with_less() -> None:
    def init(state: Any, tables: Any, tie: int) -> None:
        state[0] = len({"not": "compiled"})

    def ask(state: Any, tables: Any) -> int:
        return int(str(int(state[0]) % 2)) if state[0] < 41.0 else -1  # numba does not compile str of int here

    def tell(state: Any, tables: Any, arm: int, reward: float) -> None:
        state[0] += 1.0
        state[1] += reward if arm == 0 else -reward

    def recommend(state: Any, tables: Any) -> int:
        return 0 if state[1] > 0.0 else 1

    def make(risk: Risk, arms: int) -> CustomPolicy:
        rule = Rule(init, ask, tell, recommend)
        return CustomPolicy(arms, rule, tables=(), state_size=2, max_pulls=41, risk=risk)

    register_policy("in-python", make)
    try:
        with pytest.warns(NotCompiledWarning):
            planned = plan(2, cost=1e-3, sigma=1.0, gaps=0.5, policies="in-python")
    finally:
        unregister_policy("in-python")
    assert planned.outlooks[0].observations == 40.0


@pytest.mark.parametrize("threads", [1, 2])
def test_cancelling_ends_a_plan_within_a_run(threads: int) -> None:
    """Runs that make 10^18 pulls end as well, so the halt is read within them."""
    halt = Halt()
    timer = threading.Timer(0.5, halt.set)
    timer.start()
    with pytest.raises(WorkCancelledError), halt.applied():
        plan(**ENDLESS, runs=1_000, threads=threads)
    timer.join()
    assert evaluate(Breakeven(Risk.simple_regret(1e-2), 2, 1.0), Bandit.two_arm(1.0), runs=10).runs == 10  # it is over


@pytest.mark.parametrize("rewards", [{"sigma": 1.0}, {"baseline": 0.05}])
def test_as_many_arms_as_allowed_are_planned(rewards: dict[str, float]) -> None:
    planned = plan(MAX_ARMS, cost=1e-4, gaps=[0.02, 0.5], **rewards)  # type: ignore[arg-type]  # options by name
    assert len(planned.outlooks) + len(planned.omissions) == 10
    assert len(planned.of("breakeven")) >= 1
