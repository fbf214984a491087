"""Plain runs: simulate a policy on a bandit, and estimate its risk by the mean over the runs."""

from __future__ import annotations

import warnings

import numpy as np

from dbcare.bandit import Bandit
from dbcare.engines.build_evaluation import build_from_runs
from dbcare.engines.cheapest_simulator import choose_simulator
from dbcare.engines.draws import Arms, make_arms
from dbcare.engines.estimates import Estimate, Moments
from dbcare.engines.evaluation import Evaluation
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.simulator import Simulator
from dbcare.engines.simulators import charging_simulator, direct_simulator, make_control, skip_simulator
from dbcare.engines.threads import fill
from dbcare.errors import NotCompiledWarning
from dbcare.policies.policy import Policy
from dbcare.risk import Risk


class PlainRuns:
    """Runs of a policy on a bandit, with a control variate where there is one."""

    def __init__(
        self, policy: Policy, bandit: Bandit, seed: int, engine: str, runs: int, risk: Risk, threads: int
    ) -> None:
        arms = make_arms(bandit)
        self.simulator, self.outcomes = make_simulator(policy, arms, seed, engine, runs, risk)
        self.control = make_control(arms, self.simulator.checkpoint)
        self.gaps, self.threads = np.array(bandit.gaps), threads

    def extend(self, runs: int) -> None:
        """Continue to `runs` runs."""
        self.outcomes = extend_runs(self.outcomes, self.simulator, runs, self.threads)
        self.moments = Moments(self.outcomes, self.gaps, self.control)

    def risk(self, risk: Risk) -> Estimate:
        """Estimate the risk from all runs so far."""
        return self.moments.total(risk.loss, self.moments.unit(risk))

    def build(self, policy: Policy, risk: Risk, seed: int, began: float) -> Evaluation:
        """Return the evaluation of all runs so far."""
        return build_from_runs(self.outcomes, self.moments, self.simulator, policy, risk, seed, began)


def make_simulator(
    policy: Policy, arms: Arms, seed: int, engine: str, runs: int, risk: Risk
) -> tuple[Simulator, Outcomes]:
    """Return the simulator of that engine, and the runs that choosing it has already made."""
    if risk.costs_differ:
        simulator = charging_simulator(policy, arms, seed, risk.costs(policy.arms))
        return simulator, simulator.allocate(0)
    if engine == "auto":
        return choose_simulator(policy, arms, seed, runs)
    simulator = (direct_simulator if engine == "direct" else skip_simulator)(policy, arms, seed)
    return simulator, simulator.allocate(0)


def warn_if_interpreted(simulator: Simulator) -> None:
    """Warn if the policy runs interpreted, and say why."""
    if simulator.interpreted:
        warnings.warn(
            "The policy cannot be compiled and runs interpreted, several hundred times slower: "
            f"{simulator.interpreted}",
            NotCompiledWarning,
            stacklevel=3,
        )


def extend_runs(done: Outcomes, simulator: Simulator, runs: int, threads: int) -> Outcomes:
    """Continue `done` to `runs` runs."""
    known = len(done.pulls)
    outcomes = simulator.allocate(runs, done.caps)
    outcomes.take(done)
    fill(outcomes.part(known, runs), simulator.start_blocks(threads, done.caps), known)
    return outcomes
