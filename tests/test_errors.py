"""Wrong types and values in the public API raise nothing but the package's own errors.

Each call is sound as written. Hypothesis replaces up to two of its arguments by things that somebody might pass by
mistake. The call may succeed, or raise a DbcareError; any other exception fails the test.
"""

import enum
import inspect
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dbcare
from dbcare import client, comparing, engines, planner, policies, problem, replay, studies
from dbcare.errors import DbcareError
from dbcare.lab.experiments import definition
from dbcare.problem.spread import Spread
from dbcare.studies.record.ledger import summarize
from dbcare.theory import breakeven, budgets, elimination, lower, upper

settings.register_profile("dbcare", derandomize=True, deadline=None, max_examples=100, database=None)
settings.load_profile("dbcare")

NUMBERS: list[Any] = [
    math.nan, math.inf, -math.inf, 0, 0.0, -0.0, -1, 0.5, 1, 1.5, 2, 5e-324, 1e-60, 1e-50, 1e50, 1e60, 1.7e308,
    2**63, -(2**63), 2**64, 10**400, 1j, Fraction(1, 3), Decimal(1), True, timedelta(1), timedelta.max,
]  # fmt: skip
TEXTS: list[Any] = [
    "", " ", "A", "B", "1", "nan", "\udc80", "a\0b", "a\nb", "x" * 10_000, "no:such", ".:x", "math:pi", "builtins:max",
    "../x", "http://", "sqlite://", "nosuch://host/x", "=1+1", "\N{SNOWMAN}", b"", b"A",
]  # fmt: skip
ARRAYS: list[Any] = [
    np.array(1.0), np.array([]), np.array([0.5, 0.25]), np.zeros((2, 2)), np.array(["A", "B"]), np.array([None, 1]),
    np.float32(1.0), np.float64("nan"), np.int8(2), np.uint64(2**64 - 1), np.bool_(True), np.datetime64("2020-01-01"),
]  # fmt: skip
NESTED: list[Any] = [
    [], (), {}, set(), [None], [[]], [[1]], [1], (1, 2), (1, 0.5), [(1,)], [(1, 0.5, 2)], [(None, 1)], ["A", "B"],
    [["A"], ["B"]], ["A", "A"], [("A",)], [("A", "B")], [("A", None)], [({}, 1.0)], [("A", 1e60)], {"A": 1.0},
    {"policy": "x", "state": [10**400], "pulls": math.inf, "events": [1]}, [dbcare.Trial("x", None, "y")],  # type: ignore[arg-type]  # wrong on purpose
]  # fmt: skip
OBJECTS: list[Any] = [
    None, object(), int, ..., Path("nowhere/x.csv"), Path("."), policies.Guess(2), dbcare.Bernoulli(0.5),
    dbcare.Trial(None, [], object()),  # type: ignore[arg-type]  # wrong on purpose
    dbcare.Risk.misidentification([0.1, 0.2, 0.3]), dbcare.Bandit.two_arm(0.5), dbcare.Loss.SIMPLE_REGRET,
]  # fmt: skip


class Unshowable:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise ZeroDivisionError

    __str__ = __repr__


class UnshowableText(str):
    """A text whose representation raises."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise ZeroDivisionError


class UnshowableNumber(float):
    """A number that cannot be shown."""

    def __repr__(self) -> str:
        raise ZeroDivisionError

    __str__ = __repr__


def nest(depth: int) -> list[Any]:
    """Return a list in a list, and so on, deeper than Python calls functions."""
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


HOSTILE: list[Any] = [
    Unshowable(), [Unshowable()], [[Unshowable(), 1.0]], [("A", Unshowable())], [("A", 1.0, None)],
    {"A": Unshowable(), "B": 1.0}, {Unshowable(): 1.0}, np.array([Unshowable(), 1.0]), UnshowableText("A"),
    UnshowableText("no/such"), UnshowableNumber(0.5), UnshowableNumber("nan"), UnshowableNumber(-1.0), [10**400],
    10**5_000, [[10**5_000]], -(10**400), [1.0, 10**400], Fraction(10**400, 3), Decimal("1e400"), Decimal("nan"),
    Decimal("sNaN"), [math.nan, 0.5], ["A", "\ud800"], {"\ud800": 1.0}, "a\ud800b", "sqlite:///\ud800.db",
    "\ud800.csv", "\0.csv", "x" * 1_000_000, ["A", "x" * 1_000_000], nest(100_000), b"\xff", bytearray(b"A"), range(3),
    memoryview(b"A"), frozenset("AB"), slice(None), NotImplemented,
]  # fmt: skip
WRONG = st.sampled_from([*NUMBERS, *TEXTS, *ARRAYS, *NESTED, *OBJECTS, *HOSTILE]) | st.builds(
    lambda items: (item for item in items), st.lists(st.sampled_from([*NUMBERS, *NESTED]), max_size=3)
)

MI, SR = dbcare.Risk.misidentification(0.01), dbcare.Risk.simple_regret(0.01)
PAIR = dbcare.Bandit.two_arm(0.5)
EVEN = policies.Uniform(2, 1)
STUDY: dict[str, Any] = {"arms": ["A", "B"], "cost": 0.01, "sigma": 1.0}


@dataclass(frozen=True)
class Call:
    """A function with arguments that it accepts.

    Those that are `fixed` are not replaced, and values that are `never` passed are left out: they are sound and would
    take long. `raises` is what Python itself may raise beside our own errors.
    """

    function: Callable[..., Any]
    arguments: dict[str, Any]
    fixed: tuple[str, ...] = ()
    never: tuple[Any, ...] = ()
    raises: type[Exception] = DbcareError


def _create(**arguments: Any) -> None:
    name = arguments.pop("name")
    study = dbcare.create_study(name, **arguments)
    dbcare.delete_study(study.name, arguments.get("storage"))


def _study_method(method: str) -> Callable[..., Any]:
    def call(**arguments: Any) -> None:
        study = dbcare.create_study("wrong", **STUDY)
        try:
            if method != "run":  # which would wait for them
                study.ask(2)
            if method == "retire":
                study.add([("A", 1.0)])
            getattr(study, method)(**arguments)
            json.dumps([study.settings.to_dict(), summarize(study._ledger._ledger)], allow_nan=False)  # type: ignore[attr-defined]  # of a stored study
        finally:
            dbcare.delete_study("wrong")

    return call


def _add_in_block(**observation: Any) -> None:
    study = dbcare.create_study("wrong blocks", **STUDY, blocks=3)
    try:
        study.add([tuple(observation.values())])
    finally:
        dbcare.delete_study("wrong blocks")


def _register(**arguments: Any) -> None:
    dbcare.register_policy(**arguments)
    dbcare.unregister_policy(arguments["name"])


def _tell_run(**arguments: Any) -> None:
    run = dbcare.Breakeven(MI, 2).start()
    run.tell(**arguments)
    json.dumps(run.snapshot(), allow_nan=False)


SNAPSHOT = EVEN.start().snapshot()
CALLS = {
    "Bandit": Call(dbcare.Bandit, {"arms": PAIR.arms, "names": ("A", "B"), "bound": 1.0}),
    "Bandit.gaussian": Call(dbcare.Bandit.gaussian, {"means": [0.5, 0.0], "sigma": 1.0, "bound": 1.0}),
    "Bandit.bernoulli": Call(dbcare.Bandit.bernoulli, {"means": [0.5, 0.0], "bound": 1.0}),
    "Bandit.categorical": Call(
        dbcare.Bandit.categorical, {"values": [0, 1], "probabilities": [[0.5, 0.5], [0.25, 0.75]], "bound": 1.0}
    ),
    "Bandit.empirical": Call(dbcare.Bandit.empirical, {"data": [[1, 2], [2, 3]], "bound": 1.0}),
    "Bandit.two_arm": Call(dbcare.Bandit.two_arm, {"gap": 0.5, "sigma": 1.0}),
    "Bandit.two_arm_bernoulli": Call(dbcare.Bandit.two_arm_bernoulli, {"gap": 0.5}),
    "Bandit.one_sparse": Call(dbcare.Bandit.one_sparse, {"arms": 3, "gap": 0.5, "sigma": 1.0}),
    "Bandit.linear_decay": Call(dbcare.Bandit.linear_decay, {"arms": 3, "gap": 0.5, "sigma": 1.0}),
    "Bandit.drug_leveled": Call(dbcare.Bandit.drug_leveled, {"reading": "nested", "table": 2}),
    "Bandit.require_bound": Call(PAIR.require_bound, {"bound": 1.0}),
    "GaussianBlocks": Call(
        problem.GaussianBlocks,
        {"arms": PAIR.arms, "names": ("A", "B"), "bound": 1.0, "correlation": 0.5, "drift": 1.0, "period": 9.0},
    ),
    "GaussianBlocks.of": Call(
        problem.GaussianBlocks.of, {"means": [0.5, 0.0], "sigma": 1.0, "correlation": 0.5, "drift": 1.0, "period": 9.0}
    ),
    "ScoreTable": Call(problem.ScoreTable, {"scores": [[1, 0], [0.5, 0]], "names": ("A", "B"), "bound": 1.0}),
    "Bernoulli": Call(dbcare.Bernoulli, {"mean": 0.5}),
    "Categorical": Call(dbcare.Categorical, {"values": (0, 1), "probabilities": (0.5, 0.5)}),
    "Empirical": Call(dbcare.Empirical, {"data": (0, 1)}),
    "Gaussian": Call(dbcare.Gaussian, {"mean": 0.5, "sigma": 1.0}),
    "Risk": Call(dbcare.Risk, {"loss": "simple_regret", "cost": 0.1, "value": 2.0}),
    "Risk.misidentification": Call(dbcare.Risk.misidentification, {"cost": None, "price": 0.1, "value": 2.0}),
    "Risk.simple_regret": Call(dbcare.Risk.simple_regret, {"cost": None, "price": 0.1, "value": 2.0}),
    "Risk.costs": Call(MI.costs, {"arms": 2}),
    "Risk.money": Call(dbcare.Risk.misidentification(price=1, value=2).money, {"amount": 2.0, "currency": "USD"}),
    "Risk.in_money": Call(dbcare.Risk.misidentification(price=1, value=2).in_money, {"amount": 2.0}),
    "Money": Call(lambda **given: str(problem.Money(**given)), {"amount": 1.0, "currency": "USD"}),
    "Breakeven": Call(
        dbcare.Breakeven,
        {"risk": SR, "arms": 2, "sigma": 1.0, "sigma_pulls": 6.0, "bound": 1.0, "largest_sigma": 2.0, "not_before": 3},
    ),
    "BreakevenRounds": Call(
        dbcare.BreakevenRounds,
        {"risk": SR, "arms": 2, "bound": 1.0, "pool": 9, "only_these_blocks": True, "first_blocks": 3, "not_before": 4},
    ),
    "BreakevenRacing": Call(dbcare.BreakevenRacing, {"risk": SR, "arms": 2, "sigma": 1.0}),
    "DBCARE": Call(dbcare.DBCARE, {"risk": SR, "arms": 2, "sigma": 1.0, "bound": 1.0, "confidence": "paper"}),
    "Guess": Call(policies.Guess, {"arms": 2}),
    "KnownGapOracle": Call(
        lambda **given: policies.KnownGapOracle(**given).pulls, {"risk": SR, "gap": 0.5, "sigma": 1.0}
    ),
    "KnownGapSPRT": Call(policies.KnownGapSPRT, {"risk": SR, "gap": 0.5, "threshold": 2.0, "sigma": 1.0}),
    "Uniform": Call(policies.Uniform, {"arms": 2, "pulls": 3}),
    "SequentialHalving": Call(policies.SequentialHalving, {"arms": 4, "budget": 40, "ranking": "all"}),
    "SuccessiveRejects": Call(policies.SuccessiveRejects, {"arms": 4, "budget": 40}),
    "Racing": Call(policies.Racing, {"arms": 3, "delta": 0.1, "sigma": 1.0, "max_pulls": 100}),
    "TwoArmConfidence": Call(
        policies.TwoArmConfidence, {"delta": 0.1, "sigma": 1.0, "rate": "union", "max_pulls": 100}
    ),
    "LUCB": Call(policies.LUCB, {"arms": 3, "delta": 0.1, "sigma": 1.0, "max_pulls": 100}),
    "KLLUCB": Call(policies.KLLUCB, {"arms": 3, "delta": 0.1, "rate": "heuristic", "max_pulls": 100}),
    "LilUCB": Call(
        lambda **given: policies.LilUCB(**given).tables,
        {"arms": 3, "delta": 0.1, "sigma": 1.0, "rate": "proven", "max_pulls": 100},
    ),
    "UGapE": Call(policies.UGapE, {"arms": 3, "delta": 0.1, "sigma": 1.0, "max_pulls": 100}),
    "UGapEBudget": Call(policies.UGapEBudget, {"arms": 3, "budget": 40, "sigma": 1.0}),
    "TrackAndStop": Call(
        policies.TrackAndStop,
        {"arms": 3, "delta": 0.1, "sigma": 1.0, "family": "bernoulli", "rate": "heuristic", "max_pulls": 100},
    ),
    "EBTCI": Call(
        policies.EBTCI,
        {"arms": 3, "delta": 0.1, "sigma": 1.0, "family": "gaussian", "rate": "proven", "max_pulls": 100},
    ),
    "OCBA": Call(policies.OCBA, {"arms": 3, "budget": 40, "first_pulls": 3}),
    "KN": Call(
        lambda **given: policies.KN(**given).tables,
        {"arms": 3, "indifference": 0.1, "delta": 0.1, "first_pulls": 4, "max_pulls": 100},
    ),
    "ChickFrazier": Call(policies.ChickFrazier, {"risk": SR, "arms": 3, "sigma": 1.0, "max_pulls": 100}),
    "TwoArmLikelihood": Call(policies.TwoArmLikelihood, {"delta": 0.1, "rate": "heuristic", "max_pulls": 100}),
    "TwoArmChickFrazier": Call(policies.TwoArmChickFrazier, {"risk": SR, "sigma": 1.0}),
    "KGStar": Call(policies.KGStar, {"risk": SR, "arms": 3, "sigma": 1.0, "max_pulls": 100}),
    "Adaptive": Call(
        policies.Adaptive,
        {
            "arms": 3, "sampling": "eb-tci", "stopping": "breakeven", "risk": SR, "sigma": 1.0, "sigma_pulls": 6.0,
            "bound": 1.0, "largest_sigma": 2.0, "delta": 0.1, "budget": 40, "family": "gaussian", "rate": "proven",
            "max_pulls": 100,
        },
    ),
    "CustomPolicy": Call(
        policies.CustomPolicy,
        {"arms": 2, "rule": EVEN.rule, "tables": (), "state_size": 9, "max_pulls": 5, "risk": SR, "name": "mine"},
    ),
    "Look": Call(policies.Look, {"colors": ("#000000",), "marker": "o", "hollow": True}),
    "PolicyEntry": Call(
        policies.PolicyEntry,
        {"name": "a", "source": policies.Guess, "label": "A", "look": policies.Look(), "live": True, "planned": False},
    ),
    "register_policy": Call(_register, {"name": "wrong", "source": policies.Guess, "label": "A", "live": True}),
    "unregister_policy": Call(dbcare.unregister_policy, {"name": "none"}),
    "build_policy": Call(
        lambda name, bandit, risk, delta: dbcare.build_policy(name, bandit, risk, delta=delta),
        {"name": "racing", "bandit": PAIR, "risk": SR, "delta": 0.1},
    ),
    "Policy.start": Call(EVEN.start, {"seed": 1}),
    "Policy.resume": Call(EVEN.resume, {"snapshot": SNAPSHOT}),
    "Policy.resume, a part": Call(lambda **given: EVEN.resume(given), SNAPSHOT),
    "Run.tell": Call(_tell_run, {"reward": 0.5, "arm": 0}),
    "best_sprt": Call(
        engines.best_sprt, {"risk": SR, "gap": 1.0, "family": "gaussian", "sigma": 1.0}, fixed=("gap", "sigma")
    ),
    "evaluate": Call(
        dbcare.evaluate,
        {"policy": EVEN, "bandit": PAIR, "risk": SR, "runs": 2, "seed": 1, "engine": "direct", "threads": 1},
    ),
    "evaluate, by name": Call(dbcare.evaluate, {"policy": "guess", "bandit": PAIR, "risk": SR}),
    "evaluate_grid": Call(
        dbcare.evaluate_grid, {"policy": EVEN, "gaps": [0.5], "family": "gaussian", "sigma": 1.0}
    ),
    "plan": Call(
        dbcare.plan,
        {"arms": 2, "price": 0.1, "value": 2.0, "cost": None, "sigma": 1.0, "baseline": None, "bounds": None}
        | {"risk": "simple_regret", "gaps": 0.5, "policies": "decide-now", "runs": 2, "seed": 1, "threads": 1}
        | {"per_day": 10.0, "not_before": 3, "control": "A"},
        fixed=("policies",),
    ),
    "plan, policies": Call(
        lambda policies: dbcare.plan(2, cost=0.1, sigma=1.0, gaps=0.5, runs=2, policies=policies),
        {"policies": "decide-now"},
        never=(None,),
    ),
    "PlanSetting": Call(
        planner.PlanSetting, {"arms": 2, "risk": SR, "spread": Spread(sigma=1.0)}
    ),
    "create_study": Call(
        _create,
        {"name": "wrong", **STUDY, "price": None, "value": None, "direction": "maximize", "risk": "simple_regret"}
        | {"bounds": None, "binary": False, "policy": "breakeven", "load_if_exists": False, "description": "x"}
        | {"baseline": None, "sigma_pulls": 6.0, "cap": 9.0}
        | {"max_spend": 5.0, "max_ahead": 3, "timeout_reward": 0.0, "currency": "USD", "seed": 1},
    ),
    "create_study, blocks": Call(
        _create,
        {"name": "wrong", **STUDY, "rounds": False, "blocks": ("1", "2", "3"), "only_these_blocks": False}
        | {"control": "A", "not_before": 3},
    ),
    "create_study, rounds": Call(_create, {"name": "wrong", **STUDY, "rounds": True, "blocks": None}),
    "create_study, rates": Call(
        _create,
        {"name": "wrong", "arms": ["A", "B"], "cost": 0.1, "binary": True, "missing": "at random", "not_before": "14d"},
    ),
    "create_study, storage": Call(_create, {"name": "wrong", **STUDY, "storage": None}),
    "load_study": Call(dbcare.load_study, {"name": "none", "storage": None}),
    "delete_study": Call(dbcare.delete_study, {"name": "none", "storage": None}),
    "list_studies": Call(dbcare.list_studies, {"storage": None}),
    "find_studies": Call(
        dbcare.find_studies, {"search": "x", "storage": None, "after": None, "limit": 2, "by_state": False}
    ),
    "Settings": Call(
        studies.Settings,
        {"arms": ("A", "B"), "cost": 0.1, "value": 2.0, "currency": "USD", "risk": "simple_regret", "sigma": 1.0}
        | {"direction": "maximize", "bounds": None, "binary": False, "policy": "breakeven", "max_spend": 2.0}
        | {"max_ahead": 5, "timeout_reward": 1.0, "seed": 1, "description": "x"}
        | {"baseline": None, "sigma_pulls": 6.0, "cap": 9.0},
    ),
    "Study.ask": Call(
        _study_method("ask"), {"n": 2, "lease": "30m", "worker": "w", "timeout_reward": 0.0, "key": "k"}
    ),
    "Study.ask, unit": Call(_study_method("ask"), {"n": None, "lease": "30m", "unit": "u"}),
    "Study.assign": Call(
        _study_method("assign"), {"unit": "u", "fallback": "A", "within": 5.0, "lease": "30m", "worker": "w"}
    ),
    "Study.give_back": Call(_study_method("give_back"), {"unit": "u", "tag": "t"}),
    "Study.set_max_ahead": Call(_study_method("set_max_ahead"), {"max_ahead": 5}),
    "Study.tell, unit": Call(
        _study_method("tell"), {"unit": "u", "reward": None, "failed": True, "charged": True, "reason": "x"}
    ),
    "Study.tell": Call(
        _study_method("tell"), {"trial": 1, "reward": None, "failed": True, "charged": True, "reason": "x"}
    ),
    "Study.tell_many": Call(_study_method("tell_many"), {"outcomes": [(1, 0.5), (2, 1.0)]}),
    "Study.add": Call(_study_method("add"), {"observations": [("A", 0.5)]}),
    "Study.add, blocks": Call(_add_in_block, {"arm": "A", "reward": 0.5, "block": "2"}),
    "Study.tell, price": Call(_study_method("tell"), {"trial": 1, "reward": 0.5, "price": 0.013}),
    "Study.export": Call(_study_method("export"), {"path": "trials.csv"}, raises=OSError),
    "Study.to_dataframe": Call(_study_method("to_dataframe"), {"library": "polars"}),
    "Study.plot": Call(_study_method("plot"), {"path": "study.png"}, raises=OSError),
    "Study.report": Call(_study_method("report"), {"path": "page.html", "plan": None}, raises=OSError),
    "Study.run": Call(
        _study_method("run"),
        {"function": lambda trial: float(trial.arm == "A"), "workers": 2, "lease": "30m", "max_failures": 1}
        | {"progress": False},
    ),
    "Study.give_up": Call(_study_method("give_up"), {"trials": [1], "worker": "w", "older_than": "1m"}),
    "Study.stop": Call(_study_method("stop"), {"reason": "done"}),
    "Study.describe": Call(_study_method("describe"), {"description": "text"}),
    "Study.retire": Call(_study_method("retire"), {"arm": "A", "reason": "withdrawn"}),
    "read_log": Call(dbcare.read_log, {"source": "log.csv"}),
    "read_log, a mapping": Call(
        dbcare.read_log,
        {"source": {"arm": ["A"], "reward": [1.0], "unit": [1], "time": [2.0]}, "arm_column": "arm"}
        | {"reward_column": "reward", "unit_column": "unit", "time_column": "time"},
    ),
    "read_log, a cell": Call(
        lambda **given: dbcare.read_log(
            {name: ["1", cell] for name, cell in given.items()}, unit_column="unit", time_column="time"
        ),
        {"arm": "A", "reward": 1.0, "unit": 1, "time": 2.0},
    ),
    "replay_log": Call(
        dbcare.replay_log,
        {"observations": [("A", 1.0), ("B", 0.0)], "cost": 0.1, "sigma": 1.0, "bounds": None, "sigma_pulls": 6.0}
        | {"orders": 2},
    ),
    "read_block_log": Call(
        dbcare.read_block_log,
        {"source": {"arm": ["A"], "question": ["q"], "score": [1.0], "cost": [0.1]}, "arm_column": "arm"}
        | {"block_column": "question", "reward_column": "score", "price_column": "cost", "shared_only": False},
    ),
    "read_block_log, a file": Call(dbcare.read_block_log, {"source": "log.jsonl"}),
    "read_harness_samples": Call(
        dbcare.read_harness_samples,
        {"files": {"A": "a.jsonl"}, "metric": "acc", "filter_name": None, "shared_only": True},
    ),
    "replay_blocks": Call(
        dbcare.replay_blocks,
        {"log": replay.BlockLog(("A", "B"), ("1", "2"), ((1.0, 0.5), (0.0, 0.2))), "price": 0.1, "value": 2.0}
        | {"orders": 2, "only_these_blocks": False, "bounds": None},
    ),
    "compare": Call(
        dbcare.compare,
        {"arms": {"A": float, "B": float}, "questions": [1, 2, 3], "score": None, "value": 9.0, "price": 0.1}
        | {"judge_price": 0.0, "max_spend": 5.0, "at_once": 2, "retries": 0, "timeout": 5.0, "repeats": 1}
        | {"cluster": None, "only_these_questions": False, "direction": "maximize", "risk": "simple_regret"}
        | {"bounds": None, "binary": False, "control": None, "currency": "USD", "seed": 1, "name": "wrong"}
        | {"storage": None, "progress": False},
        never=(10**400,),
    ),
    "connect": Call(dbcare.connect, {"address": "http://127.0.0.1:9", "key": "k", "timeout": 1.0, "patience": 0.0}),
}  # fmt: skip

SOUND: dict[str, Any] = {
    "loss": dbcare.Loss.SIMPLE_REGRET, "gap": 0.5, "gaps": [0.25, 0.5], "smallest_gap": 0.25, "cost": 1e-4,
    "sigma": 1.0, "bound": 1.0, "arms": 3, "survivors": 2, "complexity": 20.0, "undecided": 2, "budget": 100.0,
    "preset": "paper", "hardness": 2.0,
}  # fmt: skip


def _list_theory() -> dict[str, Call]:
    """Return a call of each function of the theory whose arguments are checked."""
    calls = {}
    for module in (breakeven, budgets, elimination, lower, budgets, upper):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                taken = inspect.signature(function).parameters
                given = {each: SOUND[each] for each in taken}
                calls[f"{module.__name__.rpartition('.')[2]}.{name}"] = Call(function, given)
    return calls


CALLS |= _list_theory()


@pytest.mark.filterwarnings("ignore::dbcare.errors.DbcareWarning")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_raise_errors_of_the_package(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBCARE_STORAGE", raising=False)
    call = CALLS[name]
    free = [argument for argument in call.arguments if argument not in call.fixed]

    wrong = WRONG.filter(lambda value: not any(value is other for other in call.never))

    @settings(max_examples=30, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(st.sampled_from(free), wrong), min_size=1, max_size=2))
    def attack(replaced: list[tuple[str, Any]]) -> None:
        assert explains(lambda: call.function(**call.arguments | dict(replaced)), call.raises)

    attack()


@pytest.mark.filterwarnings("ignore::dbcare.errors.DbcareWarning")
@pytest.mark.parametrize("name", CALLS)
def test_every_hostile_value_is_survived_in_every_argument(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chance would leave many of these out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBCARE_STORAGE", raising=False)
    call = CALLS[name]
    for argument, hostile in product(call.arguments, HOSTILE):
        if argument not in call.fixed:
            assert explains(partial(call.function, **call.arguments | {argument: hostile}), call.raises)


def explains(call: Callable[[], Any], raises: type[Exception] = DbcareError) -> bool:
    """Return whether a call succeeds or says what is wrong; other errors than ours and `raises` are raised."""
    try:
        call()
    except (DbcareError, raises) as error:
        return bool(str(error))
    return True


def test_every_public_function_and_every_class_that_checks_is_called() -> None:
    """Records that the package returns check nothing; enumerations and base classes are Python's own."""
    packages = (dbcare, client, comparing, engines, planner, policies, problem, replay, studies)
    public = {name: getattr(each, name) for each in packages for name in each.__all__ if name != "__version__"}
    called = {
        name
        for name, value in public.items()
        if inspect.isfunction(value)
        or (inspect.isclass(value) and not issubclass(value, enum.Enum) and hasattr(value, "__post_init__"))
    }
    assert called - CALLS.keys() == set()
    methods = {f"Study.{name}" for name, value in inspect.getmembers(dbcare.Study) if is_for_users(name, value)}
    assert methods - CALLS.keys() == set()


def is_for_users(name: str, value: Any) -> bool:
    """Return whether users pass arguments to a method; checks are for the service."""
    taken = inspect.signature(value).parameters if inspect.isfunction(value) else {}
    return len(taken) > 1 and not name.startswith(("_", "check_"))


class OwnError(Exception):
    """An error of the user's own code."""


def test_an_error_of_the_callers_own_iterator_passes_through() -> None:
    """It is not the package's to explain, and what was given before it has no effect."""

    def fail() -> Iterator[Any]:
        yield ("A", 1.0)
        raise OwnError

    study = dbcare.create_study("own error", **STUDY)
    calls: list[Callable[[Any], Any]] = [study.add, study.tell_many, dbcare.Bandit.gaussian, dbcare.Risk.simple_regret]
    for call in calls:
        with pytest.raises(OwnError):
            call(fail())
    assert study.status().asked == 0
    dbcare.delete_study("own error")


# What a TOML file can hold.
TOML = [
    "nan", "inf", "-1", "0", "1e-60", "1e60", "1.5", "true", "1979-05-27", "9" * 400, '""', '"x"', '"\\u0000"', "[]",
    "[[]]", "[1, 2]", '["A"]', "{}", "{from = 1, to = 1e300}", "{from = 1, to = 2, points = 1e9}",
    "[{}]", "[{policy = 1}]",
]  # fmt: skip
SWEEP = {
    "title": '"T"', "cost": "0.1", "runs": "10", "seed": "1", "losses": '["simple_regret"]', "source": '"S"',
    "decisions": "[]", "claims": "[]", "policies.G": '{policy = "guess"}',
    "policies.R": '{policy = "racing", delta = 0.1}',
}  # fmt: skip
SWEPT = {
    "bandit": '"one-sparse"',
    "arms": "[3, 4]",
    "gap": "{from = 0.1, to = 1, points = 3}",
    "sigma": "1",
    "bound": "2",
}


@pytest.mark.filterwarnings("ignore::dbcare.errors.DbcareWarning")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from([*SWEEP, "policies", "settings"]), st.sampled_from(TOML), max_size=2),
    st.dictionaries(st.sampled_from([*SWEPT, "means", "values"]), st.sampled_from(TOML), max_size=2),
)
def test_wrong_sweeps_are_refused_by_errors_of_the_package(
    tmp_path: Path, above: dict[str, str], below: dict[str, str]
) -> None:
    lines = [f"{key} = {value}" for key, value in (SWEEP | above).items()]
    lines += ["[[settings]]", *(f"{key} = {value}" for key, value in (SWEPT | below).items())]
    file = tmp_path / "wrong.toml"
    file.write_text("\n".join(lines))
    assert explains(lambda: definition.load(file, quick=True))
