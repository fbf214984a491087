"""`compare`: functions that fail, and those that return what cannot be meant."""

import asyncio
import math
import os
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare import Priced
from dbcare.errors import ComparisonError, InvalidValueError
from tests.helpers.comparisons import QUESTIONS, make_arms, run


def test_failures_leave_their_question_out_and_are_listed() -> None:
    arms: dict[str, Any] = make_arms()
    answer = arms["long"]

    def fragile(number: int) -> float:
        if number % 5 == 2:
            raise OSError(f"question {number} is unreachable")
        return float(answer(number))

    arms["long"] = fragile
    comparison = run(arms, retries=1, at_once=1)
    assert comparison.recommendation.arm == "long"
    assert comparison.failures
    for failure in comparison.failures:
        assert failure.arm == "long"
        assert QUESTIONS[failure.question] % 5 == 2
        assert isinstance(failure.error, OSError)
    failed = [answer for answer in comparison.answers() if answer.score is None]
    assert {answer.question for answer in failed} == {failure.question for failure in comparison.failures}
    assert [answer.price for answer in failed] == pytest.approx([0.02] * len(failed))  # both attempts


def test_a_retry_that_works_counts_and_costs() -> None:
    tries: Counter[int] = Counter()

    def flaky(number: int) -> float:
        tries[number] += 1
        if tries[number] == 1:
            raise RuntimeError("try again")
        return 0.9 - 0.01 * number

    comparison = run({"flaky": flaky, "bad": lambda number: -0.02 * number}, range(20), at_once=1)
    assert comparison.failures == ()
    prices = {answer.arm: answer.price for answer in comparison.answers()}
    assert prices == {"flaky": pytest.approx(0.02), "bad": pytest.approx(0.01)}


def test_waits_between_retries_double() -> None:
    times: list[float] = []

    def failing(number: int) -> float:
        times.append(time.monotonic())
        raise RuntimeError("no")

    with pytest.raises(ComparisonError):
        run({"failing": failing, "other": lambda number: 1.0}, at_once=1, retries=3, retry_delay=0.04)
    first, second, third = (later - earlier for earlier, later in pairwise(times[:4]))
    assert first >= 0.04
    assert second >= 0.08
    assert third >= 0.16


def test_nan_is_a_failed_attempt() -> None:
    scores: Counter[int] = Counter()

    def sometimes(number: int) -> float:
        scores[number] += 1
        return math.nan if number % 4 == 0 or scores[number] == 1 else 1.0 + 0.01 * number

    comparison = run({"sometimes": sometimes, "never": lambda number: 0.01 * number}, range(40), at_once=1)
    assert comparison.recommendation.arm == "sometimes"
    assert comparison.failures
    assert all((int(failure.question) - 1) % 4 == 0 for failure in comparison.failures)


def test_an_arm_that_only_fails_ends_the_comparison_with_its_exception() -> None:
    def broken(number: int) -> float:
        raise KeyError("api_key")

    with pytest.raises(ComparisonError, match=r"Arm 'broken' failed on its first 3 questions.*KeyError") as caught:
        run({"broken": broken, "works": lambda number: 1.0}, at_once=1)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("kind", ["sync", "async", "task"])
def test_a_call_that_cancels_itself_is_a_failed_call(kind: str) -> None:
    def cancel(number: int) -> float:
        if number % 5 == 2:
            raise asyncio.CancelledError
        return 0.5 + 0.01 * number

    async def cancel_asynchronously(number: int) -> float:
        return cancel(number)

    async def cancel_task(number: int) -> float:
        if number % 5 == 2:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0.0)
        return 0.5 + 0.01 * number

    function = {"sync": cancel, "async": cancel_asynchronously, "task": cancel_task}[kind]
    comparison = run({"cancels": function, "works": lambda number: 0.02 * number}, range(30), retries=0, value=1e6)
    assert comparison.recommendation.final
    assert comparison.failures
    assert {(int(failure.question) - 1) % 5 for failure in comparison.failures} == {2}
    assert {str(failure.error) for failure in comparison.failures} == {"the call cancelled itself"}


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_function_may_exit_the_program(kind: str) -> None:
    """It does so without noise on standard error, as from an event loop that was torn down."""
    code = f"""
import dbcare
def leave(number):
    raise SystemExit(3)
async def leave_asynchronously(number):
    raise SystemExit(3)
arms = {{"leaves": {"leave" if kind == "sync" else "leave_asynchronously"}, "works": lambda number: 1.0}}
dbcare.compare(arms, range(20), value=1, price=0.01, progress=False)
"""
    environment = os.environ | {"PYTHONPATH": str(Path(dbcare.__file__).parents[1])}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (3, "")


@pytest.mark.parametrize(
    ("answer", "options", "message"),
    [
        (1.5, {"bounds": (0, 1)}, r"a score must lie within the bounds 0 and 1 but got 1\.5"),
        (0.5, {"binary": True}, r"a score must be 0 or 1 but got 0\.5"),
        (2, {"binary": True, "repeats": 2}, r"a score must be 0 or 1 but got 2"),
        ("good", {}, "a score must be a number but got 'good'"),
        (None, {}, "a score must be a number but got None"),
        (Priced(0.5, -1.0), {}, r"a reported price must not be negative but got -1\.0"),
        (Priced(0.5, math.nan), {}, "a reported price must be finite but got nan"),
        (0.5, {"price": None}, "the call reports no price; return dbcare.Priced"),
    ],
)
def test_what_is_wrong_for_every_question_names_arm_and_question(
    answer: Any, options: dict[str, Any], message: str
) -> None:
    arms = {"wrong": lambda number: answer, "right": lambda number: Priced(1.0, 0.01)}
    with pytest.raises(InvalidValueError, match=f"^Arm 'wrong', question 'q[0-9]+': {message}"):
        run(arms, **options)
