"""Draw runs on several bandits until the pooled estimate of every one of them is precise enough."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbcare.bandit import Bandit
from dbcare.engines.pooling.control_variates import Estimates, combine, estimate
from dbcare.engines.pooling.model import Model, build_model, choose_labels
from dbcare.engines.pooling.pooled_runs import PooledRuns
from dbcare.engines.pooling.sums import Floats
from dbcare.errors import PrecisionWarning
from dbcare.policies.policy import EpochPolicy, Policy
from dbcare.risk import Loss

FIRST_RUNS = 64  # on each bandit
NEIGHBORS = 8  # bandits of a fine grid whose runs about equally serve each other
MAX_RUNS = 20_000_000  # on all bandits
MAX_GROWTH = 4.0  # of a bandit's runs from one look to the next
ROUNDING = 1e-7  # a standard error below this fraction of the risk is rounding

# A rare, long run must be seen to be counted. So pooled runs must be as many, by their weights, as this share of the
# plain ones that they replace, the more so the more a run can cost compared with what a wrong choice loses. Runs in
# epochs are cheap, and after a wrong choice they often go on for long.
MIN_SHARE, MIN_SHARE_IN_EPOCHS, MAX_SHARE = 1.0 / 16.0, 1.0 / 4.0, 1.0 / 2.0
MIN_EFFECTIVE_RUNS = 1_000.0  # where a precision is asked for


@dataclass(frozen=True)
class Target:
    """How precise estimates must be: as so many plain runs, or a standard error that is a fraction of the risk."""

    runs: int | None = None
    precision: float | None = None

    def variances(self, estimates: Estimates, combination: Sequence[float]) -> Floats:
        """Return the largest variance allowed for each bandit's risk, a combination of error, regret and pulls."""
        risks = estimates.means @ np.array(combination)
        if self.runs is None:
            assert self.precision is not None
            return np.asarray((self.precision * risks) ** 2)
        return np.asarray(np.maximum(estimates.plain_variances(combination, self.runs), (ROUNDING * risks) ** 2))


@dataclass(frozen=True)
class Pooled:
    """The estimates under each bandit, the runs made on each, and what they are judged by."""

    estimates: Estimates
    runs: npt.NDArray[np.int64]
    model: Model
    source: PooledRuns


def evaluate_pooled(
    policy: Policy,
    bandits: Sequence[Bandit],
    risks: Sequence[tuple[Loss, float]],
    target: Target,
    seed: int,
    threads: int,
) -> Pooled:
    """Evaluate a policy on several bandits by pooled runs, until all `risks`, a loss and a cost each, meet the target.

    Where a bandit's estimate is not precise enough, more runs are made on that bandit. The bandits must be of a family
    that `find_family` knows, unless there is only one.
    """
    model = build_model(bandits, choose_labels(policy))
    combinations = [combine(loss, cost) for loss, cost in risks]
    source = PooledRuns(policy, bandits, seed, threads)
    least = _least_effective_runs(policy, model, risks, target)
    wanted = np.full(len(bandits), max(FIRST_RUNS, math.ceil(least / min(len(bandits), NEIGHBORS))))
    while True:
        source.extend(wanted)
        runs = source.counts
        estimates = estimate(source.sum(model), runs, model.regret.max(axis=1), combinations)
        excess = np.max(
            [
                estimates.variances(combination) / target.variances(estimates, combination)
                for combination in combinations
            ],
            axis=0,
        )
        excess = np.maximum(excess, least / estimates.effective_runs)
        if np.all(excess <= 1.0):
            break
        if runs.sum() >= MAX_RUNS:
            worst = int(np.argmax(excess))
            warnings.warn(
                f"The standard error asked for needs more than {MAX_RUNS:,} runs; on bandit {worst} it is "
                f"{math.sqrt(excess[worst]):.2g} times as large.",
                PrecisionWarning,
                stacklevel=2,
            )
            break
        growth = np.where(excess > 1.0, np.clip(1.2 * excess, 1.5, MAX_GROWTH), 1.0)
        wanted = np.ceil(runs * growth).astype(np.int64)
    return Pooled(estimates, runs, model, source)


def _least_effective_runs(policy: Policy, model: Model, risks: Sequence[tuple[Loss, float]], target: Target) -> float:
    """Return how many runs the weights of every bandit must amount to."""
    if target.runs is None:
        return MIN_EFFECTIVE_RUNS
    largest_regret = float(model.regret.max())
    stakes = {Loss.MISIDENTIFICATION: 1.0, Loss.SIMPLE_REGRET: largest_regret}
    ratio = max((cost * policy.max_pulls / stakes[loss] for loss, cost in risks if stakes[loss] > 0.0), default=1.0)
    least = MIN_SHARE_IN_EPOCHS if isinstance(policy, EpochPolicy) else MIN_SHARE
    return target.runs * min(max(least, ratio * MIN_SHARE), MAX_SHARE)
