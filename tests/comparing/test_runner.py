"""`compare`: the same call resumes, after an error, Ctrl-C, or a mistake in a function."""

import _thread
import contextlib
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dbcare
from dbcare import Priced
from dbcare.errors import AlreadyToldError, ComparisonError, InvalidValueError, StudyMismatchError
from tests.helpers.comparisons import LEVELS, make_arms, run


def test_the_same_call_resumes_and_other_settings_are_refused(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/compare.db"
    first = run(storage=storage)
    calls: list[int] = []

    def unused(number: int) -> float:
        calls.append(number)
        return 0.0

    again = run(dict.fromkeys(LEVELS, unused), storage=storage)
    assert calls == []
    assert list(again.answers()) == list(first.answers())
    with pytest.raises(StudyMismatchError, match="blocks"):
        run(None, range(10), storage=storage)


def test_an_error_on_the_way_leaves_what_was_recorded(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/compare.db"
    arms = make_arms()
    called: Counter[tuple[str, int]] = Counter()

    def make(name: str, *, fails_at: int) -> Callable[[int], float]:
        def answer(number: int) -> float:
            called[name, number] += 1
            return 99.0 if sum(called.values()) == fails_at else min(1.0, max(-1.0, arms[name](number)))

        return answer

    with pytest.raises(InvalidValueError, match=r"within the bounds -1 and 1 but got 99"):
        run({name: make(name, fails_at=20) for name in arms}, storage=storage, bounds=(-1, 1), at_once=1)
    before = Counter(called)
    called.clear()
    run({name: make(name, fails_at=-1) for name in arms}, storage=storage, bounds=(-1, 1), at_once=1)
    assert len(before & called) == 1  # only the one whose score was refused


def test_ctrl_c_ends_it_and_keeps_what_was_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    storage = f"sqlite:///{tmp_path}/compare.db"
    arms = make_arms()
    called = 0

    def interrupting(number: int) -> float:
        nonlocal called
        called += 1
        if called == 5:
            _thread.interrupt_main()
            time.sleep(1.0)
        return arms["long"](number)

    with pytest.raises(KeyboardInterrupt):
        run({**arms, "long": interrupting}, storage=storage, progress=True)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "comparison: all answers up to here are stored; the same call resumes."
    assert run(arms, storage=storage).recommendation.arm == "long"


def test_after_a_mistake_in_a_function_one_question_is_lost(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/compare.db"
    good = make_arms()

    calls: list[int] = []

    def broken(number: int) -> float:
        calls.append(number)
        raise KeyError("api_key")

    with pytest.raises(ComparisonError):
        run({**good, "long": broken}, storage=storage)
    comparison = run(good, storage=storage)
    assert comparison.recommendation.arm == "long"
    (failed,) = [answer for answer in comparison.answers() if answer.score is None]
    assert failed.arm == "long"
    assert 0.0899 < failed.price <= 0.01 * len(calls) + 1e-9  # of three questions or more, three attempts each
    assert [(failure.arm, failure.question, failure.error) for failure in comparison.failures] == [
        ("long", failed.question, None)
    ]
    assert "long has no answer to 1 question." in str(comparison)


@pytest.mark.parametrize("at_once", [1, 4])
def test_failed_calls_count_towards_the_budget_of_the_next_run(tmp_path: Path, at_once: int) -> None:
    calls = 0

    def count(number: int) -> float:
        nonlocal calls
        calls += 1
        return 0.1 * (number % 3)

    def broken(number: int) -> float:
        count(number)
        raise RuntimeError("no")

    options: dict[str, Any] = {"price": 1.0, "value": 1e6, "max_spend": 24, "at_once": at_once}
    storage = f"sqlite:///{tmp_path}/compare.db"
    for _ in range(4):
        with contextlib.suppress(ComparisonError):
            run({"broken": broken, "works": count}, range(30), storage=storage, **options)
        # With one call at a time, none is under way when the comparison ends.
        assert dbcare.load_study("comparison", storage).status().spent <= calls + 1e-9
    assert dbcare.load_study("comparison", storage).status().spent == pytest.approx(calls, abs=2 * at_once - 2 + 1e-9)
    assert calls <= 24 + 2 * at_once - 2


def test_questions_without_price_all_stay_open_after_a_mistake(tmp_path: Path) -> None:
    """Calls that raise before they cost anything leave nothing to record."""
    storage = f"sqlite:///{tmp_path}/compare.db"
    arms = {name: lambda number, arm=arm: Priced(arm(number), 0.01) for name, arm in make_arms().items()}

    def broken(number: int) -> float:
        raise KeyError("api_key")

    with pytest.raises(ComparisonError):
        run({**arms, "long": broken}, storage=storage, price=None)
    assert run(arms, storage=storage, price=None).failures == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([f"question {number}" for number in range(40)], [f"other {number}" for number in range(40)]),
        ([{"text": number} for number in range(40)], [{"text": number + 1} for number in range(40)]),
        ({str(number): number for number in range(40)}, {str(number): -number for number in range(40)}),
        ([np.full(2_000, number) for number in range(40)], [np.full(2_000, number + 0.5) for number in range(40)]),
    ],
)
def test_other_questions_with_the_same_ids_are_refused(tmp_path: Path, first: Any, second: Any) -> None:
    storage = f"sqlite:///{tmp_path}/compare.db"
    arms = {name: lambda question, name=name: random.Random(f"{name} {question}").random() for name in "ab"}
    before = run(arms, first, storage=storage)
    with pytest.raises(StudyMismatchError, match="was created for other questions"):
        run(arms, second, storage=storage)
    assert list(run(arms, first, storage=storage).answers()) == list(before.answers())


def test_other_clusters_with_the_same_names_are_refused(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/compare.db"
    run(None, range(12), cluster=[number // 3 for number in range(12)], storage=storage)
    with pytest.raises(StudyMismatchError, match="was created for other questions"):
        run(None, range(12), cluster=[number % 4 for number in range(12)], storage=storage)


def test_a_fingerprint_is_the_same_in_another_process() -> None:
    """Also for objects that other processes see at another address, of which only the type counts."""
    code = (
        "from dbcare.comparing.questions import describe_questions\n"
        "print(describe_questions({'a': {'x': [1, 2.5, None]}, 'b': object(), 'c': {'set'}}, {'a': ('a', 'b', 'c')}))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(dbcare.__file__).parents[1])}
    lines = {
        subprocess.run(
            [sys.executable, "-c", code], env=environment | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(lines) == 1


def test_a_second_process_on_the_same_comparison_is_named_as_the_cause(tmp_path: Path) -> None:
    """The second run takes a call that the first has under way for one of a process that died."""
    storage = f"sqlite:///{tmp_path}/compare.db"
    inner: list[dbcare.comparing.Comparison] = []
    lock = threading.Lock()

    def start_another(number: int) -> float:
        with lock:
            if not inner:
                inner.append(run(arms, storage=storage))
        return 5.0

    arms = make_arms()
    with pytest.raises(AlreadyToldError, match=r"Another process is running comparison 'comparison'.*one at a time"):
        run({**arms, "long": start_another}, storage=storage)
    assert inner[0].recommendation.arm == "long"
