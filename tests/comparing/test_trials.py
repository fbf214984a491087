"""`compare`: what it pays, and how it keeps to a budget."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbcare import Priced
from dbcare.comparing.trials import Meter
from tests.helpers.comparisons import make_arms, run


def test_reported_prices_and_the_judge_are_metered() -> None:
    arms = {name: lambda number, arm=arm: Priced(arm(number), 0.002) for name, arm in make_arms().items()}
    comparison = run(arms, None, lambda question, answer: Priced(answer, 0.003), price=None)
    count = len(list(comparison.answers()))
    assert comparison.spent == pytest.approx(0.005 * count)
    assert [line.price for line in comparison.arms] == pytest.approx([0.005] * 3)


def test_a_budget_is_kept_whatever_retries_cost() -> None:
    """Every attempt costs 0.01, as stated and as reported, so that the budget holds to the cent."""
    generator = random.Random(3)

    def shaky(number: int) -> Priced:
        if generator.random() < 0.4:
            failure = RuntimeError("no luck")
            failure.price = 0.01  # type: ignore[attr-defined]  # how an exception reports its price
            raise failure
        return Priced(generator.random(), 0.01)

    for budget in (0.05, 0.31, 1.0):
        comparison = run({"a": shaky, "b": shaky}, value=1e6, price=0.01, max_spend=budget, at_once=5, retries=3)
        assert budget - 0.015 < comparison.spent <= budget + 1e-9
        assert "which would exceed max_spend" in comparison.reason
        assert not comparison.recommendation.final
        assert comparison.reason in str(comparison)


@pytest.mark.parametrize("at_once", [1, 8])
def test_a_budget_is_kept_with_clusters_of_unequal_size(at_once: int) -> None:
    """Two arms, a cluster of 50 and 20 of one: the mean cluster costs 3.33, which says little about the next one."""
    groups = ["large" if number < 50 else f"small {number}" for number in range(70)]
    for seed in range(6):
        calls: list[int] = []

        def make(name: str, calls: list[int] = calls) -> Callable[[int], float]:
            def answer(number: int) -> float:
                calls.append(number)
                return random.Random(f"{name} {number}").random()

            return answer

        arms = {name: make(name) for name in "ab"}
        comparison = run(
            arms, range(70), cluster=groups, price=1.0, value=1e6, max_spend=101, seed=seed, at_once=at_once
        )
        assert comparison.spent == pytest.approx(len(calls))
        assert len(calls) <= 101
        assert "is expected to cost 50.00 USD, which would exceed max_spend, 101.00 USD" in comparison.reason


def test_repeats_are_part_of_what_a_trial_costs() -> None:
    arms = {name: lambda number, name=name: random.Random(f"{name} {number}").random() for name in "ab"}
    comparison = run(arms, range(70), price=1.0, value=1e6, repeats=10, max_spend=105, at_once=8)
    assert comparison.spent == pytest.approx(100.0)


def test_a_larger_budget_continues(tmp_path: Path) -> None:
    options: dict[str, Any] = {"storage": f"sqlite:///{tmp_path}/compare.db", "at_once": 3}
    first = run(max_spend=0.2, **options)
    assert first.spent == pytest.approx(0.2)
    again = run(max_spend=0.2, **options)
    assert list(again.answers()) == list(first.answers())
    assert again.reason == first.reason
    more = run(max_spend=5.0, **options)
    assert more.recommendation.final
    assert more.recommendation.arm == "long"
    assert list(more.answers())[: len(list(first.answers()))] == list(first.answers())


def test_only_answered_questions_say_what_one_costs() -> None:
    """A failed trial of ten questions that was broken off at its second one says what one answer costs, not ten."""
    meter = Meter({"a": 1.0}, 100.0)
    trial = meter.begin("a", 10)
    meter.add(trial, 4.0)
    trial.note_answer()
    meter.add(trial, 0.0)  # the second one failed, for nothing
    meter.end(trial, "a")
    assert meter.expect("a") == 4.0
    assert meter.spent == 4.0
