"""Build an `Evaluation` from the results of an engine."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

import dbcare
from dbcare.engines.estimates import QUANTILES, Estimate, Moments, clopper_pearson, estimate_mean, losses_by_arm
from dbcare.engines.evaluation import ControlVariate, Evaluation, Pulls
from dbcare.engines.exact.law import TwoArmLaw
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.pooling.control_variates import Estimates, combine
from dbcare.engines.simulator import Simulator
from dbcare.policies.policy import Pace, Policy
from dbcare.problem.risk import Loss, Risk


def build_from_runs(
    outcomes: Outcomes, moments: Moments, simulator: Simulator, policy: Policy, risk: Risk, seed: int, began: float
) -> Evaluation:
    """Build the evaluation of simulated runs; `began` is the time when work on it started."""
    levels = np.quantile(outcomes.pulls, QUANTILES, method="inverted_cdf")
    pulls, paid, unit = estimate_mean(outcomes.pulls), estimate_mean(outcomes.paid), moments.unit(risk)
    return Evaluation(
        risks={loss: moments.total(loss, unit) for loss in Loss},
        losses={loss: moments.total(loss, 0.0) for loss in Loss},
        error_interval=clopper_pearson(moments.errors, moments.runs),
        pulls=Pulls(pulls.value, pulls.standard_error, dict(zip(QUANTILES, levels.tolist(), strict=True))),
        spend=Estimate(unit * paid.value, unit * paid.standard_error),
        capped=0.0 if policy.pace is Pace.PLANNED else float(np.mean(outcomes.undecided)),
        averages_labels=False,
        runs=len(outcomes.pulls),
        plain_runs=moments.plain_runs(risk.loss, unit),
        engine=simulator.engine,
        guarantee=simulator.guarantee,
        control=_control_variate(moments, risk),
        pulls_simulated=int(outcomes.pulls.sum()),
        **_common_fields(policy, risk, seed, began),
    )


def build_from_averages(
    outcomes: Outcomes,
    estimates: Estimates,
    simulator: Simulator,
    policy: Policy,
    risk: Risk,
    seed: int,
    began: float,
    place: int = 0,
) -> Evaluation:
    """Build the evaluation of runs whose losses were averaged over labels; the bandit is at `place` in `estimates`."""
    levels = np.quantile(outcomes.pulls, QUANTILES, method="inverted_cdf")
    cost, pulls = risk.single_cost, estimates.at(place, (0.0, 0.0, 1.0))
    return Evaluation(
        risks={loss: estimates.at(place, combine(loss, cost)) for loss in Loss},
        losses={loss: estimates.at(place, combine(loss, 0.0)) for loss in Loss},
        error_interval=None,
        pulls=Pulls(pulls.value, pulls.standard_error, dict(zip(QUANTILES, levels.tolist(), strict=True))),
        spend=Estimate(cost * pulls.value, cost * pulls.standard_error),
        capped=float(np.mean(outcomes.undecided)),
        averages_labels=True,
        runs=len(outcomes.pulls),
        plain_runs=float(estimates.plain_runs(combine(risk.loss, cost))[place]),
        engine=simulator.engine,
        guarantee=f"{simulator.guarantee}, losses averaged over labels",
        control=None,
        pulls_simulated=int(outcomes.pulls.sum()),
        **_common_fields(policy, risk, seed, began),
    )


def _control_variate(moments: Moments, risk: Risk) -> ControlVariate | None:
    if moments.control is None:
        return None
    return ControlVariate(
        checkpoint=moments.control.checkpoint,
        known_error=float(losses_by_arm(moments.gaps, Loss.MISIDENTIFICATION) @ moments.control.law),
        coefficient=float(np.mean(moments.slopes(risk.loss, moments.unit(risk)))),
        disagreements=moments.disagreements,
    )


def build_from_law(law: TwoArmLaw, policy: Policy, risk: Risk, seed: int, began: float) -> Evaluation:
    """Build the evaluation of an exact law, given as arrays of one entry."""
    error, regret, pulls = float(law.error[0]), float(law.regret[0]), float(law.mean_pulls[0])
    cost = risk.single_cost
    losses = {Loss.MISIDENTIFICATION: error, Loss.SIMPLE_REGRET: regret}
    return Evaluation(
        risks={loss: Estimate(value + cost * pulls, 0.0) for loss, value in losses.items()},
        losses={loss: Estimate(value, 0.0) for loss, value in losses.items()},
        error_interval=(error, error),
        pulls=Pulls(pulls, 0.0, dict(zip(QUANTILES, law.quantiles[0].tolist(), strict=True))),
        spend=Estimate(cost * pulls, 0.0),
        capped=float(law.capped[0]),
        averages_labels=False,
        runs=0,
        plain_runs=math.inf,
        engine="exact",
        guarantee=f"no Monte Carlo, mass conserved to {law.mass_defect:.1g}",
        control=None,
        pulls_simulated=0,
        **_common_fields(policy, risk, seed, began),
    )


def _common_fields(policy: Policy, risk: Risk, seed: int, began: float) -> dict[str, Any]:
    return {
        "policy": repr(policy),
        "loss": risk.loss,
        "cost": risk.cost if risk.costs_differ else risk.single_cost,
        "seed": seed,
        "seconds": time.perf_counter() - began,
        "version": dbcare.__version__,
    }
