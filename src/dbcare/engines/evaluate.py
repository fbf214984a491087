"""`evaluate`: how good a policy is on a bandit, by the cheapest engine that is exact for the question."""

from __future__ import annotations

import time
import warnings

import numpy as np

from dbcare import validation
from dbcare.bandit import Bandit
from dbcare.engines import exact
from dbcare.engines.build_evaluation import from_law, from_runs
from dbcare.engines.cheapest_simulator import chosen_simulator
from dbcare.engines.draws import Arms, arms_of
from dbcare.engines.estimates import Moments
from dbcare.engines.evaluation import Evaluation
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.simulator import Simulator
from dbcare.engines.simulators import charging_simulator, control_at, direct_simulator, skip_simulator
from dbcare.engines.threads import available_threads, fill
from dbcare.errors import EngineError, InvalidValueError, NotCompiledWarning, PrecisionWarning
from dbcare.policies.policy import Policy
from dbcare.risk import Risk

ENGINES = ("auto", "direct", "skip", "exact")
FIRST_BATCH = 4_096  # runs before the precision is looked at
MOST_RUNS = 20_000_000  # at any precision


def evaluate(
    policy: Policy,
    bandit: Bandit,
    risk: Risk | None = None,
    runs: int = 100_000,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
    precision: float | None = None,
) -> Evaluation:
    """Risk, error and pulls of `policy` on `bandit`.

    `risk` defaults to the policy's own. `precision` replaces `runs`: simulate until the standard error of the risk is
    that fraction of it. `engine` is one of auto, direct (draws every pull), skip (draws in large steps), exact (no
    Monte Carlo). The same seed gives the same bits for any number of `threads`.
    """
    began = time.perf_counter()
    risk = risk_of(policy, bandit, risk)
    runs, seed, width = settings_of(runs, seed, engine, threads)
    if risk.costs_differ and engine in ("skip", "exact"):
        raise EngineError(f"The {engine} engine needs the same cost for all arms; the direct engine takes any.")
    if precision is not None:
        validation.open_unit("precision", precision)
    if engine == "exact" or (engine == "auto" and not risk.costs_differ and exact.applies(policy, bandit)):
        return from_law(exact.law_of(policy, bandit), policy, risk, seed, began)
    arms = arms_of(bandit)
    total = runs if precision is None else FIRST_BATCH
    simulator, outcomes = simulator_of(policy, arms, seed, engine, total, risk)
    warn_if_interpreted(simulator)
    control = control_at(arms, simulator.checkpoint)
    gaps = np.array(bandit.gaps)
    while True:
        outcomes = extended(outcomes, simulator, total, width)
        moments = Moments(outcomes, gaps, control)
        reached = moments.total(risk.loss, moments.unit(risk))
        if precision is None or reached.standard_error <= precision * reached.value:
            break
        if total >= MOST_RUNS:
            warnings.warn(
                f"`precision` of {precision:g} needs more than {MOST_RUNS:,} runs; the standard error is "
                f"{reached.standard_error / reached.value:.2g} of the risk.",
                PrecisionWarning,
                stacklevel=2,
            )
            break
        wanted = 1.05 * total * (reached.standard_error / (precision * reached.value)) ** 2
        total = int(min(max(wanted, 1.2 * total), 10.0 * total, MOST_RUNS))
    return from_runs(outcomes, moments, simulator, policy, risk, seed, began)


def settings_of(runs: int, seed: int, engine: str, threads: int | None) -> tuple[int, int, int]:
    """Runs, seed and threads, checked."""
    runs = validation.whole("runs", runs, at_least=1)
    seed = validation.whole("seed", seed, at_least=0)
    if seed >= 2**63:
        raise InvalidValueError(f"`seed` must be below 2^63 but got {seed}.")
    validation.one_of("engine", engine, ENGINES)
    return runs, seed, validation.whole("threads", available_threads() if threads is None else threads, at_least=1)


def risk_of(policy: Policy, bandit: Bandit, risk: Risk | None) -> Risk:
    """The risk to evaluate by: `risk`, or the policy's own."""
    for name, value, kind in (("policy", policy, Policy), ("bandit", bandit, Bandit)):
        if not isinstance(value, kind):
            raise InvalidValueError(f"`{name}` must be a {kind.__name__} but got {value!r}.")
    if policy.arms != len(bandit.arms):
        raise InvalidValueError(
            f"`policy` and `bandit` must have the same number of arms but got {policy.arms} and {len(bandit.arms)}."
        )
    chosen = policy.risk if risk is None else risk
    if not isinstance(chosen, Risk):
        raise InvalidValueError(
            f"`risk` must be given for a policy that has none of its own, such as {type(policy).__name__}, "
            f"but got {chosen!r}."
        )
    chosen.costs(policy.arms)
    bandit.require_bound(policy.largest_spread)
    return chosen


def simulator_of(
    policy: Policy, arms: Arms, seed: int, engine: str, runs: int, risk: Risk
) -> tuple[Simulator, Outcomes]:
    """The simulator of that engine, and the runs that choosing it has already made."""
    if risk.costs_differ:
        return charging_simulator(policy, arms, seed, risk.costs(policy.arms)), Outcomes.empty(0, charged=True)
    if engine == "auto":
        return chosen_simulator(policy, arms, seed, runs)
    simulator = (direct_simulator if engine == "direct" else skip_simulator)(policy, arms, seed)
    return simulator, Outcomes.empty(0, control=simulator.checkpoint > 0)


def warn_if_interpreted(simulator: Simulator) -> None:
    """Say to the caller's caller why this will take long, if it will."""
    if simulator.interpreted:
        warnings.warn(
            f"The policy cannot be compiled and runs interpreted, some hundred times slower: {simulator.interpreted}",
            NotCompiledWarning,
            stacklevel=3,
        )


def extended(done: Outcomes, simulator: Simulator, runs: int, threads: int) -> Outcomes:
    """`done` continued to `runs` runs."""
    known = len(done.pulls)
    outcomes = Outcomes.empty(runs, control=simulator.checkpoint > 0, charged=simulator.charged, caps=done.caps)
    outcomes.take(done)
    blocks = [simulator.block() for _ in range(threads if simulator.parallel else 1)]
    # Compiling, if it is needed at all, happens here and not in several threads at once.
    blocks[0](outcomes.part(0, 0), 0)
    fill(outcomes.part(known, runs), blocks, known)
    return outcomes
