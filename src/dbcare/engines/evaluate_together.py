"""`evaluate_together`: one pass of runs for policies that differ in their cap on pulls, and for several risks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dbcare.bandit import Bandit
from dbcare.engines import exact
from dbcare.engines.build_evaluation import from_law, from_runs
from dbcare.engines.draws import Arms, arms_of
from dbcare.engines.estimates import Moments
from dbcare.engines.evaluate import extended, risk_of, settings_of, simulator_of, warn_if_interpreted
from dbcare.engines.evaluation import Evaluation
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.several_caps import bounded_simulator, capped_direct_simulator
from dbcare.engines.simulator import Simulator
from dbcare.engines.simulators import control_at
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies.elimination import EliminationPolicy
from dbcare.policies.policy import Policy
from dbcare.policies.racing import ConfidencePolicy
from dbcare.risk import Risk


def evaluate_together(
    policies: Sequence[Policy],
    bandit: Bandit,
    risks: Sequence[Risk],
    runs: int = 100_000,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
) -> list[Evaluation]:
    """What `evaluate` says of each policy with the risk at its place, from runs that are simulated once.

    The policies must be equal, but for `max_pulls` where they are fixed-confidence eliminations. The runs are made with
    the largest cap, and noted at each smaller one exactly where the policy with that cap stops: at the end of the first
    epoch after which another one would exceed it. So the evaluations are those of the same runs, not independent ones.

    With the direct engine they are the bits that `evaluate` gives, with skip the law is the same. `pulls_simulated` and
    `seconds` are those of the whole pass at the first of the largest caps, and 0 at all other places: they add up.
    """
    began = time.perf_counter()
    policies, risks = _checked(policies, bandit, risks)
    runs, seed, width = settings_of(runs, seed, engine, threads)
    caps = sorted({policy.max_pulls for policy in policies})
    largest = next(place for place, policy in enumerate(policies) if policy.max_pulls == caps[-1])
    if engine == "exact" or (engine == "auto" and all(exact.applies(policy, bandit) for policy in policies)):
        laws = {policy.max_pulls: exact.law_of(policy, bandit) for policy in policies}
        found = [
            from_law(laws[policy.max_pulls], policy, risk, seed, began)
            for policy, risk in zip(policies, risks, strict=True)
        ]
        return _booked_once(found, largest)
    arms = arms_of(bandit)
    if len(caps) == 1:
        simulator, outcomes = simulator_of(policies[0], arms, seed, engine, runs, risks[0])
        warn_if_interpreted(simulator)
    else:
        simulator = _capped_simulator(policies[largest], arms, seed, caps, engine)
        outcomes = Outcomes.empty(0, control=False, caps=len(caps))
    outcomes = extended(outcomes, simulator, runs, width)
    at_cap = _by_cap(outcomes, np.array(bandit.gaps), simulator, arms)
    found = [
        from_runs(*at_cap(caps.index(policy.max_pulls)), simulator, policy, risk, seed, began)
        for policy, risk in zip(policies, risks, strict=True)
    ]
    return _booked_once(found, largest)


def _checked(
    policies: Sequence[Policy], bandit: Bandit, risks: Sequence[Risk]
) -> tuple[tuple[Policy, ...], tuple[Risk, ...]]:
    listed: dict[str, Any] = {"policies": policies, "risks": risks}
    for name, given in listed.items():
        if not isinstance(given, Sequence):
            raise InvalidValueError(f"`{name}` must be a sequence but got {given!r}.")
    if not policies or len(policies) != len(risks):
        raise InvalidValueError(
            f"`policies` and `risks` must be equally many, and at least one, but got {len(policies)} and {len(risks)}."
        )
    checked = tuple(risk_of(policy, bandit, risk) for policy, risk in zip(policies, risks, strict=True))
    if any(risk.costs_differ for risk in checked):
        raise InvalidValueError("`risks` must have the same cost for all arms; `evaluate` takes a cost for each.")
    for place, policy in enumerate(policies):
        if not _equal_but_for_cap(policies[0], policy):
            raise InvalidValueError(
                "`policies` must be equal, but for `max_pulls` where they are fixed-confidence eliminations, "
                f"but got {policies[0]!r} and, at place {place}, {policy!r}."
            )
    return tuple(policies), checked


def _equal_but_for_cap(one: Any, other: Any) -> bool:
    if issubclass(type(one), ConfidencePolicy) and is_dataclass(type(one)) and type(one) is type(other):
        return bool(replace(one, max_pulls=other.max_pulls) == other)
    return bool(one == other)


def _capped_simulator(policy: Policy, arms: Arms, seed: int, caps: list[int], engine: str) -> Simulator:
    assert isinstance(policy, EliminationPolicy)
    smaller = np.array(caps[:-1], np.int64)
    if engine != "direct":
        try:
            return bounded_simulator(policy, arms, seed, smaller)
        except EngineError:
            if engine == "skip":
                raise
    return capped_direct_simulator(policy, arms, seed, smaller)


def _by_cap(
    outcomes: Outcomes, gaps: Any, simulator: Simulator, arms: Arms
) -> Callable[[int], tuple[Outcomes, Moments]]:
    """The outcomes at a cap, and their moments, each made once."""
    control = control_at(arms, simulator.checkpoint)

    @cache
    def at_cap(place: int) -> tuple[Outcomes, Moments]:
        own = outcomes if outcomes.caps is None else outcomes.at_cap(place)
        return own, Moments(own, gaps, control)

    return at_cap


def _booked_once(found: list[Evaluation], bearer: int) -> list[Evaluation]:
    """The pass's pulls and seconds with one evaluation only."""
    seconds = max(each.seconds for each in found)
    return [
        replace(each, seconds=seconds) if place == bearer else replace(each, seconds=0.0, pulls_simulated=0)
        for place, each in enumerate(found)
    ]
