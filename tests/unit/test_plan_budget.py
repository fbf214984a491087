"""Plans under a budget of work: the same figures, fewer of them, and an end when nobody waits any more."""

import itertools
import math
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dbcare import DBCARE, Bandit, CustomPolicy, Risk, Rule, plan
from dbcare.engines.evaluate_within import RUN_WORK, CountedRuns, evaluate_within
from dbcare.engines.work_budget import TooMuchWorkError, WorkBudget, WorkCancelledError
from dbcare.errors import InvalidValueError, NotCompiledWarning
from dbcare.planner.plan import Plan

SETTINGS: list[dict[str, Any]] = [
    {"arms": 2, "cost": 1e-3, "sigma": 1.0, "gaps": [0.1, 0.5]},
    {"arms": 5, "cost": 1e-4, "sigma": 0.5, "gaps": [0.1, 0.3], "runs": 333},
    {"arms": 3, "cost": 1e-2, "baseline": 0.2, "gaps": [0.05, 0.2], "risk": "misidentification", "seed": 4},
    {"arms": 3, "price": [0.5, 1.0, 3.0], "value": 500, "sigma": 1.0, "gaps": 0.5, "runs": 300},
]
# Breakeven makes about 11,600, 2,200 and 200 pulls per run at these gaps.
STEEP: dict[str, Any] = {
    "arms": 3, "cost": 1e-5, "sigma": 1.0, "gaps": [0.02, 0.1, 0.5], "runs": 100, "risk": "misidentification",
}  # fmt: skip


def make_partial_plan(**options: Any) -> tuple[Plan, WorkBudget]:
    """Plan with a budget that is too small for the smallest gap only."""
    budget = WorkBudget(2.5e6)
    return plan(**(STEEP | options), budget=budget), budget


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_budget_that_suffices_changes_nothing(setting: dict[str, Any]) -> None:
    budget = WorkBudget(1e9)
    assert plan(**setting, budget=budget).to_dict() == plan(**setting).to_dict()
    assert 0.0 < budget.left < 1e9


def test_what_fits_has_the_figures_of_a_plan_without_a_budget() -> None:
    partial, budget = make_partial_plan()
    omitted = [(omission.name, omission.gap) for omission in partial.omissions]
    assert omitted == [("breakeven", 0.02)]
    expected = [row for row in plan(**STEEP).records() if (row["policy"], row["gap"]) not in omitted]
    assert partial.records() == expected
    # A pull of Breakeven among three arms is 1 + 3/4 units of work.
    least = sum(1.75 * 100 * outlook.observations for outlook in partial.of("breakeven"))
    assert least < 2.5e6 - budget.left <= 2.5e6


def test_a_budget_counts_the_same_for_any_number_of_threads() -> None:
    one, other = (make_partial_plan(threads=threads, runs=None) for threads in (1, 3))
    assert one[0].to_dict() == other[0].to_dict()
    assert one[1].left == other[1].left


def test_a_plan_without_runs_keeps_to_its_budget() -> None:
    """Sixteen runs at the smallest gap alone would make over 1e7 pulls; a single run may exceed what is left."""
    options = {"arms": 32, "cost": 1e-7, "sigma": 1.0, "risk": "misidentification"}
    budget = WorkBudget(1e7)
    planned = plan(**options, budget=budget)  # type: ignore[arg-type]  # options by name
    assert budget.left > -1e7
    assert {omission.gap for omission in planned.omissions} >= {0.01, 0.02, 0.05}
    without = plan(**(options | {"gaps": 0.05}))  # type: ignore[arg-type]  # options by name
    assert [omission.name for omission in without.omissions] == ["breakeven"]
    assert without.advice[-1].startswith("That is more work than a plan takes by default: choose larger gaps, or state")


def test_a_run_that_never_ends_is_cut() -> None:
    """A million million pulls per run: without a budget it would take a day."""
    budget = WorkBudget(1e7)
    planned = plan(2, cost=1e-18, sigma=1.0, gaps=[1e-3, 1.0], policies=["breakeven", "decide-now"], budget=budget)
    assert [(omission.name, omission.gap) for omission in planned.omissions] == [("breakeven", 1e-3)]
    assert "make more than " in planned.omissions[0].why


def test_long_tables_are_left_out() -> None:
    policy = DBCARE(Risk.misidentification(5e-9), 2)
    with pytest.raises(TooMuchWorkError, match="its tables have up to 36,787,945 epochs"):
        evaluate_within(WorkBudget(1e12), policy, Bandit.two_arm(0.5), policy.risk, 10, 0)
    assert "tables" not in vars(policy)


def test_interpreted_runs_count_for_more() -> None:
    def ask(state: Any, tables: Any) -> int:
        return int(str(int(state[0]) % 2)) if state[0] < 1e6 else -1  # Numba does not compile str of int here

    def init(state: Any, tables: Any, tie: int) -> None:
        state[0] = len({"not": "compiled"})

    def tell(state: Any, tables: Any, arm: int, reward: float) -> None:
        state[0] += 1.0

    def recommend(state: Any, tables: Any) -> int:
        return 0

    risk = Risk.misidentification(1e-3)
    policy = CustomPolicy(2, Rule(init, ask, tell, recommend), tables=(), state_size=1, max_pulls=10**6, risk=risk)
    with pytest.warns(NotCompiledWarning):
        runs = CountedRuns(WorkBudget(1e8), policy, Bandit.two_arm(0.5), risk, 10, 0, 1)
    assert runs.cap == math.ceil(RUN_WORK / 750)
    runs.extend()
    assert runs.was_cut
    assert runs.budget.left == pytest.approx(1e8 - 2 * RUN_WORK, rel=1e-3)


@pytest.mark.parametrize("threads", [1, 2])
def test_cancelling_ends_a_plan_between_blocks(threads: int) -> None:
    cancelled = threading.Event()
    calls = itertools.count(1)

    def is_cancelled() -> bool:
        if next(calls) == 20:
            cancelled.set()
        return cancelled.is_set()

    budget = WorkBudget(is_cancelled=is_cancelled)
    with pytest.raises(WorkCancelledError):
        plan(3, cost=1e-9, sigma=1.0, gaps=0.01, runs=100_000, threads=threads, budget=budget)
    assert next(calls) <= 20 + threads + 1  # each thread asks once more at most


def test_advice_covers_what_there_is() -> None:
    partial, _ = make_partial_plan()
    worth, against, spending, missing, remedy = partial.advice
    assert worth.startswith("Experimenting pays at gaps from 0.1 to 0.5: Breakeven loses up to ")
    assert against == "Breakeven and the fixed-size test lose about the same."
    assert "whatever the truth; at gaps from 0.1 to 0.5 it spends at most " in spending
    assert missing.startswith("Breakeven is left out at a gap of 0.02: 100 runs make about ")
    assert missing.endswith(" observations.")
    assert remedy.startswith("That is more work than one plan may take here: choose larger gaps or fewer runs, or ")


def test_advice_without_the_default_policy_names_it() -> None:
    planned = plan(**(STEEP | {"gaps": [0.02, 0.05]}), budget=WorkBudget(1e5))
    assert planned.policies == ("fixed-size-test", "decide-now")
    assert planned.max_spend is None
    breakeven, dbcare, _remedy = planned.advice
    assert breakeven.startswith("Breakeven is left out at every gap shown: at a gap of 0.05, 100 runs make about ")
    assert dbcare.startswith("DBCARE is left out at every gap shown: at a gap of 0.05, 100 runs make about ")


def test_the_table_marks_what_is_left_out() -> None:
    partial, _ = make_partial_plan()
    assert partial.policies == ("breakeven", "dbcare", "fixed-size-test", "decide-now")  # also if first at a later gap
    lines = [line.split() for line in str(partial).splitlines()]
    assert ["0.02", "Breakeven", "left", "out"] in lines
    assert sum(line[-1:] == ["*"] for line in lines) == 1  # nobody knows which one is the lowest at the other gaps
    assert partial.to_dict()["omissions"] == [
        {"gap": 0.02, "policy": "breakeven", "why": partial.omissions[0].why},
    ]


def test_the_figure_draws_what_there_is(tmp_path: Path) -> None:
    partial, _ = make_partial_plan()
    partial.plot(tmp_path / "plan.svg")
    svg = ElementTree.parse(tmp_path / "plan.svg")
    # Lines and bands are cut off at the edges of the plot; ticks and the legend are not. A band is one element.
    drawn = [use for group in svg.iterfind(".//*[@clip-path]") for use in group if use.tag.endswith("use")]
    assert len(drawn) == len(partial.outlooks) + len(partial.policies) == 11 + 4
    nothing = plan(2, cost=1e-18, sigma=1.0, gaps=1e-3, policies="breakeven", runs=2, budget=WorkBudget(1e7))
    assert nothing.outlooks == ()
    nothing.plot(tmp_path / "empty.png")
    assert (tmp_path / "empty.png").read_bytes().startswith(b"\x89PNG")
    assert "left out" in str(nothing)


def test_a_budget_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="`budget` must be a WorkBudget but got 5"):
        plan(2, cost=1e-3, sigma=1.0, budget=5)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidValueError, match="`left` must be positive but got nan"):
        WorkBudget(math.nan)
