"""Runs on one bandit, by the cheaper of two simulators, and the means over them.

A short pilot of skip-ahead runs measures how many pulls a run makes and how much work skipping them takes. Both are
counts rather than times, so the choice, and with it every bit of the result, is the same on every machine.
"""

from __future__ import annotations

import time
import warnings
from functools import cached_property

import numpy as np

from dbcare.engines.result import Evaluation, build_from_runs
from dbcare.engines.simulate.draws import Arms, make_arms
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.simulator import Simulator
from dbcare.engines.simulate.simulators import charging_simulator, direct_simulator, make_control, skip_simulator
from dbcare.engines.statistics import Estimate, Moments
from dbcare.engines.workers import fill
from dbcare.errors import EngineError, NotCompiledWarning
from dbcare.policies.policy import Pace, Policy
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Risk

# The skip engine counts its work in units of one drawn pull (calibrated by timing, K = 3 to 100). Below 1, because in a
# near tie skip is preferable: its pilot runs need not be simulated again.
PULLS_PER_WORK_UNIT = 0.9


def choose_simulator(
    policy: Policy, arms: Arms, seed: int, runs: int, *, tallied: bool = False
) -> tuple[Simulator, Outcomes]:
    """Return the cheaper simulator, and the pilot runs it has already made."""
    try:
        skip = skip_simulator(policy, arms, seed, tallied=tallied)
    except EngineError:
        return _with_no_runs(direct_simulator(policy, arms, seed, tallied=tallied))
    if policy.pace is not Pace.ELIMINATION or policy.arms == 2:
        return _with_no_runs(skip)
    pilot = skip.allocate(min(runs, max(16, min(runs // 200, 200))))
    block = skip.block()
    block(pilot, 0)
    if pilot.pulls.sum() > PULLS_PER_WORK_UNIT * block.effort:
        return skip, pilot
    return _with_no_runs(direct_simulator(policy, arms, seed, tallied=tallied))


def _with_no_runs(simulator: Simulator) -> tuple[Simulator, Outcomes]:
    return simulator, simulator.allocate(0)


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
        """Continue until there are `total` runs."""
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
