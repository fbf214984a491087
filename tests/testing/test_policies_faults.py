"""The conformance suite can fail: every fault below is caught by the right checks, and by no others."""

import contextlib
import inspect
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dbcare.errors import InvalidRewardError, StoppedError
from dbcare.policies.policy import CustomPolicy
from dbcare.policies.rule import STOP, Rule, State, pick
from dbcare.policies.run import Run
from dbcare.testing import PolicySuite, policies

ARMS = 3
PULLS, TIE, SPARE, SUMS = 0, 1, 2, 3


def init(state: State, tables: Any, tie: int) -> None:
    for index in range(len(state)):
        state[index] = 0.0
    state[TIE] = tie


def ask(state: State, tables: Any) -> int:
    return int(state[PULLS]) % ARMS if state[PULLS] < tables[0] else STOP


def tell(state: State, tables: Any, arm: int, reward: float) -> None:
    if arm < ARMS:
        state[SUMS + arm] += reward
    state[PULLS] += 1


def find_tied(state: State) -> list[int]:
    best = max(state[SUMS + arm] for arm in range(ARMS))
    return [arm for arm in range(ARMS) if state[SUMS + arm] == best]


def recommend(state: State, tables: Any) -> int:
    best = find_tied(state)
    return best[pick(state[TIE], len(best))]


SOUND = Rule(init, ask, tell, recommend)


def make_policy(rule: Rule = SOUND, max_pulls: int = 9) -> CustomPolicy:
    return CustomPolicy(ARMS, rule, tables=[9, 0], state_size=SUMS + ARMS, max_pulls=max_pulls)


def ask_that_counts(state: State, tables: Any) -> int:
    state[SPARE] += 1
    return ask(state, tables)


def ask_outside(state: State, tables: Any) -> int:
    return ARMS if state[PULLS] == 1 else ask(state, tables)


def ask_forever(state: State, tables: Any) -> int:
    return int(state[PULLS]) % ARMS


def ask_by_parity(state: State, tables: Any) -> int:
    arm = ask(state, tables)
    return ARMS - 1 - arm if arm != STOP and int(state[SPARE]) % 2 else arm


def init_beyond_float(state: State, tables: Any, tie: int) -> None:
    init(state, tables, tie)
    state[SPARE] = 2**60 + 1  # exact in a list, 2^60 in a float64 array


def recommend_outside(state: State, tables: Any) -> int:
    return ARMS if state[PULLS] == 1 else recommend(state, tables)


def recommend_first(state: State, tables: Any) -> int:
    return find_tied(state)[0]


def recommend_last_twice_as_often(state: State, tables: Any) -> int:
    best = find_tied(state)
    return best[min(pick(state[TIE], len(best) + 1), len(best) - 1)]


def recommend_first_of_two(state: State, tables: Any) -> int:
    return find_tied(state)[0] if len(find_tied(state)) == 2 else recommend(state, tables)


def tell_with_numpy_integer(state: State, tables: Any, arm: int, reward: float) -> None:
    tell(state, tables, arm, reward)
    state[SPARE] = np.int64(arm)


def tell_with_infinity(state: State, tables: Any, arm: int, reward: float) -> None:
    tell(state, tables, arm, reward)
    state[SPARE] = float("inf")


def tell_that_writes_tables(state: State, tables: Any, arm: int, reward: float) -> None:
    tell(state, tables, arm, reward)
    tables[1] += 1


def make_noisy_rule() -> Rule:
    generator = np.random.default_rng(1)

    def tell_with_noise(state: State, tables: Any, arm: int, reward: float) -> None:
        tell(state, tables, arm, reward + 1e-3 * generator.normal())

    return replace(SOUND, tell=tell_with_noise)


def make_rule_with_hidden_memory() -> Rule:
    hidden = [0]

    def init_hidden(state: State, tables: Any, tie: int) -> None:
        init(state, tables, tie)
        hidden[0] = 0

    def ask_hidden(state: State, tables: Any) -> int:
        return hidden[0] % ARMS if state[PULLS] < tables[0] else STOP

    def tell_hidden(state: State, tables: Any, arm: int, reward: float) -> None:
        tell(state, tables, arm, reward)
        hidden[0] += 1

    return Rule(init_hidden, ask_hidden, tell_hidden, recommend)


class AcceptsNan(Run):
    def tell(self, reward: Any, arm: int | None = None) -> None:
        super().tell(reward if isinstance(reward, float) and np.isfinite(reward) else 0.0, arm)


class RefusesNanTooLate(Run):
    def tell(self, reward: Any, arm: int | None = None) -> None:
        try:
            super().tell(reward, arm)
        except InvalidRewardError:
            super().tell(0.0)
            raise


class RefusesNanByTypeError(Run):
    def tell(self, reward: Any, arm: int | None = None) -> None:
        try:
            super().tell(reward, arm)
        except InvalidRewardError as error:
            raise TypeError from error


class AcceptsAnyArm(Run):
    def tell(self, reward: Any, arm: int | None = None) -> None:
        super().tell(reward)


class AcceptsAfterStop(Run):
    def tell(self, reward: Any, arm: int | None = None) -> None:
        with contextlib.suppress(StoppedError):
            super().tell(reward, arm)


def with_run(run: type[Run]) -> CustomPolicy:
    class Lax(CustomPolicy):
        def start(self, seed: int = 0) -> Run:
            sound = super().start(seed)
            return run(self, sound.state, sound.pulls, sound.events)

    return Lax(ARMS, SOUND, tables=[9, 0], state_size=SUMS + ARMS, max_pulls=9)


ASK, LEGAL, STOPS, TIES = (
    "ask_changes_nothing",
    "asks_only_legal_arms",
    "stops_within_its_bound",
    "breaks_ties_uniformly",
)
SAME, ALONE, JSON, ARRAYS = (
    "is_deterministic",
    "runs_are_independent",
    "state_survives_json",
    "lists_and_arrays_agree",
)
HOOKS = "hooks_agree_with_the_rule"
TABLES, BAD, OTHER, LATE = (
    "leaves_its_tables_alone",
    "refuses_bad_rewards",
    "refuses_another_arm",
    "refuses_rewards_after_the_stop",
)


# by name: the policy, and a part of the message of each check that fails
class ForgetfulPolicy(CustomPolicy):
    """Has one expected loss too few."""

    def expected_losses(self, state: State) -> list[float]:
        return [0.0] * (self.arms - 1)


class HastyPolicy(CustomPolicy):
    """Announces other arms than it asks for."""

    def upcoming(self, state: State) -> list[int]:
        return [ARMS - 1]


class RestlessPolicy(CustomPolicy):
    """Is described by its address."""

    __repr__ = object.__repr__


def make_as(kind: type[CustomPolicy]) -> CustomPolicy:
    return kind(ARMS, SOUND, tables=[9, 0], state_size=SUMS + ARMS, max_pulls=9)


FAULTS: dict[str, tuple[Callable[[], CustomPolicy], dict[str, str]]] = {
    "none": (make_policy, {}),
    "losses of some arms": (lambda: make_as(ForgetfulPolicy), {HOOKS: "has [0.0, 0.0] for 3 arms"}),
    "announces other arms": (lambda: make_as(HastyPolicy), {HOOKS: "its upcoming arms are [2]"}),
    "no description": (lambda: make_as(RestlessPolicy), {HOOKS: "is described differently each time"}),
    "ask mutates": (
        lambda: make_policy(replace(SOUND, ask=ask_that_counts)),
        {ASK: "`ask` changed the run", BAD: "has changed", OTHER: "has changed", LATE: "has changed"},
    ),
    "asks for an invalid arm": (lambda: make_policy(replace(SOUND, ask=ask_outside)), {LEGAL: "asked for arm 3 of 3"}),
    "recommends an invalid arm": (
        lambda: make_policy(replace(SOUND, recommend=recommend_outside)),
        {LEGAL: "recommended arm 3 of 3"},
    ),
    "never stops": (lambda: make_policy(replace(SOUND, ask=ask_forever)), {STOPS: "still asks after max_pulls = 9"}),
    "exceeds its bound": (lambda: make_policy(max_pulls=6), {STOPS: "still asks after max_pulls = 6"}),
    "recommends the first of tied arms": (
        lambda: make_policy(replace(SOUND, recommend=recommend_first)),
        {TIES: "arm 0 in 400 of 400"},
    ),
    "breaks ties unequally": (
        lambda: make_policy(replace(SOUND, recommend=recommend_last_twice_as_often)),
        {TIES: "with all rewards equal"},
    ),
    "breaks ties of two unequally": (
        lambda: make_policy(replace(SOUND, recommend=recommend_first_of_two)),
        {TIES: "arm 0 in 400 runs, the tied arm 2 in 0"},
    ),
    "state with a numpy integer": (
        lambda: make_policy(replace(SOUND, tell=tell_with_numpy_integer)),
        {JSON: "not valid JSON after 1 pulls"},
    ),
    "state with infinity": (
        lambda: make_policy(replace(SOUND, tell=tell_with_infinity)),
        {JSON: "not valid JSON after 1 pulls"},
    ),
    "state beyond float64": (
        lambda: make_policy(replace(SOUND, init=init_beyond_float, ask=ask_by_parity)),
        {ARRAYS: "on a list but"},
    ),
    "draws its own random numbers": (
        lambda: make_policy(make_noisy_rule()),
        {SAME: "two different runs", ALONE: "disturb", JSON: "round trip", ARRAYS: "on a list but"},
    ),
    "keeps memory outside the state": (
        lambda: make_policy(make_rule_with_hidden_memory()),
        {ALONE: "disturb", JSON: "round trip"},
    ),
    "writes to its tables": (
        lambda: make_policy(replace(SOUND, tell=tell_that_writes_tables)),
        {TABLES: "changed its tables"},
    ),
    "accepts NaN": (lambda: with_run(AcceptsNan), {BAD: "accepted nan"}),
    "refuses NaN too late": (lambda: with_run(RefusesNanTooLate), {BAD: "has changed"}),
    "refuses NaN with another error": (lambda: with_run(RefusesNanByTypeError), {BAD: "not InvalidRewardError"}),
    "accepts any arm": (lambda: with_run(AcceptsAnyArm), {OTHER: "accepted 1.0 for arm -1"}),
    "accepts after the stop": (lambda: with_run(AcceptsAfterStop), {LATE: "accepted 1.0"}),
}


def find_failures(policy: CustomPolicy) -> dict[str, str]:
    """Return the messages of the checks that `policy` fails, by name without "test_"."""
    failed = {}
    for name, check in inspect.getmembers(PolicySuite(), inspect.ismethod):
        if name.startswith("test_"):
            try:
                check(policy)
            except AssertionError as error:
                failed[name.removeprefix("test_")] = str(error)
    return failed


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_caught_by_the_right_checks(fault: str) -> None:
    make, expected = FAULTS[fault]
    failures = find_failures(make())
    assert failures.keys() == expected.keys()
    for check, message in expected.items():
        assert message in failures[check]


def test_every_check_catches_a_fault() -> None:
    checks = {name.removeprefix("test_") for name in vars(PolicySuite) if name.startswith("test_")}
    assert checks == {check for _, expected in FAULTS.values() for check in expected}


@pytest.mark.parametrize(
    ("count", "trials", "chance", "lower", "upper"),
    [
        # P(X <= 0) = 2^-10, P(X >= 0) = 1
        (0, 10, 0.5, 2.0**-10, 1.0),
        # P(X >= 3) = 3^-3, P(X <= 3) = 1
        (3, 3, 1 / 3, 1.0, 1 / 27),
        # P(X <= 1) = (27 + 27)/64, P(X >= 1) = 37/64
        (1, 3, 0.25, 54 / 64, 37 / 64),
        (0, 0, 0.5, 1.0, 1.0),
    ],
)
def test_binomial_tails(count: int, trials: int, chance: float, lower: float, upper: float) -> None:
    smaller = min(lower, upper)
    assert policies._is_plausible(count, trials, chance, smaller * (1 - 1e-9))
    assert not policies._is_plausible(count, trials, chance, smaller * (1 + 1e-9))


def test_the_example_in_the_docstring_runs(tmp_path: Path) -> None:
    """pytest collects 12 checks of 2 policies from the example as printed."""
    documentation = inspect.getdoc(policies)
    assert documentation is not None
    lines = [line for line in documentation.splitlines() if line.startswith("    ") or not line]
    example = tmp_path / "test_example.py"
    example.write_text(textwrap.dedent("\n".join(lines)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(example)]
    plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins of others take seconds to load
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=plain)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "26 passed" in result.stdout
