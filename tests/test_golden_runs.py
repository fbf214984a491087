"""Fixed runs give the numbers that were written down: studies, searches, comparisons, replays, engines, and the API.

`.venv/bin/python -m tests.helpers.golden_runs` writes them down again. Relative differences of 1e-9 are
allowed, and of 1e-7 for integrals over what is believed, since the last bits of exponentials and of vectorized sums
differ between processors.
"""

import json
from functools import cache
from typing import Any

import pytest

from dbcare import Study
from tests.helpers.golden_runs import FOLDER, RUNS, describe_api, play_study

GOLDEN: dict[str, dict[str, Any]] = json.loads((FOLDER / "runs.json").read_text())
INTEGRALS = {
    "expected_loss", "probability_best", "estimate", "lead", "lead_interval", "interval", "anytime_interval", "lift",
}  # fmt: skip


@cache
def run(part: str) -> dict[str, Any]:
    """Run a part once, as JSON reads it."""
    found: dict[str, Any] = json.loads(json.dumps(RUNS[part]()))
    return found


def differences(actual: Any, expected: Any, path: tuple[str, ...] = ()) -> list[str]:
    """List where two results differ."""
    where = "/".join(path)
    if isinstance(expected, dict) and isinstance(actual, dict):
        if actual.keys() != expected.keys():
            return [f"{where}: fields {sorted(actual.keys() ^ expected.keys())}"]
        return [line for key in expected for line in differences(actual[key], expected[key], (*path, key))]
    if isinstance(expected, list) and isinstance(actual, list) and len(actual) == len(expected):
        pairs = enumerate(zip(actual, expected, strict=True))
        return [line for place, (one, other) in pairs for line in differences(one, other, (*path, str(place)))]
    if isinstance(expected, float) and isinstance(actual, float):
        tolerance = 1e-7 if INTEGRALS & set(path) else 1e-9
        return [] if actual == pytest.approx(expected, rel=tolerance, abs=1e-12) else [f"{where}: {actual}, {expected}"]
    return [] if actual == expected else [f"{where}: {actual}, {expected}"]


@pytest.mark.parametrize(("part", "name"), [(part, name) for part, entries in GOLDEN.items() for name in entries])
def test_runs_are_those_that_were_written_down(part: str, name: str) -> None:
    assert differences(run(part)[name], GOLDEN[part][name]) == []


def test_no_run_is_left_out() -> None:
    assert {part: list(run(part)) for part in RUNS} == {part: list(entries) for part, entries in GOLDEN.items()}


def test_the_api_has_the_paths_fields_and_types_that_were_written_down() -> None:
    expected = json.loads((FOLDER / "api.json").read_text())
    api = json.loads(json.dumps(describe_api()))
    assert differences(api["paths"], expected["paths"]) == []
    assert differences(api["components"]["schemas"], expected["schemas"]) == []


def test_a_small_difference_is_found() -> None:
    """Negative control: another script of a study, a field less, and digits beyond what is allowed."""

    def numbers(study: Study) -> dict[str, Any]:
        return {"spent": study.status().spent, "mean": study.recommendation().mean}

    settings = {"price": 0.4, "value": 500, "sigma": 1.0}
    assert differences(numbers(play_study(1, settings)), numbers(play_study(2, settings)))
    assert differences({"spent": 1.0}, {"spent": 1.0 + 1e-8}) == ["spent: 1.0, 1.00000001"]
    assert differences({"estimate": 1.0}, {"estimate": 1.0 + 1e-8}) == []
    assert differences({"a": [1]}, {"a": [1], "b": 2}) == [": fields ['b']"]
