"""The one way to evaluate a policy on a bandit: which runs answer the question, and what every kind of them can do."""

from __future__ import annotations

import time
from typing import Protocol

from dbcare.engines import exact
from dbcare.engines.pooling.runs import AveragedRuns, can_average
from dbcare.engines.result import Evaluation, build_from_law
from dbcare.engines.simulate.runs import PlainRuns, warn_if_interpreted
from dbcare.engines.statistics import Estimate
from dbcare.errors import EngineError
from dbcare.policies.policy import Policy
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Risk


class Runs(Protocol):
    """Runs of one policy on one bandit, which can be continued, and what they show so far."""

    def extend(self, total: int) -> None:
        """Continue until there are `total` runs."""

    def estimate(self, risk: Risk) -> Estimate:
        """Estimate the risk from all runs so far."""

    def build(self, risk: Risk) -> Evaluation:
        """Return the evaluation of all runs so far by this risk."""


class ExactRuns:
    """What infinitely many runs would show, computed without one."""

    def __init__(self, policy: Policy, bandit: Bandit, seed: int) -> None:
        self.policy, self.seed, self.began = policy, seed, time.perf_counter()
        self.law = exact.compute_law(policy, bandit)

    def extend(self, total: int) -> None:
        """Do nothing."""

    def estimate(self, risk: Risk) -> Estimate:
        """Return the risk."""
        return self.build(risk).risks[risk.loss]

    def build(self, risk: Risk) -> Evaluation:
        """Return the evaluation by this risk."""
        return build_from_law(self.law, self.policy, risk, self.seed, self.began)


def start_runs(policy: Policy, bandit: Bandit, risk: Risk, runs: int, seed: int, engine: str, threads: int) -> Runs:
    """Return the runs that answer a question best; `runs` is how many are wanted, which may decide about their kind.

    With the engine "auto", what has an exact law is computed, and losses are averaged over the labels of the arms where
    that applies. Everything else is simulated by the engine that is asked for, or the cheapest one. Arguments must have
    been checked (`engines.evaluate`). Warns if the policy runs interpreted.
    """
    if risk.costs_differ and engine in ("skip", "exact"):
        raise EngineError(f"The {engine} engine needs the same cost for all arms; the direct engine takes any.")
    if engine == "exact" or (engine == "auto" and not risk.costs_differ and exact.applies(policy, bandit)):
        return ExactRuns(policy, bandit, seed)
    simulated: AveragedRuns | PlainRuns
    if engine == "auto" and can_average(policy, bandit, risk, runs):
        simulated = AveragedRuns(policy, bandit, seed, threads)
    else:
        simulated = PlainRuns.start(policy, bandit, risk, runs, seed, engine, threads)
    warn_if_interpreted(simulated.simulator)
    return simulated
