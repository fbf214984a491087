"""Estimates from pooled runs: weighted sums over runs, with control variates.

Runs on one bandit are a stratum, so only deviations from the stratum's mean count. The four folds form two halves, and
each half uses coefficients fitted on the other. Whether these use the martingales, or the weight alone, is decided in
the half that they are fitted on, fold against fold: a half that judged its own fit would hide a rare, long run.
Martingales are huge in such a run, so coefficients fitted to ordinary runs would do harm there. As a half may contain
no such run on a given bandit, the choice is averaged over neighboring bandits, some of which may have one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.engines.kernels.compile import kernel as compile_kernel
from dbcare.engines.pooling.columns import (
    COLUMNS,
    ERROR,
    FOLDS,
    PLAIN_CAPPED,
    PLAIN_COLUMNS,
    PLAIN_ERROR,
    PLAIN_ERROR_PULLS,
    PLAIN_PULLS,
    PLAIN_PULLS_SQUARED,
    PLAIN_REGRET,
    PLAIN_REGRET_PULLS,
    PLAIN_REGRET_SQUARED,
    PLAIN_WEIGHT,
    PLAIN_WEIGHT_SQUARED,
    TILTED,
    WEIGHT,
    add_runs,
)
from dbcare.engines.pooling.model import LabelSteps, Model, tabulate
from dbcare.engines.simulate.halt import current_halt
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.statistics import Estimate
from dbcare.problem.risk import Loss

Floats = npt.NDArray[np.float64]

NO_WEIGHTS = np.empty((0, 0))
CHUNK = 8192  # runs; sums are added chunk by chunk, so that they do not depend on the number of threads


class SourceSums(NamedTuple):
    """Sums over runs on one bandit, `source`."""

    source: int
    columns: Floats  # [fold, target, column]
    products: Floats  # [fold, target, column, column]
    plain: Floats  # [target, plain column]

    @classmethod
    def empty(cls, source: int, bandits: int) -> SourceSums:
        """Return sums over no runs."""
        return cls(
            source,
            np.zeros((FOLDS, bandits, COLUMNS)),
            np.zeros((FOLDS, bandits, COLUMNS, COLUMNS)),
            np.zeros((bandits, PLAIN_COLUMNS)),
        )

    def add(self, part: SourceSums) -> None:
        """Add the sums over more runs on the same bandit."""
        for total, more in zip(self[1:], part[1:], strict=True):
            np.add(total, more, out=total)


class Sums(NamedTuple):
    """Sums over all runs, by fold and target bandit; `columns` also by the bandit that the runs were made on."""

    columns: Floats  # [fold, target, source, column]
    products: Floats  # [fold, target, column, column]
    plain: Floats  # [target, plain column]

    @classmethod
    def combine(cls, parts: Sequence[SourceSums], scales: Floats) -> Sums:
        """Return the sums over all runs, with the weights of those on each bandit multiplied by its scale."""
        columns = np.stack([scale * part.columns for part, scale in zip(parts, scales, strict=True)], axis=2)
        products, plain = np.zeros_like(parts[0].products), np.zeros_like(parts[0].plain)
        for part, scale in zip(parts, scales, strict=True):
            products += scale**2 * part.products
            plain += scale * part.plain
            plain[:, PLAIN_WEIGHT_SQUARED] += (scale**2 - scale) * part.plain[:, PLAIN_WEIGHT_SQUARED]
        return cls(columns, products, plain)


@cache
def _kernel() -> Any:
    return compile_kernel(add_runs, "the pooled estimator")


class Chunk(NamedTuple):
    """Some runs on one bandit, from number `first` on; `label_seed` is that of their relabeling."""

    source: int
    label_seed: int
    first: int
    outcomes: Outcomes


def sum_chunk(model: Model, steps: LabelSteps, shares: Floats, chunk: Chunk, weights: Floats) -> SourceSums:
    """Return the sums over a chunk of runs; `weights`, unless empty, receives the weight of each run by bandit.

    `steps` are those of `tabulate(model)`. The weights of runs are p_j / sum over m of `shares`_m p_m.
    """
    sums = SourceSums.empty(chunk.source, model.targets)
    out = chunk.outcomes
    by_arm = np.empty((2, out.tallies.arms))
    moves, labels = steps.arm.shape
    scratch = (
        np.empty((2, model.theta.shape[1])),
        np.empty((2, moves, labels)),
        *np.empty((3, model.bandits)),
        np.empty((model.bandits, labels)),
        np.empty(COLUMNS),
    )
    runs = (out.recommended, out.pulls, out.undecided, out.tallies)
    results = (sums.columns, sums.products, sums.plain, weights)
    _kernel()(steps, model, shares, chunk.label_seed, chunk.first, *runs, *by_arm, *scratch, *results)
    return sums


def sum_chunks(
    model: Model, shares: Floats, chunks: Sequence[Chunk], totals: Sequence[SourceSums], threads: int
) -> None:
    """Add the sums over all chunks, in their order, to those of their bandits in `totals`."""
    steps, halt = tabulate(model), current_halt()

    def add(chunk: Chunk) -> SourceSums:
        halt.check()
        return sum_chunk(model, steps, shares, chunk, NO_WEIGHTS)

    with ExitStack() as stack:
        # One thread is the caller's own, so that its CPU time is counted there.
        apply = map if threads == 1 else stack.enter_context(ThreadPoolExecutor(threads)).map
        for part in apply(add, chunks):
            totals[part.source].add(part)


def cut_chunks(source: int, label_seed: int, first: int, outcomes: Outcomes) -> list[Chunk]:
    """Cut runs on a bandit, of which the first has number `first`, into chunks."""
    runs = len(outcomes.pulls)
    return [
        Chunk(source, label_seed, first + start, outcomes.part(start, min(start + CHUNK, runs)))
        for start in range(0, runs, CHUNK)
    ]


HALVES = ((0, 1), (2, 3))
RESPONSES = slice(ERROR, COLUMNS)
# Sets of controls.
CHOICES: tuple[list[int], ...] = ([], [WEIGHT], list(range(WEIGHT, TILTED)), list(range(WEIGHT, ERROR)))
ROUNDING = 1e-8  # a standard error below this fraction of its estimate is rounding
RIDGE = 1e-9  # added to the unit diagonal of the normal equations
ADVISERS = 6  # neighboring bandits on either side that help to choose a bandit's controls, on a fine grid


@dataclass(frozen=True)
class Estimates:
    """Error, regret and pulls under each bandit, in this order, with their covariances.

    Parameters
    ----------
    means : array
        means[bandit]: the three estimates.
    covariance : array
        covariance[bandit]: that of the estimates.
    plain_covariance : array
        plain_covariance[bandit]: that of a single plain run.
    unseen : array
        unseen[bandit]: products of the largest losses, where labels are not averaged and less than one run has made an
        error, times the share of a run that is missing; standard errors then assume that it had been made.
    capped : array
        Probability that a run stops undecided.
    effective_runs : array
        (sum of weights)^2 / sum of squared weights.

    Examples
    --------
    >>> from dbcare import Breakeven, Risk, evaluate_grid
    >>> risk = Risk.simple_regret(1e-2)
    >>> curve = evaluate_grid(Breakeven(risk, arms=3, sigma=1.0), [0.5, 1.0], shape="one-sparse", runs=1_000)
    >>> curve.estimates.means.shape, curve.estimates.covariance.shape
    ((2, 3), (2, 3, 3))
    """

    means: Floats
    covariance: Floats
    plain_covariance: Floats
    unseen: Floats
    capped: Floats
    effective_runs: Floats

    @property
    def mean_pulls(self) -> Floats:
        """Mean pulls of a run under each bandit."""
        return np.asarray(self.means[:, 2])

    def variances(self, combination: Sequence[float]) -> Floats:
        """Return the variances of a linear combination of error, regret and pulls; 0 where they are rounding."""
        seen, unseen = _combine(self.covariance, combination), _combine(self.unseen, combination)
        variances = seen + unseen / self.effective_runs**2
        values = self.means @ np.array(combination)
        return np.asarray(np.where(variances > (ROUNDING * values) ** 2, variances, 0.0))

    def plain_variances(self, combination: Sequence[float], runs: float) -> Floats:
        """Return the variances of the mean of the same combination over so many plain runs."""
        return _combine(self.plain_covariance, combination) / runs + _combine(self.unseen, combination) / runs**2

    def at(self, place: int, combination: Sequence[float]) -> Estimate:
        """Return the estimate of a combination under the bandit at `place`."""
        value = float(self.means[place] @ np.array(combination))
        return Estimate(value, math.sqrt(self.variances(combination)[place]))

    def plain_runs(self, combination: Sequence[float]) -> Floats:
        """Return how many plain runs would have the same standard error."""
        variances, plain = self.variances(combination), _combine(self.plain_covariance, combination)
        unseen = _combine(self.unseen, combination)
        roots = plain + np.sqrt(plain**2 + 4.0 * variances * unseen)  # of variances n^2 - plain n - unseen = 0
        return np.asarray(np.divide(roots, 2.0 * variances, out=np.full_like(roots, np.inf), where=variances > 0.0))


def combine(loss: Loss, cost: float) -> tuple[float, float, float]:
    """Return the risk as a combination of error, regret and pulls."""
    return (1.0, 0.0, cost) if loss is Loss.MISIDENTIFICATION else (0.0, 1.0, cost)


def _combine(products: Floats, combination: Sequence[float]) -> Floats:
    return np.asarray(np.maximum(np.einsum("jab,a,b->j", products, combination, combination), 0.0))


def estimate(
    sums: Sums,
    runs: npt.NDArray[np.int64],
    model: Model,
    combinations: Sequence[Sequence[float]],
    advisers: int = ADVISERS,
) -> Estimates:
    """Estimate from sums over `runs` runs by bandit; controls are chosen for these combinations of the responses.

    On a coarse grid, where neighbors say less, fewer `advisers` should help to choose them.
    """
    counts = runs // FOLDS + (runs % FOLDS > np.arange(FOLDS)[:, None])  # by fold and bandit
    halves = [
        _use(sums, counts, own, _fit(sums, counts, other, combinations, advisers))
        for own, other in (HALVES, HALVES[::-1])
    ]
    shares = [counts[list(half)].sum() / counts.sum() for half in HALVES]
    plain = sums.plain
    largest_regret = model.regret[: model.targets].max(axis=1)
    largest_losses = np.column_stack([largest_regret > 0.0, largest_regret, np.zeros(model.targets)])
    # Averaged over labels, every run says how likely it made an error: nothing is unseen.
    averaged = len(model.labelings.moves) > 1
    largest_losses *= 0.0 if averaged else np.maximum(1.0 - plain[:, PLAIN_ERROR, None], 0.0)
    return Estimates(
        means=shares[0] * halves[0][0] + shares[1] * halves[1][0],
        covariance=shares[0] ** 2 * halves[0][1] + shares[1] ** 2 * halves[1][1],
        plain_covariance=_plain_covariance(plain),
        unseen=largest_losses[:, :, None] * largest_losses[:, None, :],
        capped=plain[:, PLAIN_CAPPED] / plain[:, PLAIN_WEIGHT],
        effective_runs=plain[:, PLAIN_WEIGHT] ** 2 / plain[:, PLAIN_WEIGHT_SQUARED],
    )


def _fit(
    sums: Sums,
    counts: npt.NDArray[np.int64],
    folds: Sequence[int],
    combinations: Sequence[Sequence[float]],
    advisers: int,
) -> Floats:
    """Return each bandit's coefficients of all controls for each response, fitted on these folds."""
    spreads = [_center(sums, counts, [fold]) for fold in folds]
    both = _center(sums, counts, folds)
    best = np.full(len(both), np.inf)
    slopes = np.zeros((len(both), ERROR, 3))
    for controls in CHOICES:
        shares = [_share_left(spreads[test], _solve(spreads[1 - test], controls), combinations) for test in (0, 1)]
        left = _average_neighbors(shares[0] + shares[1], advisers)
        better = left < best
        best = np.where(better, left, best)
        slopes[better] = _solve(both[better], controls)
    return slopes


def _average_neighbors(numbers: Floats, advisers: int) -> Floats:
    """Average each bandit's number with its neighbors'; beyond the ends, the first and the last one are repeated."""
    width = 2 * advisers + 1
    return np.convolve(np.pad(numbers, advisers, mode="edge"), np.full(width, 1.0 / width), mode="valid")


def _share_left(spread: Floats, slopes: Floats, combinations: Sequence[Sequence[float]]) -> Floats:
    """Return the sum, over the combinations, of the share of their variance that the controls leave."""
    left, whole = _residual_products(spread, slopes), spread[:, RESPONSES, RESPONSES]
    shares = np.zeros(len(spread))
    for combination in combinations:
        rest, all_of_it = _combine(left, combination), _combine(whole, combination)
        shares += np.divide(rest, all_of_it, out=np.zeros_like(rest), where=all_of_it > 0.0)
    return shares


def _center(sums: Sums, counts: npt.NDArray[np.int64], folds: Sequence[int]) -> Floats:
    """Return the products of deviations from each stratum's mean, summed over these folds, by bandit."""
    chosen = list(folds)
    totals = sums.columns[chosen].sum(axis=0)
    roots = totals / np.sqrt(np.maximum(counts[chosen].sum(axis=0), 1))[:, None]
    return np.asarray(sums.products[chosen].sum(axis=0) - roots.transpose(0, 2, 1) @ roots)


def _solve(spread: Floats, controls: list[int]) -> Floats:
    """Return the least-squares coefficients of all controls for each response; 0 for those that are not used."""
    slopes = np.zeros((len(spread), ERROR, 3))
    if controls:
        squares = np.maximum(np.diagonal(spread, axis1=1, axis2=2)[:, controls], 0.0)
        # A control that does not vary has no coefficient; the ridge keeps those apart that vary alike.
        scale = np.where(squares > 0.0, 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0)), 0.0)
        gram = spread[:, controls][:, :, controls] * scale[:, :, None] * scale[:, None, :]
        shared = spread[:, controls, RESPONSES] * scale[:, :, None]
        slopes[:, controls] = np.linalg.solve(gram + RIDGE * np.eye(len(controls)), shared) * scale[:, :, None]
    return slopes


def _residual_products(spread: Floats, slopes: Floats) -> Floats:
    """Return the products of deviations of the responses after subtracting the controls."""
    across = slopes.transpose(0, 2, 1)
    shared = across @ spread[:, :ERROR, RESPONSES]
    left = spread[:, RESPONSES, RESPONSES] - shared - shared.transpose(0, 2, 1)
    return np.asarray(left + across @ spread[:, :ERROR, :ERROR] @ slopes)


def _use(sums: Sums, counts: npt.NDArray[np.int64], folds: Sequence[int], slopes: Floats) -> tuple[Floats, Floats]:
    """Return the estimates of these folds with given coefficients, and their covariance, by bandit."""
    by_stratum = counts[list(folds)].sum(axis=0)
    count = int(by_stratum.sum())
    totals = sums.columns[list(folds)].sum(axis=(0, 2)) / count
    apart = totals[:, :ERROR].copy()
    apart[:, WEIGHT] -= 1.0  # the mean of the weights; martingales have mean 0
    means = totals[:, RESPONSES] - np.einsum("jcr,jc->jr", slopes, apart)
    left = _residual_products(_center(sums, counts, folds), slopes)
    strata = int(np.count_nonzero(by_stratum))
    return means, left / count / max(count - strata, 1)


def _plain_covariance(plain: Floats) -> Floats:
    """Return the covariance of a single run's error, regret and pulls."""
    moments = plain / plain[:, PLAIN_WEIGHT, None]
    mean = moments[:, [PLAIN_ERROR, PLAIN_REGRET, PLAIN_PULLS]]
    second = np.empty((len(plain), 3, 3))
    # An error is 0 or 1, and the regret is 0 without one.
    second[:, 0, 0] = moments[:, PLAIN_ERROR]
    second[:, 0, 1] = second[:, 1, 0] = moments[:, PLAIN_REGRET]
    second[:, 1, 1] = moments[:, PLAIN_REGRET_SQUARED]
    second[:, 0, 2] = second[:, 2, 0] = moments[:, PLAIN_ERROR_PULLS]
    second[:, 1, 2] = second[:, 2, 1] = moments[:, PLAIN_REGRET_PULLS]
    second[:, 2, 2] = moments[:, PLAIN_PULLS_SQUARED]
    return np.asarray(second - mean[:, :, None] * mean[:, None, :])
