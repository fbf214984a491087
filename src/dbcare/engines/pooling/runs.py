"""Runs that several bandits share, or all labels of one bandit's arms."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dbcare.engines.pooling.columns import FOLDS
from dbcare.engines.pooling.estimates import (
    Estimates,
    Floats,
    SourceSums,
    Sums,
    combine,
    cut_chunks,
    estimate,
    sum_chunk,
    sum_chunks,
)
from dbcare.engines.pooling.model import MAX_LABELINGS, Model, build_model, choose_labels, find_family, tabulate
from dbcare.engines.result import Evaluation, build_from_averages
from dbcare.engines.simulate.draws import make_arms
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.runs import choose_simulator, extend_runs, warn_if_interpreted
from dbcare.engines.simulate.simulator import Simulator
from dbcare.engines.simulate.simulators import direct_simulator
from dbcare.engines.statistics import Estimate
from dbcare.engines.workers import fill
from dbcare.policies.policy import Policy
from dbcare.problem.bandits import Bandit, BlockBandit
from dbcare.problem.risk import Risk


def derive_seed(seed: int, *place: int) -> int:
    """Return the seed for a place, such as a bandit's; different places have independent streams."""
    return int(np.random.SeedSequence(seed, spawn_key=place).generate_state(1, np.uint64)[0] >> np.uint64(2))


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
        """Continue until there are `total` runs."""
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


MAX_RISE, MAX_FALL = 3.0, 10.0  # of a bandit's share of the runs, before all runs are weighted anew


def _differ(shares: Floats, old: Floats) -> bool:
    """Return whether a share of the runs has changed so much that old weights no longer suit."""
    return bool(np.any(shares > MAX_RISE * old) or np.any(MAX_FALL * shares < old))


def round_to_folds(runs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return numbers of runs, rounded up to multiples of the number of folds."""
    return np.asarray(-(-runs // FOLDS) * FOLDS)


class PooledRuns:
    """Runs of a policy on several bandits; each bandit has a random stream of its own."""

    def __init__(
        self, policy: Policy, bandits: Sequence[Bandit], seed: int, threads: int, *, direct: bool = False
    ) -> None:
        self.policy, self.bandits, self.seed, self.threads = policy, bandits, seed, threads
        self.direct = direct  # draw every pull, which takes fewer kernels
        self.label_seeds = [derive_seed(seed, place, 1) for place in range(len(bandits))]
        self.simulators: list[Simulator] = []
        self.outcomes: list[Outcomes] = []
        self.parts: list[SourceSums] = []  # over the first `summed` runs on each bandit
        self.summed = np.zeros(len(bandits), np.int64)
        self.runs_summed = 0  # again, where they were weighted anew
        self.shares = np.zeros(len(bandits))  # of runs, by which the weights in `parts` were made

    def extend(self, wanted: npt.NDArray[np.int64]) -> None:
        """Continue to so many runs on each bandit, rounded up to a multiple of the number of folds."""
        for place, runs in enumerate(round_to_folds(wanted).tolist()):
            if place == len(self.simulators):
                simulator, done = self._start(place, runs)
                if place == 0:
                    warn_if_interpreted(simulator)
                self.simulators.append(simulator)
                self.outcomes.append(done)
            if runs > len(self.outcomes[place].pulls):
                self.outcomes[place] = extend_runs(self.outcomes[place], self.simulators[place], runs, self.threads)

    def _start(self, place: int, runs: int) -> tuple[Simulator, Outcomes]:
        arms, seed = make_arms(self.bandits[place]), derive_seed(self.seed, place)
        if self.direct:
            simulator = direct_simulator(self.policy, arms, seed, tallied=True)
            return simulator, simulator.allocate(0)
        return choose_simulator(self.policy, arms, seed, runs, tallied=True)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """The number of runs on each bandit."""
        return np.array([len(done.pulls) for done in self.outcomes])

    @property
    def pulls(self) -> int:
        """The pulls of all runs."""
        return sum(int(done.pulls.sum()) for done in self.outcomes)

    def sum(self, model: Model) -> Sums:
        """Return the sums over all runs; `model` must be the same each time, except that decoys may be added once.

        Only new runs are added, with the weights of the old: their strata count as much as the shares of runs that
        these were made for. Once the shares have changed much, all runs are weighted anew.
        """
        counts = self.counts
        shares = counts / counts.sum()
        if len(self.parts) != model.bandits or _differ(shares, self.shares):
            self.shares = shares
            self.parts = [SourceSums.empty(place, model.targets) for place in range(model.bandits)]
            self.summed = np.zeros_like(counts)
        chunks = [
            chunk
            for place, (done, first) in enumerate(zip(self.outcomes, self.summed.tolist(), strict=True))
            for chunk in cut_chunks(place, self.label_seeds[place], first, done.part(first, len(done.pulls)))
        ]
        sum_chunks(model, self.shares, chunks, self.parts, self.threads)
        self.runs_summed += int((counts - self.summed).sum())
        self.summed = counts
        return Sums.combine(self.parts, self.shares / shares)

    def quantiles(self, model: Model, levels: Floats) -> Floats:
        """Return quantiles of the pulls of a run, by bandit and level."""
        shares = self.counts / self.counts.sum()
        pulls = np.unique(np.concatenate([done.pulls for done in self.outcomes]))
        mass = np.zeros((len(pulls), model.targets))  # the weights of all runs with so many pulls
        steps = tabulate(model)
        for place, done in enumerate(self.outcomes):
            for chunk in cut_chunks(place, self.label_seeds[place], 0, done):
                weights = np.empty((len(chunk.outcomes.pulls), model.targets))
                sum_chunk(model, steps, shares, chunk, weights)
                np.add.at(mass, np.searchsorted(pulls, chunk.outcomes.pulls), weights)
        below = np.cumsum(mass, axis=0)
        places = [np.searchsorted(column, levels * column[-1] * (1.0 - 1e-12)) for column in below.T]
        return np.asarray(pulls[np.minimum(places, len(pulls) - 1)], dtype=np.float64)
