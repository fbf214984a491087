"""Plain runs: simulate a policy on a bandit, and estimate its risk by the mean over the runs."""

from __future__ import annotations

import time
import warnings
from functools import cached_property

import numpy as np

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
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Risk


class PlainRuns:
    """Runs of a policy on a bandit, some of them made already, with a control variate where there is one."""

    def __init__(
        self, policy: Policy, bandit: Bandit, seed: int, threads: int, simulator: Simulator, outcomes: Outcomes
    ) -> None:
        self.policy, self.seed, self.threads, self.began = policy, seed, threads, time.perf_counter()
        self.simulator, self.outcomes = simulator, outcomes
        self.gaps, self.control = np.array(bandit.gaps), make_control(make_arms(bandit), simulator.checkpoint)

    @classmethod
    def start(
        cls, policy: Policy, bandit: Bandit, risk: Risk, runs: int, seed: int, engine: str, threads: int
    ) -> PlainRuns:
        """Choose a simulator for about so many runs."""
        simulator, outcomes = make_simulator(policy, make_arms(bandit), seed, engine, runs, risk)
        return cls(policy, bandit, seed, threads, simulator, outcomes)

    def extend(self, total: int) -> None:
        """Continue to so many runs in all."""
        self.outcomes = extend_runs(self.outcomes, self.simulator, total, self.threads)
        self.__dict__.pop("moments", None)

    @cached_property
    def moments(self) -> Moments:
        """The moments of all runs so far."""
        return Moments(self.outcomes, self.gaps, self.control)

    def estimate(self, risk: Risk) -> Estimate:
        """Estimate the risk from all runs so far."""
        return self.moments.total(risk.loss, self.moments.unit(risk))

    def build(self, risk: Risk) -> Evaluation:
        """Return the evaluation of all runs so far."""
        return build_from_runs(self.outcomes, self.moments, self.simulator, self.policy, risk, self.seed, self.began)


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
            stacklevel=4,
        )


def extend_runs(done: Outcomes, simulator: Simulator, runs: int, threads: int) -> Outcomes:
    """Continue `done` to `runs` runs."""
    known = len(done.pulls)
    outcomes = simulator.allocate(runs, done.caps)
    outcomes.take(done)
    fill(outcomes.part(known, runs), simulator.start_blocks(threads, done.caps), known)
    return outcomes
