"""`evaluate_together`: one pass of runs for several risks and for policies that differ only in their cap on pulls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dbcare.bandit import Bandit
from dbcare.engines import exact
from dbcare.engines.block_draws import BlockArms
from dbcare.engines.build_evaluation import build_from_law, build_from_runs
from dbcare.engines.draws import Arms, make_arms
from dbcare.engines.estimates import Moments
from dbcare.engines.evaluate import check_settings, choose_risk
from dbcare.engines.evaluation import Evaluation
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.plain_runs import extend_runs, make_simulator, warn_if_interpreted
from dbcare.engines.several_caps import capped_direct_simulator, safe_jump_simulator
from dbcare.engines.simulator import Simulator
from dbcare.engines.simulators import make_control
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies.elimination import EliminationPolicy
from dbcare.policies.policy import Policy
from dbcare.policies.racing import ConfidencePolicy
from dbcare.risk import Risk
from dbcare.validation import show


def evaluate_together(
    policies: Sequence[Policy],
    bandit: Bandit,
    risks: Sequence[Risk],
    runs: int = 100_000,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
) -> list[Evaluation]:
    """Evaluate each policy with the risk at the same index, as `evaluate` does, but simulate the runs only once.

    The policies must be equal, except that fixed-confidence eliminations may differ in `max_pulls`. The runs use the
    largest cap and are recorded at each smaller one exactly where the policy with that cap stops: at the end of the
    last epoch that fits within it. All evaluations therefore describe the same runs and are not independent.

    With the direct engine the results equal those of `evaluate` to the bit; with skip they have the same law. The first
    evaluation with the largest cap carries `pulls_simulated` and `seconds` for the whole pass; in the others they are
    0, so that they add up.

    Parameters
    ----------
    policies : sequence of Policy
        Equal policies, except for `max_pulls` of fixed-confidence eliminations.
    bandit : Bandit
        The truth.
    risks : sequence of Risk
        The risk of each policy.
    runs, seed, engine, threads
        As in `evaluate`.

    Returns
    -------
    list of Evaluation
        One per policy.

    Raises
    ------
    InvalidValueError
        If the policies differ in more than their cap, or another argument is invalid.
    EngineError
        If the engine cannot answer this question.

    Examples
    --------
    >>> from dbcare import Bandit, Racing, Risk, evaluate_together
    >>> risk = Risk.misidentification(1e-3)
    >>> policies = [Racing(3, 0.1, max_pulls=cap) for cap in (100, 200)]
    >>> short, long = evaluate_together(policies, Bandit.one_sparse(3, 0.5), [risk, risk], runs=100)
    >>> short.pulls.mean < long.pulls.mean
    True
    """
    began = time.perf_counter()
    policies, risks = _check_arguments(policies, bandit, risks)
    runs, seed, thread_count = check_settings(runs, seed, engine, threads)
    caps = sorted({policy.max_pulls for policy in policies})
    largest_place = next(place for place, policy in enumerate(policies) if policy.max_pulls == caps[-1])
    if engine == "exact" or (engine == "auto" and all(exact.applies(policy, bandit) for policy in policies)):
        laws = {policy.max_pulls: exact.compute_law(policy, bandit) for policy in policies}
        evaluations = [
            build_from_law(laws[policy.max_pulls], policy, risk, seed, began)
            for policy, risk in zip(policies, risks, strict=True)
        ]
        return _charge_once(evaluations, largest_place)
    arms = make_arms(bandit)
    if len(caps) == 1:
        simulator, outcomes = make_simulator(policies[0], arms, seed, engine, runs, risks[0])
        warn_if_interpreted(simulator)
    else:
        simulator = _capped_simulator(policies[largest_place], arms, seed, caps, engine)
        outcomes = simulator.allocate(0, len(caps))
    outcomes = extend_runs(outcomes, simulator, runs, thread_count)
    read_cap = _make_cap_reader(outcomes, np.array(bandit.gaps), simulator, arms)
    evaluations = [
        build_from_runs(*read_cap(caps.index(policy.max_pulls)), simulator, policy, risk, seed, began)
        for policy, risk in zip(policies, risks, strict=True)
    ]
    return _charge_once(evaluations, largest_place)


def _check_arguments(
    policies: Sequence[Policy], bandit: Bandit, risks: Sequence[Risk]
) -> tuple[tuple[Policy, ...], tuple[Risk, ...]]:
    arguments: dict[str, Any] = {"policies": policies, "risks": risks}
    for name, value in arguments.items():
        if not isinstance(value, Sequence):
            raise InvalidValueError(f"`{name}` must be a sequence but got {show(value)}.")
    if not policies or len(policies) != len(risks):
        raise InvalidValueError(
            f"`policies` and `risks` must have the same length, at least 1, but got {len(policies)} and {len(risks)}."
        )
    checked_risks = tuple(choose_risk(policy, bandit, risk) for policy, risk in zip(policies, risks, strict=True))
    if any(risk.costs_differ for risk in checked_risks):
        raise InvalidValueError("`risks` must have the same cost for all arms; `evaluate` accepts a cost per arm.")
    for place, policy in enumerate(policies):
        if not _equal_except_cap(policies[0], policy):
            raise InvalidValueError(
                "`policies` must be equal (fixed-confidence eliminations may differ in `max_pulls`) "
                f"but got {show(policies[0])} and, at index {place}, {show(policy)}."
            )
    return tuple(policies), checked_risks


def _equal_except_cap(one: Any, other: Any) -> bool:
    if issubclass(type(one), ConfidencePolicy) and is_dataclass(type(one)) and type(one) is type(other):
        return bool(replace(one, max_pulls=other.max_pulls) == other)
    return bool(one == other)


def _capped_simulator(policy: Policy, arms: Arms, seed: int, caps: list[int], engine: str) -> Simulator:
    assert isinstance(policy, EliminationPolicy)
    if isinstance(arms, BlockArms):
        raise EngineError("Policies with different caps cannot share runs on arms that share blocks; use `evaluate`.")
    smaller_caps = np.array(caps[:-1], np.int64)
    if engine != "direct":
        try:
            return safe_jump_simulator(policy, arms, seed, smaller_caps)
        except EngineError:
            if engine == "skip":
                raise
    return capped_direct_simulator(policy, arms, seed, smaller_caps)


def _make_cap_reader(
    outcomes: Outcomes, gaps: Any, simulator: Simulator, arms: Arms
) -> Callable[[int], tuple[Outcomes, Moments]]:
    """Return a function of a cap's index that returns the outcomes there and their moments, each computed once."""
    control = make_control(arms, simulator.checkpoint)

    @cache
    def read_cap(place: int) -> tuple[Outcomes, Moments]:
        at_cap = outcomes if outcomes.caps is None else outcomes.at_cap(place)
        return at_cap, Moments(at_cap, gaps, control)

    return read_cap


def _charge_once(evaluations: list[Evaluation], bearer: int) -> list[Evaluation]:
    """Assign the pulls and seconds of the pass to the evaluation at index `bearer` only."""
    seconds = max(evaluation.seconds for evaluation in evaluations)
    return [
        replace(evaluation, seconds=seconds) if place == bearer else replace(evaluation, seconds=0.0, pulls_simulated=0)
        for place, evaluation in enumerate(evaluations)
    ]
