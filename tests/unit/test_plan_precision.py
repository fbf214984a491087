"""How well a plan knows its figures: errors of a fifth at most, or limits, within a fixed amount of work."""

import math
from functools import cache
from typing import Any

import pytest
from scipy import integrate, stats

from dbcare import Bandit, Risk, Uniform, evaluate, plan
from dbcare.engines.work_budget import WorkBudget
from dbcare.planner.allocation import LEAST_RUNS, PLAN_WORK
from dbcare.planner.arguments import MAX_ARMS
from dbcare.planner.plan import Plan
from dbcare.planner.precision import RUNS_WITHOUT_ERROR, count_needed_runs, measure_chance

SETTINGS: list[dict[str, Any]] = [
    {"arms": 5, "price": 0.4, "value": 20_000, "sigma": 0.5, "gaps": [0.01, 0.1, 1.0]},
    {"arms": 2, "price": 0.02, "value": 5_000, "baseline": 0.05, "gaps": [0.01, 0.1]},
    {"arms": 3, "price": [0.5, 1.0, 3.0], "value": 5_000, "sigma": 1.0, "gaps": [0.1, 1.0]},
    {"arms": 3, "cost": 1e-6, "sigma": 1.0, "gaps": [0.1, 0.2, 2.0]},  # too cheap: not every figure can be known
]
RARE = SETTINGS[-1]


def list_errors(row: dict[str, Any]) -> dict[str, float]:
    """Return each figure's error relative to it, from the numbers of a row."""
    errors = {
        name: 2.0 * row[f"{name}_standard_error"] / row[name]
        for name in ("observations", "spend", "total_loss")
        if row[name] > 0.0
    }
    half = (row["chance_wrong_high"] - row["chance_wrong_low"]) / 2.0
    errors["wrong"] = half / row["chance_wrong"] if row["chance_wrong"] > 0.0 else math.inf
    return errors


def find_rows(planned: Plan) -> list[dict[str, Any]]:
    return [row for row in planned.to_dict()["rows"] if row["runs"]]


@cache
def plan_setting(place: int) -> tuple[list[dict[str, Any]], float]:
    """Return the rows of a plan for the setting, and the work it took."""
    budget = WorkBudget(1e12)
    rows = find_rows(plan(**SETTINGS[place], budget=budget))
    return rows, 1e12 - budget.left


@pytest.mark.parametrize("place", range(len(SETTINGS)))
def test_every_figure_is_known_to_a_fifth_or_is_a_limit(place: int) -> None:
    rows, work = plan_setting(place)
    assert work < 1.1 * PLAN_WORK
    for row in rows:
        assert row["runs"] >= LEAST_RUNS
        shown = row["shown"]
        for name, error in list_errors(row).items():
            is_small = name == "wrong" and row["chance_wrong_high"] <= 0.001
            assert shown[name].startswith("<") == (is_small or error > 0.2)
            if error > 0.2 and not is_small:
                assert row["runs_needed"] > row["runs"]
        if row["runs_needed"] is None:
            assert "/" not in shown["runs"]
    assert any(row["runs_needed"] for row in rows) == (SETTINGS[place] is RARE)


def test_a_total_that_is_not_known_has_a_spend_that_is() -> None:
    [row] = [row for row in find_rows(plan(**(RARE | {"gaps": [2.0]}), runs=1_000)) if row["policy"] == "breakeven"]
    assert row["chance_wrong"] == 0.0
    # Nothing went wrong in 1,000 runs: had one, 2/1000 would have been lost on average, and the error is twice that.
    assert row["total_loss_standard_error"] == pytest.approx(2e-3, rel=0.01)
    assert row["shown"]["total_loss"] == f"<{row['spend'] + 4e-3:.3g}"
    assert row["shown"]["wrong"] == f"<{100 * (1 - 0.025 ** (1 / 1_000)):.1f}%"
    assert row["shown"]["spend"].endswith("%")
    # 10 gap/n = spend, with two digits, rounded up.
    assert row["runs_needed"] == pytest.approx(10 * 2.0 / row["spend"], rel=0.1)


def test_more_runs_go_where_they_are_needed() -> None:
    rows, _ = plan_setting(0)
    runs = {row["gap"]: row["runs"] for row in rows if row["policy"] == "breakeven"}
    assert runs[1.0] > 10 * runs[0.01]  # at a large gap, what is rarely lost is large
    assert {row["runs"] for row in find_rows(plan(**SETTINGS[0], runs=300))} == {300}


def test_the_runs_are_the_same_for_any_number_of_threads() -> None:
    plans, left = [], []
    for threads in (1, 3):
        budget = WorkBudget(1e12)
        plans.append(plan(**SETTINGS[2], threads=threads, seed=5, budget=budget).to_dict())
        left.append(budget.left)
    assert plans[0] == plans[1]
    assert left[0] == left[1]


def test_the_number_of_needed_runs_is_that_of_the_exact_interval() -> None:
    """By Clopper and Pearson's interval for the same share of errors, from the beta distribution."""
    evaluation = evaluate(Uniform(3, 10), Bandit.one_sparse(3, 0.8), Risk.simple_regret(1e-3), runs=400, seed=1)
    share, needed = evaluation.error, count_needed_runs(evaluation)
    assert 0.0 < share < 0.2
    assert not measure_chance(evaluation).is_known()

    def error(runs: float) -> float:
        wrong = share * runs
        low, high = stats.beta.ppf(0.025, wrong, runs - wrong + 1), stats.beta.ppf(0.975, wrong + 1, runs - wrong)
        return float((high - low) / 2 / share)

    assert error(1.1 * needed) < 0.2 < error(needed / 1.2)
    assert stats.beta.ppf(0.975, 1, RUNS_WITHOUT_ERROR) < 0.001 < stats.beta.ppf(0.975, 1, RUNS_WITHOUT_ERROR - 100)


def test_the_figures_are_those_of_the_truth() -> None:
    """The chance that one of three equal arms leads, by an integral; 5 standard errors fail one time in 1.7 million."""
    planned = plan(3, cost=1e-3, sigma=1.0, gaps=0.4, policies="fixed-size-test", seed=7)
    outlook = planned.outlooks[0]
    assert isinstance(outlook.policy, Uniform)
    lead = 0.4 * math.sqrt(outlook.policy.pulls)
    right, _ = integrate.quad(lambda x: stats.norm.pdf(x - lead) * stats.norm.cdf(x) ** 2, -10.0, 20.0)
    row = outlook.record()
    error = row["chance_wrong_standard_error"]
    assert isinstance(error, float)
    assert outlook.chance_wrong == pytest.approx(1.0 - right, abs=5 * error)
    assert outlook.chance_wrong != pytest.approx((1.0 - right) / 2, abs=5 * error)  # it can fail


@pytest.mark.parametrize("rewards", [{"sigma": 1.0}, {"baseline": 0.05}])
def test_as_many_arms_as_allowed_keep_to_the_work(rewards: dict[str, float]) -> None:
    """What does not fit is left out, with the reason; more arms are refused at once."""
    budget = WorkBudget(1e12)
    planned = plan(MAX_ARMS, cost=1e-4, gaps=[0.02, 0.5], budget=budget, **rewards)  # type: ignore[arg-type]  # by name
    assert 1e12 - budget.left < 1.1 * PLAN_WORK
    assert len(planned.outlooks) + len(planned.omissions) == 8
    assert len(planned.of("breakeven")) >= 1
