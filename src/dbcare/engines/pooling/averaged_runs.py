"""Runs on one bandit whose losses are averaged over labels and corrected by martingales; tallies are not kept."""

from __future__ import annotations

import time

import numpy as np

from dbcare.engines.build_evaluation import build_from_averages
from dbcare.engines.draws import make_arms
from dbcare.engines.estimates import Estimate
from dbcare.engines.evaluation import Evaluation
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.pooling.control_variates import Estimates, combine, estimate
from dbcare.engines.pooling.model import MAX_LABELINGS, build_model, choose_labels, find_family
from dbcare.engines.pooling.seeds import derive_seed
from dbcare.engines.pooling.sums import SourceSums, Sums, cut_chunks, sum_chunks
from dbcare.engines.simulators import direct_simulator
from dbcare.engines.threads import fill
from dbcare.policies.policy import Policy
from dbcare.problem.bandits import Bandit, BlockBandit
from dbcare.problem.risk import Risk

MIN_RUNS = 256  # with fewer, coefficients mean little
MIN_RUNS_BY_ARM = 8  # with fewer, some labels hardly occur
BATCH_NUMBERS = 4_000_000  # tallied at a time: pulls and sums by run and arm

ONE = np.ones(1)


def can_average(policy: Policy, bandit: Bandit, risk: Risk, runs: int) -> bool:
    """Return whether the losses of runs can be averaged over the labels of the arms.

    Runs in epochs are left out: they are made so fast that plain ones serve as well.
    """
    if policy.pace.in_epochs or isinstance(bandit, BlockBandit) or not policy.treats_arms_alike:
        return False
    if len(bandit.arms) > MAX_LABELINGS or risk.costs_differ or bandit.spread == 0.0:
        return False
    return runs >= max(MIN_RUNS, MIN_RUNS_BY_ARM * policy.arms) and find_family([bandit]) is not None


class AveragedRuns:
    """Tallied runs of a policy on one bandit: their outcomes, and the sums that averaged estimates need."""

    def __init__(self, policy: Policy, bandit: Bandit, seed: int, threads: int) -> None:
        self.simulator = direct_simulator(policy, make_arms(bandit), seed, tallied=True)
        self.policy, self.seed, self.threads, self.began = policy, seed, threads, time.perf_counter()
        self.model = build_model([bandit], choose_labels(policy))
        self.label_seed = derive_seed(seed, 0, 1)
        self.batch_runs = max(1024, BATCH_NUMBERS // policy.arms)
        self.outcomes = Outcomes.empty(0)
        self.sums = SourceSums.empty(0, 1)

    def extend(self, total: int) -> None:
        """Continue to so many runs in all."""
        blocks = self.simulator.start_blocks(self.threads)
        done = self.outcomes
        self.outcomes = Outcomes.empty(total)
        self.outcomes.take(done)
        for first in range(len(done.pulls), total, self.batch_runs):
            batch = self.simulator.allocate(min(self.batch_runs, total - first))
            fill(batch, blocks, first)
            sum_chunks(self.model, ONE, cut_chunks(0, self.label_seed, first, batch), [self.sums], self.threads)
            part = self.outcomes.part(first, first + len(batch.pulls))
            part.take(batch.without_tallies())

    def estimate_all(self, risk: Risk) -> Estimates:
        """Estimate error, regret and pulls from all runs so far, with controls chosen for this risk."""
        runs = np.array([len(self.outcomes.pulls)])
        combination = combine(risk.loss, risk.single_cost)
        return estimate(Sums.combine([self.sums], ONE), runs, self.model, [combination])

    def estimate(self, risk: Risk) -> Estimate:
        """Estimate the risk from all runs so far."""
        return self.estimate_all(risk).at(0, combine(risk.loss, risk.single_cost))

    def build(self, risk: Risk) -> Evaluation:
        """Return the evaluation of all runs so far."""
        return build_from_averages(
            self.outcomes, self.estimate_all(risk), self.simulator, self.policy, risk, self.seed, self.began
        )
