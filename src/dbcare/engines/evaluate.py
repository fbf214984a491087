"""`evaluate`: how good a policy is on a bandit, by the cheapest engine that is exact for the question."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.engines.result import Evaluation
from dbcare.engines.runs import start_runs
from dbcare.engines.workers import available_threads
from dbcare.errors import InvalidValueError, PrecisionWarning
from dbcare.policies.policy import Policy
from dbcare.policies.registry import build_policy
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Risk

ENGINES = ("auto", "direct", "skip", "exact")
FIRST_BATCH_RUNS = 4_096  # runs before the precision is checked
MAX_RUNS = 20_000_000  # at any precision


def evaluate(
    policy: Policy | str,
    bandit: Bandit,
    risk: Risk | None = None,
    runs: int = 100_000,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
    precision: float | None = None,
) -> Evaluation:
    """Evaluate a policy on a bandit whose truth is known: its risk, error and pulls.

    Parameters
    ----------
    policy : Policy or str
        The policy, or the name of a registered one that needs no options (`build_policy` takes options).
    bandit : Bandit
        The truth.
    risk : Risk, optional
        What a pull costs and what a wrong choice loses. Default: the policy's own.
    runs : int
        Number of simulated runs, where simulation is needed.
    seed : int
        Random seed; the same seed gives the same bits for any number of threads.
    engine : {"auto", "direct", "skip", "exact"}
        Draw every pull (direct), draw in large steps (skip), compute without Monte Carlo (exact), or choose the
        cheapest one that is exact for the question (auto). With auto, the losses of a policy that treats arms alike
        are also averaged over the labels of the arms, if rewards are Gaussian with one sigma or Bernoulli; the result
        says so (`Evaluation.averages_labels`).
    threads : int, optional
        Number of threads. Default: all CPUs.
    precision : float, optional
        Instead of `runs`: simulate until the standard error of the risk is this fraction of it.

    Returns
    -------
    Evaluation
        The figures, with their standard errors and how they were obtained.

    Raises
    ------
    InvalidValueError
        If an argument is invalid.
    EngineError
        If the engine cannot answer this question; the message says which one can.

    Examples
    --------
    >>> from dbcare import Bandit, DBCARE, Risk, evaluate
    >>> evaluation = evaluate(DBCARE(Risk.simple_regret(1e-3), arms=2), Bandit.two_arm(0.5))
    >>> evaluation.engine, round(evaluation.risk, 4)
    ('exact', 0.1131)
    """
    began = time.perf_counter()
    if isinstance(policy, str):
        policy = _build_by_name(policy, bandit, risk)
    risk = choose_risk(policy, bandit, risk)
    runs, seed, width = check_settings(runs, seed, engine, threads)
    if precision is not None:
        checks.open_unit("precision", precision)
    total = runs if precision is None else FIRST_BATCH_RUNS
    source = start_runs(policy, bandit, risk, total, seed, engine, width)
    while True:
        source.extend(total)
        reached = source.estimate(risk)
        if precision is None or reached.standard_error <= precision * reached.value:
            break
        if total >= MAX_RUNS:
            warnings.warn(
                f"`precision` of {precision:g} needs more than {MAX_RUNS:,} runs; the standard error is "
                f"{reached.standard_error / reached.value:.2g} of the risk.",
                PrecisionWarning,
                stacklevel=2,
            )
            break
        wanted = 1.05 * total * (reached.standard_error / (precision * reached.value)) ** 2
        total = int(min(max(wanted, 1.2 * total), 10.0 * total, MAX_RUNS))
    return replace(source.build(risk), seconds=time.perf_counter() - began)


def _build_by_name(name: str, bandit: Bandit, risk: Risk | None) -> Policy:
    if not isinstance(bandit, Bandit) or not isinstance(risk, Risk):
        raise InvalidValueError(
            f"`bandit` and `risk` are required to build {show(name)} but got {show(bandit)} and {show(risk)}."
        )
    return build_policy(name, bandit, risk)


def check_settings(runs: int, seed: int, engine: str, threads: int | None) -> tuple[int, int, int]:
    """Return runs, seed and threads, checked."""
    runs = checks.whole("runs", runs, at_least=1)
    seed = checks.whole("seed", seed, at_least=0)
    checks.one_of("engine", engine, ENGINES)
    return runs, seed, checks.whole("threads", available_threads() if threads is None else threads, at_least=1)


def choose_risk(policy: Policy, bandit: Bandit, risk: Risk | None) -> Risk:
    """Return the risk to evaluate by: `risk`, or the policy's own."""
    for name, value, kind in (("policy", policy, Policy), ("bandit", bandit, Bandit)):
        if not isinstance(value, kind):
            raise InvalidValueError(f"`{name}` must be a {kind.__name__} but got {show(value)}.")
    if policy.arms != len(bandit.arms):
        raise InvalidValueError(
            f"`policy` and `bandit` must have the same number of arms but got {policy.arms} and {len(bandit.arms)}."
        )
    chosen = policy.risk if risk is None else risk
    if not isinstance(chosen, Risk):
        raise InvalidValueError(
            f"`risk` is required for a policy that has none of its own, such as {type(policy).__name__}, "
            f"but got {show(chosen)}."
        )
    chosen.costs(policy.arms)
    bandit.require_bound(policy.largest_spread)
    check_rewards(policy, bandit)
    return chosen


def check_rewards(policy: Policy, bandit: Bandit) -> None:
    """Refuse a bandit with rewards that the policy does not take."""
    if policy.reward_range is None:
        return
    low, high = policy.reward_range
    for place, arm in enumerate(bandit.arms):
        values: Sequence[float] = (-math.inf, math.inf)
        if hasattr(arm, "outcomes"):
            values = [value for value, chance in zip(*arm.outcomes, strict=True) if chance > 0.0]
        if min(values) < low or max(values) > high:
            raise InvalidValueError(
                f"{type(policy).__name__} takes rewards from {low:g} to {high:g} but got arm {place}, whose rewards "
                f"range from {min(values):g} to {max(values):g}."
            )
