"""Evaluate policies on several bandits from the same runs, until the estimates are precise enough.

A *decoy* of a bandit has its best arm lowered to the average of the others; all else is the same. Runs that give up the
best arm after a few pulls are rare on the bandit and common on the decoy. The likelihoods of such a run differ only in
the few rewards of that arm, so its weight varies little (importance sampling).

Decoys help where not all labelings are averaged; where they are, every run tells how likely an error was. Policies in
epochs do without: once the best arm is gone, their runs often go on to the limit, and in the paper's experiments the
decoys took more time than they saved.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from dbcare.engines.pooling.columns import FOLDS
from dbcare.engines.pooling.estimates import Estimates, Floats, combine, estimate
from dbcare.engines.pooling.model import Model, build_model, choose_labels
from dbcare.engines.pooling.runs import PooledRuns
from dbcare.errors import PrecisionWarning
from dbcare.policies.policy import Policy
from dbcare.problem.bandits import Bandit
from dbcare.problem.rewards import Bernoulli, Gaussian
from dbcare.problem.risk import Loss

DECOY_RUNS = 32  # on each decoy at first
STRIDE = 2  # neighboring bandits that share a decoy, as their errors look alike


def make_decoys(bandits: Sequence[Bandit], model: Model) -> list[Bandit]:
    """Return decoys of every STRIDE-th bandit, in order; none where they gain nothing."""
    if len(bandits) == 1 or len(model.labelings.partners) == 0:
        return []
    return [_lower_best(bandit) for bandit in bandits[::STRIDE]]


def _lower_best(bandit: Bandit) -> Bandit:
    """Return the bandit with its best arm lowered to the average of the others."""
    means = np.array(bandit.means)
    best = int(np.argmax(means))
    arms = list(bandit.arms)
    lowered = float(np.delete(means, best).mean())
    arms[best] = replace(cast(Gaussian | Bernoulli, arms[best]), mean=lowered)
    return Bandit(tuple(arms))


FIRST_RUNS = 64  # on each bandit
NEIGHBORS = 16  # bandits of a fine grid whose runs serve each other, at most
MAX_RUNS = 20_000_000  # on all bandits
MAX_GROWTH = 4.0  # of a bandit's runs from one look to the next
MIN_LOSS_SHARE = 0.5  # of the allowed variance; where the loss alone has more, decoys help
MAX_TALLIES = 100_000_000  # of all runs and arms: 1.6 GB

# A rare, long run must be seen to be counted. So pooled runs must be as many, by their weights, as this share of the
# plain ones that they replace, the more so the more a run can cost compared with what a wrong choice loses. Runs in
# epochs are cheap, and after a wrong choice they often go on for long: with a sixteenth of the runs, BreakevenRacing's
# risk in the drug trial came out 3 to 6% too low.
MIN_SHARE, MAX_SHARE = 1.0 / 16.0, 1.0 / 4.0
# That is not enough if the longest run costs more than two errors and usual runs are far shorter, as with racing:
# bandits that happened to see no long run would stop early while the others continued, and standard errors came out a
# sixth too small. With up to eight times as many runs, few bandits need to continue.
MIN_LONGEST_COST = 2.0
USUAL_SHARE = 0.1  # of the pulls of the longest run; usual runs below it are far shorter
MAX_RARITY = 8.0
MIN_EFFECTIVE_RUNS = 1_000.0  # where a precision is asked for


@dataclass(frozen=True)
class Target:
    """How precise estimates must be: as so many plain runs, or a standard error that is a fraction of the risk."""

    runs: int | None = None
    precision: float | None = None

    def exceed(self, estimates: Estimates, combination: Sequence[float], part: Sequence[float] | None = None) -> Floats:
        """Return how many times the allowed one the variance of each bandit's risk is; the target is met up to 1.

        A risk is a combination of error, regret and pulls. With `part`, the variance is that of `part` instead.
        """
        if self.runs is None:
            assert self.precision is not None
            allowed = (self.precision * (estimates.means @ np.array(combination))) ** 2
        else:
            allowed = estimates.plain_variances(combination, self.runs)
        variances = estimates.variances(combination if part is None else part)
        return np.asarray(
            np.divide(variances, allowed, out=np.where(variances > 0.0, np.inf, 0.0), where=allowed > 0.0)
        )


@dataclass(frozen=True)
class Pooled:
    """The estimates under each bandit, the runs made on each, and what they are judged by."""

    estimates: Estimates
    runs: npt.NDArray[np.int64]
    model: Model
    source: PooledRuns


class Refinement:
    """Looks at pooled runs, and tells how many of them are still wanted on each bandit."""

    def __init__(
        self, policy: Policy, bandits: Sequence[Bandit], risks: Sequence[tuple[Loss, float]], target: Target
    ) -> None:
        self.target = target
        labels = choose_labels(policy)
        self.model = build_model(bandits, labels)
        self.decoys = make_decoys(bandits, self.model)  # not part of the model until errors turn out to be imprecise
        self.model_with_decoys = build_model(bandits, labels, self.decoys) if self.decoys else self.model
        self.combinations = [combine(loss, cost) for loss, cost in risks]
        longest_cost = _longest_cost(policy, self.model, risks)
        self.least = _least_effective_runs(policy, longest_cost, target)
        # Averaged over labels, every run tells how likely it was to go wrong, and to become long.
        averaged = len(self.model.labelings.moves) > 1
        has_rare_runs = policy.pace.in_epochs and longest_cost > MIN_LONGEST_COST and not averaged
        self.usual_pulls = USUAL_SHARE * policy.max_pulls if has_rare_runs else 0.0
        self.most = min(MAX_RUNS, MAX_TALLIES // policy.arms)
        # Runs on neighbors count, too. With exchanged labels, every one of these must occur several times.
        first = max(self.least, 2 * FOLDS * len(self.model.labelings.partners)) / min(len(bandits), NEIGHBORS)
        self.wanted = np.full(len(bandits), max(FIRST_RUNS, math.ceil(first)))

    def look(self, source: PooledRuns) -> Pooled | None:
        """Return the estimates from all runs so far, if they are precise enough; else set how many runs are wanted."""
        runs = source.counts
        estimates = estimate(source.sum(self.model), runs, self.model, self.combinations)
        excess = np.max([self.target.exceed(estimates, combination) for combination in self.combinations], axis=0)
        pulls = np.maximum(estimates.mean_pulls, 1.0)  # a guess makes none
        few = self.least * np.clip(self.usual_pulls / pulls, 1.0, MAX_RARITY) / estimates.effective_runs
        is_precise = bool(np.all(excess <= 1.0) and np.all(few <= 1.0))
        if not is_precise and runs.sum() >= self.most:
            warnings.warn(
                f"The requested precision takes more than {self.most:,} runs on all bandits together; the largest "
                f"standard error is {math.sqrt(excess.max()):.2g} times the one requested.",
                PrecisionWarning,
                stacklevel=5,
            )
            is_precise = True
        if is_precise:
            return Pooled(estimates, runs[: self.model.targets], self.model, source)
        growth = np.where(excess > 1.0, np.clip(1.2 * excess, 1.5, MAX_GROWTH), 1.0)
        growth = np.maximum(growth, np.where(few > 1.0, np.clip(1.4 * few, 1.0, MAX_GROWTH), 1.0))
        growth = self._grow_with_decoys(estimates, growth, len(runs) - len(growth))
        runs = np.concatenate([runs, np.zeros(len(growth) - len(runs), np.int64)])
        more = np.ceil(np.maximum(runs, DECOY_RUNS) * growth) - runs
        self.wanted = runs + np.ceil(more * min(1.0, (self.most - runs.sum()) / more.sum())).astype(np.int64)
        return None

    def _grow_with_decoys(self, estimates: Estimates, growth: Floats, decoys: int) -> Floats:
        """Return what to multiply the runs on each bandit and each decoy by; `decoys` is how many have runs already.

        The first time that losses are imprecise, decoys get their first runs, and the bandits concerned get no more.
        After that, the runs on decoys grow like those on their bandits, where losses are still imprecise.
        """
        losses = [
            self.target.exceed(estimates, combination, (*combination[:2], 0.0)) for combination in self.combinations
        ]
        imprecise = np.max(losses, axis=0) > MIN_LOSS_SHARE
        if decoys:
            wanted = np.where(imprecise, growth, 1.0)
            return np.concatenate([growth, np.maximum.reduceat(wanted, np.arange(0, len(wanted), STRIDE))])
        if not self.decoys or not np.any(imprecise & (growth > 1.0)):
            return growth
        self.model = self.model_with_decoys
        return np.concatenate([np.where(imprecise, 1.0, growth), np.ones(len(self.decoys))])


def _longest_cost(policy: Policy, model: Model, risks: Sequence[tuple[Loss, float]]) -> float:
    """Return what the longest run costs, in units of the largest loss."""
    stakes = {Loss.MISIDENTIFICATION: 1.0, Loss.SIMPLE_REGRET: float(model.regret.max())}
    return max((cost * policy.max_pulls / stakes[loss] for loss, cost in risks if stakes[loss] > 0.0), default=1.0)


def _least_effective_runs(policy: Policy, longest_cost: float, target: Target) -> float:
    """Return how many runs the weights of every bandit must amount to."""
    if target.runs is None:
        return MIN_EFFECTIVE_RUNS
    if policy.pace.in_epochs:
        return target.runs * MAX_SHARE
    return target.runs * min(max(1.0, longest_cost) * MIN_SHARE, MAX_SHARE)


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
    refinement = Refinement(policy, bandits, risks, target)
    source = PooledRuns(policy, [*bandits, *refinement.decoys], seed, threads)
    while True:
        source.extend(refinement.wanted)
        if (pooled := refinement.look(source)) is not None:
            return pooled
