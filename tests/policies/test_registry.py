"""Policies by name: what ships, what is added, and what is refused."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pytest

import dbcare
from dbcare import Bandit, Policy, Risk, build_policy, evaluate
from dbcare.base.look import PLAIN, Look, PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.lab.experiments.passes import Point
from dbcare.policies import CustomPolicy, Guess, Rule, Uniform
from dbcare.policies.build import PolicyFacts
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES, PolicyEntry, PolicyRegistry
from dbcare.policies.rule import STOP, State
from dbcare.problem.spread import Spread

RISK = Risk.simple_regret(1e-2)
NAME = "test-policy"


@pytest.fixture(autouse=True)
def _unregister() -> Iterator[None]:
    yield
    if NAME in POLICIES:
        dbcare.unregister_policy(NAME)


def init(state: State, tables: Any, tie: int) -> None:
    state[0] = 0.0


def ask(state: State, tables: Any) -> int:
    return int(state[0]) % 2 if state[0] < 4 else STOP


def tell(state: State, tables: Any, arm: int, reward: float) -> None:
    state[0] += 1


def recommend(state: State, tables: Any) -> int:
    return 0


RULE = Rule(init, ask, tell, recommend)


@dataclass(frozen=True)
class Complete(Policy):
    """Pulls each of two arms twice, and recommends the first."""

    arms: int
    risk = None
    rule = RULE
    state_size = 1
    max_pulls = 4
    tables = ()


def test_every_shipped_policy_builds_and_says_its_own_name() -> None:
    """From the facts of a two-arm problem, with the options that it cannot do without."""
    options: dict[str, dict[str, Any]] = {
        "racing": {"delta": 0.1},
        "two-arm-confidence": {"delta": 0.1},
        "sequential-halving": {"budget": 20},
        "successive-rejects": {"budget_per_arm": 10},
        "uniform": {"pulls": 3},
        "ugape-budget": {"budget_per_arm": 10},
        "ocba": {"budget_per_arm": 10},
        "kn": {"indifference": 0.1},
        "adaptive": {"sampling": "eb-tci", "stopping": "breakeven"},
    }
    for name, entry in POLICIES.items():
        policy = build_policy(name, Bandit.two_arm(0.5), RISK, **options.get(name, {}))
        assert policy.arms == 2
        assert entry.name == name
        assert entry.label
    assert DEFAULT_POLICY in POLICIES.live
    assert set(POLICIES.planned) <= set(POLICIES.live)


def test_kinds_are_complete() -> None:
    """Each shipped policy belongs to a kind; only those of others are OTHER."""
    assert {entry.kind for entry in POLICIES.values()} == set(PolicyKind) - {PolicyKind.OTHER}
    assert POLICIES.kind("some_module:function") is PolicyKind.OTHER


def test_a_registered_policy_works_by_name() -> None:
    dbcare.register_policy(NAME, Complete, label="Test")
    assert evaluate(NAME, Bandit.two_arm(0.5), RISK, runs=10).pulls.mean == 4.0
    study = dbcare.create_study("registered", arms=["A", "B"], cost=0.01, sigma=1.0, policy=NAME)
    asked = []
    while (trial := study.ask()) is not None:
        asked.append(trial.arm)
        study.tell(trial, 1.0)
    assert asked == ["A", "B", "A", "B"]
    assert study.recommendation().arm == "A"
    assert study.recommendation().reason == "stopped after 4 trials: the policy asks for no more trials"
    rows = dbcare.plan(arms=2, cost=0.01, sigma=1.0, gaps=0.5, policies=NAME, runs=10).records()
    assert [row["policy"] for row in rows] == [NAME]
    dbcare.delete_study("registered")


def test_a_function_may_build_it() -> None:
    """It gets what it asks for of what is known, and options of its own."""
    dbcare.register_policy(NAME, lambda arms, sigma, times=2: Uniform(arms, pulls=int(times * sigma)))
    assert build_policy(NAME, Bandit.two_arm(0.5, sigma=3.0), RISK) == Uniform(2, 6)
    assert build_policy(NAME, Bandit.two_arm(0.5, sigma=3.0), RISK, times=1) == Uniform(2, 3)
    assert POLICIES[NAME].options == ["sigma", "times"]


def test_an_unknown_policy_lists_the_known_ones() -> None:
    known = ", ".join(POLICIES)
    live = ", ".join(POLICIES.live)
    with pytest.raises(InvalidValueError, match=f"`policy` must be one of {known} but got 'ucb'"):
        build_policy("ucb", Bandit.two_arm(0.5), RISK)
    with pytest.raises(InvalidValueError, match=f"`policy` must be one of {live} but got 'guess'"):
        dbcare.create_study("no such policy", arms=["A", "B"], cost=0.01, sigma=1.0, policy="guess")
    with pytest.raises(InvalidValueError, match=r"Options of racing must be among .*delta.* but got 'alpha'"):
        build_policy("racing", Bandit.two_arm(0.5), RISK, alpha=0.1)
    with pytest.raises(InvalidValueError, match="racing requires delta"):
        evaluate("racing", Bandit.two_arm(0.5), RISK)


def test_a_name_is_registered_once() -> None:
    dbcare.register_policy(NAME, Complete)
    with pytest.raises(InvalidValueError, match=f"Policy '{NAME}' is already registered as"):
        dbcare.register_policy(NAME, Guess)
    with pytest.raises(InvalidValueError, match="Policy 'guess' is already registered as"):
        dbcare.register_policy("guess", Complete)
    with pytest.raises(InvalidValueError, match="`name` must be one of"):
        dbcare.unregister_policy("guess")
    for malformed in ("My Policy", "", "two--hyphens", "-x", 3):
        with pytest.raises(InvalidValueError, match="`name` must be lowercase words joined by hyphens"):
            dbcare.register_policy(malformed, Complete)  # type: ignore[arg-type]  # wrong on purpose


def two_arguments(state: State, arm: int) -> None:
    """Lacks the tables and the reward."""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "The source of test-policy must be a Policy class or a function but got 3."),
        (int, "The source of test-policy must be a subclass of Policy but got <class 'int'>."),
        (
            type("NoStateSize", (Policy,), {"rule": RULE, "tables": (), "max_pulls": 4}),
            "NoStateSize cannot be registered as test-policy: it lacks state_size.",
        ),
        (
            type("Abstract", (Policy,), {}),
            "Abstract cannot be registered as test-policy: it lacks max_pulls, state_size, tables.",
        ),
        (
            type("WrongTell", (Complete,), {"rule": Rule(init, ask, two_arguments, recommend)}),  # type: ignore[arg-type]  # wrong on purpose
            "`tell` of test-policy must be a function of (state, tables, arm, reward) but got one with "
            f"{inspect.signature(two_arguments)}.",
        ),
        (
            type("NoAsk", (Complete,), {"rule": Rule(init, None, tell, recommend)}),  # type: ignore[arg-type]  # wrong on purpose
            "`ask` of test-policy must be a function of (state, tables) but got None.",
        ),
    ],
)
def test_what_no_engine_could_run_is_refused_at_once(source: Any, message: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        dbcare.register_policy(NAME, source)
    assert str(refused.value) == message
    assert NAME not in POLICIES


def test_what_a_function_returns_is_checked_when_it_is_built() -> None:
    dbcare.register_policy(NAME, lambda arms: arms)
    with pytest.raises(InvalidValueError, match=f"{NAME} must return a Policy but got 2"):
        build_policy(NAME, Bandit.two_arm(0.5), RISK)
    dbcare.unregister_policy(NAME)
    wrong = Rule(init, ask, two_arguments, recommend)  # type: ignore[arg-type]  # wrong on purpose
    dbcare.register_policy(NAME, lambda arms: CustomPolicy(arms, wrong, tables=(), state_size=1, max_pulls=4))
    with pytest.raises(InvalidValueError, match=f"`tell` of {NAME} must be a function of"):
        build_policy(NAME, Bandit.two_arm(0.5), RISK)


def test_a_rule_with_defaults_or_compiled_by_numba_is_fine() -> None:
    def generous(state: State, tables: Any, arm: int, reward: float, extra: float = 0.0) -> None:
        state[0] += 1

    rule = Rule(init, numba.njit(ask), generous, recommend)
    dbcare.register_policy(NAME, lambda arms: CustomPolicy(arms, rule, tables=(), state_size=1, max_pulls=4))
    assert build_policy(NAME, Bandit.two_arm(0.5), RISK).max_pulls == 4


def test_facts_leave_out_what_nobody_knows() -> None:
    facts = PolicyFacts(RISK, 3, Spread())
    assert facts.known() == {"risk": RISK, "arms": 3, "sigma": None, "sigma_pulls": 6.0, "max_pulls": 1000}
    simulated = PolicyFacts.from_bandit(Bandit.bernoulli([0.5, 0.25]), RISK).known()
    assert (simulated["gap"], simulated["family"], simulated["bound"]) == (0.25, "bernoulli", 1.0)


def test_a_registry_of_its_own_knows_only_its_entries() -> None:
    """Negative control: names come from entries, not from anywhere else."""
    registry = PolicyRegistry({"coin": "policies.planned:Guess"})
    assert list(registry) == ["coin"]
    with pytest.raises(InvalidValueError, match="`policy` must be one of coin but got 'breakeven'"):
        registry.entry("breakeven")
    assert np.isinf(registry["coin"].build(PolicyFacts(RISK, 2, Spread(sigma=1.0))).max_spend)


class NoRule(Policy):
    """Lacks a rule, which only an instance shows."""

    arms = 2
    risk = None
    state_size = 1
    max_pulls = 1
    tables = ()


def test_a_policy_without_a_rule_is_refused_when_it_is_built() -> None:
    dbcare.register_policy(NAME, NoRule)
    with pytest.raises(InvalidValueError, match=f"`rule` of {NAME} must be a Rule but got None"):
        build_policy(NAME, Bandit.two_arm(0.5), RISK)


def test_only_live_policies_are_planned() -> None:
    """A package cannot break every plan by accident, nor by an error of its own."""
    with pytest.raises(InvalidValueError, match=f"`planned` requires live=True, which {NAME} lacks"):
        PolicyEntry(NAME, Guess, live=False, planned=True)

    def broken(arms: int) -> Policy:
        raise RuntimeError("out of order")

    POLICIES.add(PolicyEntry(NAME, broken, planned=True))
    plan = dbcare.plan(arms=2, cost=0.01, sigma=1.0, gaps=0.5, runs=10)
    assert plan.left_out == {NAME: "out of order"}
    assert NAME not in plan.policies


def test_a_class_states_what_it_is_and_who_may_use_it() -> None:
    """What is given when it is registered counts more, and a subclass states nothing by inheritance."""

    class Stated(Complete):
        label = "Two each"
        kind = PolicyKind.FIXED_BUDGET
        look = Look(("#009E73",), "^")
        live = False

    class Heir(Stated):
        pass

    dbcare.register_policy(NAME, Stated)
    entry = POLICIES[NAME]
    assert (entry.label, entry.kind, entry.look, entry.live) == (Stated.label, Stated.kind, Stated.look, False)
    assert NAME not in POLICIES.live
    dbcare.unregister_policy(NAME)
    dbcare.register_policy(NAME, Stated, label="2 each", live=True)
    assert (POLICIES[NAME].label, POLICIES[NAME].live) == ("2 each", True)
    dbcare.unregister_policy(NAME)
    dbcare.register_policy(NAME, Heir)
    entry = POLICIES[NAME]
    assert (entry.label, entry.kind, entry.look, entry.live) == (NAME, PolicyKind.OTHER, PLAIN, True)


def test_a_class_that_states_nonsense_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="`kind` must be of type PolicyKind but got 'fast'"):
        dbcare.register_policy(NAME, type("Wrong", (Complete,), {"kind": "fast"}))


def test_what_ships_is_imported_when_it_is_needed() -> None:
    """Names are known without their classes, and none of these loads numba or scipy."""
    code = """
import sys
from dbcare.policies.registry import POLICIES
names = list(POLICIES)
assert "dbcare.policies.literature.kg_star" not in sys.modules
POLICIES.live, POLICIES.planned
assert "dbcare.policies.literature.kg_star" in sys.modules
assert not {"numba", "scipy"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_policy_without_a_description_of_its_own_has_a_stable_one() -> None:
    """Stored runs and results are found again by it."""

    class Plain(Policy):
        arms, risk, rule, state_size, max_pulls, tables = 2, None, RULE, 1, 4, ()

    assert repr(Plain()) == repr(Plain())
    assert "0x" not in repr(Plain())
    points = [Point(policy, Bandit.two_arm(0.5), 0.01, 10, 0) for policy in (Plain(), Plain())]
    assert points[0] == points[1]


def test_results_of_policies_that_differ_in_their_cap_differ() -> None:
    """A cap that follows from the cost is not in the tables, nor in the description of a function's policy."""

    def capped(arms: int, max_pulls: int) -> Policy:
        return CustomPolicy(arms, RULE, tables=(), state_size=1, max_pulls=max_pulls)

    keys = {Point(capped(2, cap), Bandit.two_arm(0.5), 0.01, 10, 0).key for cap in (2, 4)}
    assert len(keys) == 2
