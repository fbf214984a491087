"""`evaluate`: how good a policy is on a bandit, by the cheapest engine that is exact for the question."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import dbcare
from dbcare import validation
from dbcare.bandit import Bandit
from dbcare.engines import exact
from dbcare.engines.choice import chosen_simulator
from dbcare.engines.draws import Arms, arms_of
from dbcare.engines.evaluation import ControlVariate, Evaluation, Pulls
from dbcare.engines.pool import Outcomes, available_threads, fill
from dbcare.engines.simulators import Simulator, control_at, direct_simulator, skip_simulator
from dbcare.engines.summary import QUANTILES, Estimate, Moments, clopper_pearson, losses_of
from dbcare.errors import InvalidValueError, NotCompiledWarning, PrecisionWarning
from dbcare.policies.policy import Policy
from dbcare.policies.schedule import SchedulePolicy
from dbcare.risk import Loss, Risk

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
    risk = _risk_of(policy, bandit, risk)
    runs = validation.whole("runs", runs, at_least=1)
    seed = validation.whole("seed", seed, at_least=0)
    if seed >= 2**63:
        raise InvalidValueError(f"`seed` must be below 2^63 but got {seed}.")
    validation.one_of("engine", engine, ENGINES)
    width = validation.whole("threads", available_threads() if threads is None else threads, at_least=1)
    if precision is not None:
        validation.open_unit("precision", precision)
    common: dict[str, Any] = {
        "policy": repr(policy),
        "loss": risk.loss,
        "cost": risk.single_cost,
        "seed": seed,
        "version": dbcare.__version__,
    }
    if engine == "exact" or (engine == "auto" and exact.applies(policy, bandit)):
        return _exact(policy, bandit, risk, began, common)
    arms = arms_of(bandit)
    total = runs if precision is None else FIRST_BATCH
    simulator, outcomes = _simulator(policy, arms, seed, engine, total)
    if simulator.interpreted:
        warnings.warn(
            f"The policy cannot be compiled and runs interpreted, some hundred times slower: {simulator.interpreted}",
            NotCompiledWarning,
            stacklevel=2,
        )
    control = control_at(arms, simulator.checkpoint)
    gaps = np.array(bandit.gaps)
    while True:
        outcomes = _extended(outcomes, simulator, total, width)
        moments = Moments(outcomes, gaps, control)
        reached = moments.total(risk.loss, risk.single_cost)
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
    return _simulated(policy, outcomes, moments, simulator, risk, began, common)


def _risk_of(policy: Policy, bandit: Bandit, risk: Risk | None) -> Risk:
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


def _simulator(policy: Policy, arms: Arms, seed: int, engine: str, runs: int) -> tuple[Simulator, Outcomes]:
    if engine == "auto":
        return chosen_simulator(policy, arms, seed, runs)
    simulator = (direct_simulator if engine == "direct" else skip_simulator)(policy, arms, seed)
    return simulator, Outcomes.empty(0, control=simulator.checkpoint > 0)


def _extended(done: Outcomes, simulator: Simulator, runs: int, threads: int) -> Outcomes:
    """`done` continued to `runs` runs."""
    known = len(done.pulls)
    outcomes = Outcomes.empty(runs, control=simulator.checkpoint > 0)
    outcomes.take(done)
    blocks = [simulator.block() for _ in range(threads if simulator.parallel else 1)]
    # Compiling, if it is needed at all, happens here and not in several threads at once.
    blocks[0](outcomes.part(0, 0), 0)
    fill(outcomes.part(known, runs), blocks, known)
    return outcomes


def _simulated(
    policy: Policy,
    outcomes: Outcomes,
    moments: Moments,
    simulator: Simulator,
    risk: Risk,
    began: float,
    common: dict[str, Any],
) -> Evaluation:
    levels = np.quantile(outcomes.pulls, QUANTILES, method="inverted_cdf")
    pulls = moments.pulls()
    return Evaluation(
        risks={loss: moments.total(loss, risk.single_cost) for loss in Loss},
        losses={loss: moments.total(loss, 0.0) for loss in Loss},
        error_interval=clopper_pearson(moments.errors, moments.runs),
        pulls=Pulls(pulls.value, pulls.standard_error, dict(zip(QUANTILES, levels.tolist(), strict=True))),
        capped=0.0 if isinstance(policy, SchedulePolicy) else float(np.mean(outcomes.undecided)),
        runs=len(outcomes.pulls),
        engine=simulator.engine,
        guarantee=simulator.guarantee,
        control=_control_variate(moments, risk),
        seconds=time.perf_counter() - began,
        pulls_simulated=int(outcomes.pulls.sum()),
        **common,
    )


def _control_variate(moments: Moments, risk: Risk) -> ControlVariate | None:
    if moments.control is None:
        return None
    return ControlVariate(
        checkpoint=moments.control.checkpoint,
        known_error=float(losses_of(moments.gaps, Loss.MISIDENTIFICATION) @ moments.control.law),
        coefficient=float(np.mean(moments.slopes(risk.loss, risk.single_cost))),
        disagreements=moments.disagreements,
    )


def _exact(policy: Policy, bandit: Bandit, risk: Risk, began: float, common: dict[str, Any]) -> Evaluation:
    law = exact.two_arm_law(policy, bandit) if len(bandit.arms) == 2 else exact.guess_law(policy, bandit)
    error, regret, pulls = float(law.error[0]), float(law.regret[0]), float(law.mean_pulls[0])
    cost = risk.single_cost
    loss = {Loss.MISIDENTIFICATION: error, Loss.SIMPLE_REGRET: regret}
    return Evaluation(
        risks={each: Estimate(loss[each] + cost * pulls, 0.0) for each in Loss},
        losses={each: Estimate(loss[each], 0.0) for each in Loss},
        error_interval=(error, error),
        pulls=Pulls(pulls, 0.0, dict(zip(QUANTILES, law.quantiles[0].tolist(), strict=True))),
        capped=float(law.capped[0]),
        runs=0,
        engine="exact",
        guarantee=f"no Monte Carlo, mass conserved to {law.mass_defect:.1g}",
        control=None,
        seconds=time.perf_counter() - began,
        pulls_simulated=0,
        **common,
    )
