"""One compiled pass over runs: for every bandit, sums of weighted losses and martingales, and of their products."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import uint64

from dbcare.engines.compile import kernel as compile_kernel
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.pooling.model import DIRECTIONS, Model
from dbcare.engines.rng import stream

Floats = npt.NDArray[np.float64]

# The columns of a run: its weight; two martingales per direction, and two of the difference between the best and the
# second best; then error, regret and pulls. All are multiplied by the weight.
WEIGHT = 0
MARTINGALES = 1
ERROR = MARTINGALES + 2 * DIRECTIONS + 2
REGRET = ERROR + 1
PULLS = ERROR + 2
COLUMNS = ERROR + 3

# The columns of plain second moments: sums of w, of w times each loss and the pulls, and of w times their products.
PLAIN_WEIGHT, PLAIN_ERROR, PLAIN_REGRET, PLAIN_PULLS = range(4)
PLAIN_REGRET_SQUARED, PLAIN_ERROR_PULLS, PLAIN_REGRET_PULLS, PLAIN_PULLS_SQUARED, PLAIN_WEIGHT_SQUARED = range(4, 9)
PLAIN_CAPPED = 9
PLAIN_COLUMNS = 10

FOLDS = 4
NEGLIGIBLE = 1e-9  # a weight, or a posterior probability, that cannot change a result
FAR = -28.0  # log of a ratio of likelihoods that cannot either
NO_WEIGHTS = np.empty((0, 0))
CHUNK = 8192  # runs; sums are added chunk by chunk, so that they do not depend on the number of threads


class Sums(NamedTuple):
    """Sums over runs, by fold and target bandit; `columns` also by the bandit that the runs were made on."""

    columns: Floats  # [fold, target, source, column]
    products: Floats  # [fold, target, column, column]
    plain: Floats  # [target, plain column]

    @classmethod
    def empty(cls, bandits: int) -> "Sums":
        """Return sums over no runs."""
        return cls(
            np.zeros((FOLDS, bandits, bandits, COLUMNS)),
            np.zeros((FOLDS, bandits, COLUMNS, COLUMNS)),
            np.zeros((bandits, PLAIN_COLUMNS)),
        )

    def add(self, part: "ChunkSums") -> None:
        """Add the sums over more runs."""
        self.columns[:, :, part.source] += part.columns
        np.add(self.products, part.products, out=self.products)
        np.add(self.plain, part.plain, out=self.plain)


class ChunkSums(NamedTuple):
    """The same sums over runs on one bandit, `source`."""

    source: int
    columns: Floats
    products: Floats
    plain: Floats

    @classmethod
    def empty(cls, source: int, bandits: int) -> "ChunkSums":
        """Return sums over no runs."""
        return cls(
            source,
            np.zeros((FOLDS, bandits, COLUMNS)),
            np.zeros((FOLDS, bandits, COLUMNS, COLUMNS)),
            np.zeros((bandits, PLAIN_COLUMNS)),
        )


def label_likelihoods(steps, model, arm_pulls, arm_sums, run, place, posterior):
    """Store one run's log-likelihood under a bandit for every labeling; return the largest."""
    labelings = model.labelings
    reference = 0.0
    for kind in range(model.theta.shape[1]):
        reference += model.theta[place, kind] * run[1, kind] - model.psi[place, kind] * run[0, kind]
    highest = -np.inf
    for label in range(len(labelings.moves)):
        log = reference
        for move in range(labelings.moves[label]):
            arm = labelings.arm[label, move]
            log += steps[0, place, label, move] * arm_sums[arm] - steps[1, place, label, move] * arm_pulls[arm]
        posterior[place, label] = log
        highest = max(highest, log)
    return highest


def average_likelihoods(posterior, place, highest):
    """Turn log-likelihoods into posterior probabilities of the labelings; return the log of their sum."""
    total = 0.0
    for label in range(posterior.shape[1]):
        behind = posterior[place, label] - highest
        share = math.exp(behind) if behind > FAR else 0.0
        posterior[place, label] = share
        total += share
    scale = 1.0 / total
    for label in range(posterior.shape[1]):
        posterior[place, label] *= scale
    return highest + math.log(total)


def average_over_labels(model, source_pulls, source_sums, run, place, recommended, posterior, column):
    """Fill `column` with one run's averaged martingales and losses; return the averaged squared regret."""
    labelings = model.labelings
    for index in range(len(column)):
        column[index] = 0.0
    squared_regret = 0.0
    # Deviations and variances by direction, under the reference labels.
    x0 = x1 = x2 = v0 = v1 = v2 = t0 = t1 = 0.0
    for kind in range(model.mean.shape[1]):
        deviation = run[1, kind] - model.mean[place, kind] * run[0, kind]
        variance = model.variance[place, kind] * run[0, kind]
        third = model.third_moment[place, kind] * run[0, kind]
        direction = model.direction[place, kind]
        if direction == 0:
            x0 += deviation
            v0 += variance
            t0 += third
        elif direction == 1:
            x1 += deviation
            v1 += variance
            t1 += third
        else:
            x2 += deviation
            v2 += variance
    for label in range(len(labelings.moves)):
        share = posterior[place, label]
        if share < NEGLIGIBLE:
            continue
        chosen = labelings.reference[recommended]
        y0, y1, y2, u0, u1, u2, s0, s1 = x0, x1, x2, v0, v1, v2, t0, t1
        for move in range(labelings.moves[label]):
            arm = labelings.arm[label, move]
            for step in range(2):
                kind = labelings.before[label, move] if step == 0 else labelings.after[label, move]
                sign = -1.0 if step == 0 else 1.0
                deviation = sign * (source_sums[arm] - model.mean[place, kind] * source_pulls[arm])
                variance = sign * model.variance[place, kind] * source_pulls[arm]
                third = sign * model.third_moment[place, kind] * source_pulls[arm]
                direction = model.direction[place, kind]
                if direction == 0:
                    y0 += deviation
                    u0 += variance
                    s0 += third
                elif direction == 1:
                    y1 += deviation
                    u1 += variance
                    s1 += third
                else:
                    y2 += deviation
                    u2 += variance
            if arm == recommended:
                chosen = labelings.after[label, move]
        column[MARTINGALES] += share * y0
        column[MARTINGALES + 1] += share * (y0 * y0 - u0)
        column[MARTINGALES + 2] += share * y1
        column[MARTINGALES + 3] += share * (y1 * y1 - u1)
        column[MARTINGALES + 4] += share * y2
        column[MARTINGALES + 5] += share * (y2 * y2 - u2)
        ahead = y0 - y1
        spread = u0 + u1
        column[MARTINGALES + 6] += share * (ahead * ahead - spread)
        column[MARTINGALES + 7] += share * (ahead * (ahead * ahead - 3.0 * spread) - (s0 - s1))
        regret = model.regret[place, chosen]
        column[ERROR] += share * model.error[place, chosen]
        column[REGRET] += share * regret
        squared_regret += share * regret * regret
    return squared_regret


def add_products(column, sums, products):
    """Add one run's columns, and all their products: a loop of fixed length compiles to vector instructions."""
    for row in range(COLUMNS):
        value = column[row]
        sums[row] += value
        for other in range(COLUMNS):
            products[row, other] += value * column[other]


def add_runs(
    steps, model, shares, label_seed, first, recommended, pulls, undecided, tallies,
    arm_pulls, arm_sums, run, logs, posterior, column, columns, products, plain, weights,
):  # fmt: skip
    """Add runs on one bandit, from number `first` on; `shares` are the shares of runs by bandit.

    Runs are relabeled at random, each by a number that follows from `label_seed` and its own.
    """
    count = len(shares)
    weighted = len(weights) > 0
    best = model.labelings.best
    partners = model.labelings.partners
    for index in range(len(pulls)):
        fold = (first + index) % FOLDS
        for arm in range(len(arm_pulls)):
            arm_pulls[arm] = tallies.pulls[index, arm]
            arm_sums[arm] = tallies.sums[index, arm] - model.center * tallies.pulls[index, arm]
        chosen = recommended[index]
        if len(partners) > 0:
            partner = partners[np.int64(stream(label_seed, first + index)[0] % uint64(len(partners)))]
            arm_pulls[best], arm_pulls[partner] = arm_pulls[partner], arm_pulls[best]
            arm_sums[best], arm_sums[partner] = arm_sums[partner], arm_sums[best]
            if chosen == best:
                chosen = partner
            elif chosen == partner:
                chosen = best
        for kind in range(run.shape[1]):
            run[0, kind] = 0.0
            run[1, kind] = 0.0
        for arm in range(len(arm_pulls)):
            kind = model.labelings.reference[arm]
            run[0, kind] += arm_pulls[arm]
            run[1, kind] += arm_sums[arm]
        highest = -np.inf
        for place in range(count):
            logs[place] = label_likelihoods(steps, model, arm_pulls, arm_sums, run, place, posterior)
            highest = max(highest, logs[place])
        mixture = 0.0
        for place in range(count):
            if logs[place] < highest + FAR:
                logs[place] = 0.0
                continue
            logs[place] = math.exp(average_likelihoods(posterior, place, logs[place]) - highest)
            mixture += shares[place] * logs[place]
        made = float(pulls[index])
        for place in range(count):
            weight = logs[place] / mixture
            if weighted:
                weights[index, place] = weight
            if weight < NEGLIGIBLE:
                continue
            squared = average_over_labels(model, arm_pulls, arm_sums, run, place, chosen, posterior, column)
            error = column[ERROR]
            regret = column[REGRET]
            plain[place, PLAIN_WEIGHT] += weight
            plain[place, PLAIN_ERROR] += weight * error
            plain[place, PLAIN_REGRET] += weight * regret
            plain[place, PLAIN_PULLS] += weight * made
            plain[place, PLAIN_REGRET_SQUARED] += weight * squared
            plain[place, PLAIN_ERROR_PULLS] += weight * error * made
            plain[place, PLAIN_REGRET_PULLS] += weight * regret * made
            plain[place, PLAIN_PULLS_SQUARED] += weight * made * made
            plain[place, PLAIN_WEIGHT_SQUARED] += weight * weight
            plain[place, PLAIN_CAPPED] += weight * undecided[index]
            column[WEIGHT] = 1.0
            column[PULLS] = made
            for row in range(COLUMNS):
                column[row] *= weight
            add_products(column, columns[fold, place], products[fold, place])


@cache
def _kernel() -> Any:
    return compile_kernel(add_runs, "the pooled estimator")


class Chunk(NamedTuple):
    """Some runs on one bandit, from number `first` on; `label_seed` is that of their relabeling."""

    source: int
    label_seed: int
    first: int
    outcomes: Outcomes


def sum_chunk(model: Model, shares: Floats, chunk: Chunk, weights: Floats) -> ChunkSums:
    """Return the sums over a chunk of runs; `weights`, unless empty, receives the weight of each run by bandit."""
    sums = ChunkSums.empty(chunk.source, model.bandits)
    before, after = model.labelings.before, model.labelings.after
    # By how much each move of a labeling changes the log-likelihood, per unit of reward and per pull.
    steps = np.stack([numbers[:, after] - numbers[:, before] for numbers in (model.theta, model.psi)])
    classes, labels = model.theta.shape[1], len(model.labelings.moves)
    out = chunk.outcomes
    by_arm = np.empty((2, out.tallies.arms))
    scratch = (np.empty((2, classes)), np.empty(model.bandits), np.empty((model.bandits, labels)), np.empty(COLUMNS))
    runs = (out.recommended, out.pulls, out.undecided, out.tallies)
    results = (sums.columns, sums.products, sums.plain, weights)
    _kernel()(steps, model, shares, chunk.label_seed, chunk.first, *runs, *by_arm, *scratch, *results)
    return sums


def sum_chunks(model: Model, shares: Floats, chunks: Sequence[Chunk], total: Sums, threads: int) -> None:
    """Add the sums over all chunks, in their order, to `total`."""
    with ExitStack() as stack:
        # One thread is the caller's own, so that its CPU time is counted there.
        apply = map if threads == 1 else stack.enter_context(ThreadPoolExecutor(threads)).map
        for part in apply(lambda chunk: sum_chunk(model, shares, chunk, NO_WEIGHTS), chunks):
            total.add(part)


def cut_chunks(outcomes: Sequence[Outcomes], label_seeds: Sequence[int], first: int = 0) -> list[Chunk]:
    """Cut the runs of each bandit, from number `first` on, into chunks; seeds of the relabeling are by bandit."""
    return [
        Chunk(source, label_seeds[source], first + start, runs.part(start, min(start + CHUNK, len(runs.pulls))))
        for source, runs in enumerate(outcomes)
        for start in range(0, len(runs.pulls), CHUNK)
    ]
