"""The ways to decide that a plan compares: registered policies, a test of fixed size, and deciding without data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

from dbcare.base import checks
from dbcare.base.look import BLACK, DASHES, ORANGE, RED, Look
from dbcare.errors import GuessingIsBestWarning
from dbcare.planner.setting import PlanSetting
from dbcare.policies.planned import Guess, Keep, Uniform
from dbcare.policies.policy import Policy
from dbcare.policies.registry import POLICIES
from dbcare.problem.risk import Risk

Build = Callable[[PlanSetting, float], tuple[Policy, Risk]]  # from a setting and the gap


@dataclass(frozen=True)
class Strategy:
    """A way to decide: what tables call it, how it looks in figures, and how it is built for a gap."""

    name: str
    label: str
    look: Look
    dashes: str
    build: Build


def _test(setting: PlanSetting, gap: float) -> tuple[Policy, Risk]:
    least = math.ceil(setting.not_before / setting.arms)
    return Uniform(setting.arms, max(setting.test_pulls(gap), least)), setting.equal_shares


def _best_size(setting: PlanSetting, gap: float) -> tuple[Policy, Risk]:
    size = setting.best_size(gap)
    return (Uniform(setting.arms, size), setting.equal_shares) if size else _guess(setting, gap)


def _guess(setting: PlanSetting, _gap: float) -> tuple[Policy, Risk]:
    policy = Guess(setting.arms) if setting.control is None else Keep(setting.arms, setting.control.place)
    return policy, setting.equal_shares


FIXED_SIZE_TEST = Strategy("fixed-size-test", "fixed-size test", Look((RED,), "^"), "-.", _test)
BEST_SIZE = Strategy("best-fixed-size", "best fixed size", Look((ORANGE,), "v"), "-.", _best_size)
DECIDE_NOW = Strategy("decide-now", "decide now", Look((BLACK,), "x"), ":", _guess)
OWN = {strategy.name: strategy for strategy in (FIXED_SIZE_TEST, BEST_SIZE, DECIDE_NOW)}


def strategy_names() -> list[str]:
    """Return the names of all strategies: policies that run live first, then the planner's own."""
    return [*POLICIES.live, *OWN]


def default_names() -> list[str]:
    """Return the names of the strategies that every plan compares, in the order of its table."""
    return [*POLICIES.planned, *OWN]


def find_strategy(name: object) -> Strategy:
    """Return a strategy by name; an unknown name is an error that lists all."""
    if isinstance(name, str) and name in OWN:
        return OWN[name]
    entry = POLICIES[checks.one_of("policies", name, strategy_names())]

    def build(setting: PlanSetting, _gap: float) -> tuple[Policy, Risk]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GuessingIsBestWarning)  # the plan itself will say so
            return entry.build(setting.facts), setting.risk

    return Strategy(entry.name, entry.label, entry.look, DASHES.get(entry.kind, "-"), build)


def find_label(name: str, setting: PlanSetting) -> str:
    """Return what a plan calls a strategy: with a control arm, deciding now is to keep it."""
    if name == DECIDE_NOW.name and setting.control is not None:
        return f"keep {setting.control.name}"
    return find_strategy(name).label


def find_obstacle(strategy: Strategy, setting: PlanSetting) -> str | None:
    """Return why a registered policy cannot take part, if it cannot."""
    if strategy.name in OWN:
        return None
    if setting.not_before > 0 and "not_before" not in POLICIES[strategy.name].options:
        return "it cannot be told not to stop before a number of observations"
    refusal = _find_refusal(strategy, setting)
    if refusal is None or not setting.risk.costs_differ:
        return refusal
    at_equal_prices = _find_refusal(strategy, replace(setting, risk=setting.equal_shares))
    return "it needs the same price for all arms" if at_equal_prices is None else refusal


def find_largest_gap(strategy: Strategy, setting: PlanSetting) -> float:
    """Return the largest gap that a strategy is made for."""
    return math.inf if strategy.name in OWN else strategy.build(setting, 1.0)[0].largest_spread * (1.0 + 1e-12)


def _find_refusal(strategy: Strategy, setting: PlanSetting) -> str | None:
    try:
        strategy.build(setting, 1.0)
    except Exception as refused:  # a stranger's policy may raise anything
        return str(refused).rstrip(".")
    return None
