"""`compare`: arguments that it refuses."""

from typing import Any

import numpy as np
import pytest

from dbcare import compare
from dbcare.errors import InvalidValueError
from tests.helpers.comparisons import run


@pytest.mark.parametrize(
    ("questions", "options", "message"),
    [
        (["one", "two", "one"], {}, "`questions` must be distinct but got 'one' at positions 1 and 3"),
        ([{"x": 1}, {"x": 1}], {}, r"`questions` must be distinct but got \{'x': 1\} at positions 1 and 2"),
        ({1: "one", "1": "two"}, {}, "`questions` must have ids of their own but got '1' twice"),
        (["one"], {}, "`questions` must be 2 or more questions but got 1"),
        ("text", {}, "`questions` must be a list of questions"),
        (["one", "two"], {"cluster": ["a", "a"]}, "`questions` must be 2 or more clusters of questions but got 1"),
        (["one", "two"], {"cluster": ["a"]}, r"`cluster` must be as long as `questions` \(2\) but got 1"),
        (["one", "two"], {"cluster": {"1": "a"}}, "`cluster` must have a group for every question.*'2'"),
        (["one", "two"], {"max_spend": 0.02}, r"must cover one question for every arm, 0\.03 USD, but got 0\.02 USD"),
        (["a", "b", "c"], {"max_spend": 0.05, "cluster": [1, 1, 2]}, r"must cover the largest cluster.*, 0\.06 USD,"),
        (["one", "two"], {"max_spend": 9.0, "price": None}, "`max_spend` requires `price`"),
        (["one", "two"], {"price": [0.01, 0.02]}, r"`price` must be one per arm \(3\) but got 2"),
        (["one", "two"], {"price": {"short": 1}}, "`price` must have an entry for each arm but got none for 'long'"),
        (["one", "two"], {"price": -1.0}, "`price` must be positive but got -1.0"),
        (["one", "two"], {"judge_price": -1.0}, "`judge_price` must not be negative but got -1.0"),
        (
            ["one", "two"],
            {"rate_limit": {"other": 3}},
            r"`rate_limit` must name arms \(short, long, odd\) but got 'other'",
        ),
        (["one", "two"], {"bounds": 5}, "`bounds` must be two numbers, the lower one first, but got 5"),
        (["one", "two"], {"bounds": [0]}, "`bounds` must be two numbers, the lower one first, but got"),
        (["one", "two"], {"bounds": (None, 1)}, "`bounds` must be a real number but got None"),
        (["one", "two"], {"bounds": ("x", "y")}, "`bounds` must be a real number but got 'x'"),
        (["one", "two"], {"bounds": (0, 5), "binary": True}, "in one way but got bounds=0,5 and binary=True"),
        (["one", "two"], {"bounds": (0, 5), "binary": True, "repeats": 2}, "in one way but got bounds=0,5 and"),
        ({0: "one", 1: "two"}, {"cluster": {0: "a"}}, "`cluster` must have a group for every question.*'1'"),
        (["one", "two"], {"rate_limit": 0}, "`rate_limit` must be positive but got 0.0"),
        (["one", "two"], {"retries": -1}, "`retries` must be at least 0 but got -1"),
        (["one", "two"], {"at_once": 0}, "`at_once` must be at least 1 but got 0"),
        (["one", "two"], {"timeout": 0}, "`timeout` must be positive but got 0.0"),
        (["one", "two"], {"repeats": 0}, "`repeats` must be at least 1 but got 0"),
        (["one", "two"], {"progress": 1}, "`progress` must be True or False but got 1"),
        (["one", "two"], {"value": -3}, "`value` must be positive but got -3.0"),
        (["one", "two"], {"control": "nobody"}, "`control` must be one of short, long, odd but got 'nobody'"),
    ],
)
def test_bad_arguments(questions: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        run(None, questions, **options)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (["a", "b"], "`arms` must be a mapping of names to functions"),
        ({"a": len}, "`arms` must be 2 or more different names"),
        ({"a": len, "b": "prompt"}, "`arms` must have a function for 'b' but got 'prompt'"),
    ],
)
def test_bad_arms(arms: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        compare(arms, ["one", "two"], value=1)
    with pytest.raises(InvalidValueError, match="`score` must be a function"):
        run(None, ["one", "two"], 3)


def test_clusters_are_found_by_ids_as_they_were_given() -> None:
    questions = {number: number for number in range(8)}
    comparison = run(None, questions, cluster={number: number // 2 for number in questions}, value=1e6)
    assert {answer.question for answer in comparison.answers()} == {"0", "1", "2", "3"}


def test_long_arrays_are_told_apart_by_their_contents() -> None:
    """Their representations, with an ellipsis in the middle, are all the same."""
    arrays = [np.zeros(2_000) + (np.arange(2_000) == place) for place in (1_000, 1_001, 1_002)]
    assert len({repr(array) for array in arrays}) == 1
    arms = {"sum": lambda array: float(array.sum()), "first": lambda array: float(array[1_000])}
    assert run(arms, arrays).questions_used == 3
    with pytest.raises(InvalidValueError, match="at positions 1 and 4"):
        run(arms, [*arrays, arrays[0].copy()])
