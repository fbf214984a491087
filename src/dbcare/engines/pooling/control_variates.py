"""Estimates of error, regret and pulls, with standard errors, from the sums over pooled runs.

Runs on one bandit are a stratum, so only deviations from the stratum's mean count. The four folds form two halves, and
each half uses coefficients fitted on the other. Whether these use the martingales, or the weight alone, is decided in
the half that they are fitted on, fold against fold: a half that has never seen a rare, long run cannot judge a fit by
it, and one that judged its own fit would hide such a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbcare.engines.pooling.sums import (
    COLUMNS,
    ERROR,
    FOLDS,
    PLAIN_CAPPED,
    PLAIN_ERROR,
    PLAIN_ERROR_PULLS,
    PLAIN_PULLS,
    PLAIN_PULLS_SQUARED,
    PLAIN_REGRET,
    PLAIN_REGRET_PULLS,
    PLAIN_REGRET_SQUARED,
    PLAIN_WEIGHT,
    PLAIN_WEIGHT_SQUARED,
    WEIGHT,
    Sums,
)

Floats = npt.NDArray[np.float64]

HALVES = ((0, 1), (2, 3))
RESPONSES = slice(ERROR, COLUMNS)
NO_CONTROLS: list[int] = []
WEIGHT_ONLY = [WEIGHT]
WITH_MARTINGALES = list(range(WEIGHT, ERROR))
TINY = 1e-10  # of a control's own sum of squares: what is left beside the other controls is rounding


@dataclass(frozen=True)
class Estimates:
    """Error, regret and pulls under each bandit, in this order.

    covariance        [bandit, 3, 3]: of the estimates
    plain_covariance  [bandit, 3, 3]: of a single plain run
    unseen            [bandit, 3, 3]: products of the largest losses where no run has made an error, else 0; standard
                      errors then assume that one run had made it
    capped            probability that a run stops undecided
    effective_runs    (sum of weights)^2 / sum of squared weights
    """

    means: Floats
    covariance: Floats
    plain_covariance: Floats
    unseen: Floats
    capped: Floats
    effective_runs: Floats

    def variances(self, combination: Sequence[float]) -> Floats:
        """Return the variances of a linear combination of error, regret and pulls."""
        return _combine(self.covariance, combination) + _combine(self.unseen, combination) / self.effective_runs**2

    def plain_variances(self, combination: Sequence[float], runs: float) -> Floats:
        """Return the variances of the mean of the same combination over so many plain runs."""
        return _combine(self.plain_covariance, combination) / runs + _combine(self.unseen, combination) / runs**2

    def plain_runs(self, combination: Sequence[float]) -> Floats:
        """Return how many plain runs would have the same standard error."""
        variances, plain = self.variances(combination), _combine(self.plain_covariance, combination)
        unseen = _combine(self.unseen, combination)
        roots = plain + np.sqrt(plain**2 + 4.0 * variances * unseen)  # of variances n^2 - plain n - unseen = 0
        return np.divide(roots, 2.0 * variances, out=np.full_like(roots, np.inf), where=variances > 0.0)


def _combine(products: Floats, combination: Sequence[float]) -> Floats:
    return np.maximum(np.einsum("jab,a,b->j", products, combination, combination), 0.0)


def estimate(
    sums: Sums, runs: npt.NDArray[np.int64], largest_regret: Floats, combinations: Sequence[Sequence[float]]
) -> Estimates:
    """Estimate from sums over `runs` runs by bandit; controls are chosen for these combinations of the responses."""
    bandits = len(runs)
    means, covariance = np.empty((bandits, 3)), np.empty((bandits, 3, 3))
    for place in range(bandits):
        halves = [
            _use(sums, runs, place, own, _fit(sums, runs, place, other, combinations))
            for own, other in (HALVES, HALVES[::-1])
        ]
        means[place] = (halves[0][0] + halves[1][0]) / 2.0
        covariance[place] = (halves[0][1] + halves[1][1]) / 4.0
    plain = sums.plain
    largest_losses = np.column_stack([largest_regret > 0.0, largest_regret, np.zeros(bandits)])
    largest_losses[plain[:, PLAIN_ERROR] > 0.0] = 0.0
    return Estimates(
        means=means,
        covariance=covariance,
        plain_covariance=_plain_covariance(plain),
        unseen=largest_losses[:, :, None] * largest_losses[:, None, :],
        capped=plain[:, PLAIN_CAPPED] / plain[:, PLAIN_WEIGHT],
        effective_runs=plain[:, PLAIN_WEIGHT] ** 2 / plain[:, PLAIN_WEIGHT_SQUARED],
    )


def _fit(
    sums: Sums, runs: npt.NDArray[np.int64], place: int, folds: Sequence[int], combinations: Sequence[Sequence[float]]
) -> Floats:
    """Return the coefficients of all controls for each response, fitted on these folds."""
    spreads = [_center(sums, runs, place, [fold]) for fold in folds]
    best, chosen = np.inf, NO_CONTROLS
    for controls in (NO_CONTROLS, WEIGHT_ONLY, WITH_MARTINGALES):
        left = sum(
            _residual(spreads[test], _solve(spreads[1 - test], controls), combinations) for test in range(len(folds))
        )
        if left < best:
            best, chosen = left, controls
    return _solve(_center(sums, runs, place, folds), chosen)


def _residual(spread: Floats, slopes: Floats, combinations: Sequence[Sequence[float]]) -> float:
    """Return the mean, over the combinations, of the share of their variance that the controls leave."""
    left = _residual_products(spread, slopes)
    shares = []
    for combination in combinations:
        whole = float(np.einsum("ab,a,b", spread[RESPONSES, RESPONSES], combination, combination))
        rest = float(np.einsum("ab,a,b", left, combination, combination))
        shares.append(rest / whole if whole > 0.0 else 0.0)
    return float(np.mean(shares))


def _center(sums: Sums, runs: npt.NDArray[np.int64], place: int, folds: Sequence[int]) -> Floats:
    """Return the products of deviations from each stratum's mean, summed over these folds."""
    chosen = list(folds)
    products = sums.products[chosen, place].sum(axis=0)
    products = np.triu(products) + np.triu(products, 1).T
    totals = sums.columns[chosen, place].sum(axis=0)
    counts = runs * (len(chosen) / FOLDS)
    return np.asarray(products - (totals / np.maximum(counts, 1.0)[:, None]).T @ totals)


def _solve(spread: Floats, controls: list[int]) -> Floats:
    """Return the least-squares coefficients of all controls for each response; 0 for those that are not used."""
    slopes = np.zeros((ERROR, 3))
    scale = np.sqrt(np.maximum(np.diag(spread), 0.0))
    used = [control for control in controls if scale[control] > 0.0]
    if used:
        gram = spread[np.ix_(used, used)] / np.outer(scale[used], scale[used])
        shared = spread[used, RESPONSES] / scale[used, None]
        slopes[used] = np.linalg.lstsq(gram, shared, rcond=TINY)[0] / scale[used, None]
    return slopes


def _residual_products(spread: Floats, slopes: Floats) -> Floats:
    """Return the products of deviations of the responses after subtracting the controls."""
    shared = slopes.T @ spread[:ERROR, RESPONSES]
    return np.asarray(spread[RESPONSES, RESPONSES] - shared - shared.T + slopes.T @ spread[:ERROR, :ERROR] @ slopes)


def _use(
    sums: Sums, runs: npt.NDArray[np.int64], place: int, folds: Sequence[int], slopes: Floats
) -> tuple[Floats, Floats]:
    """Return the estimates of these folds with given coefficients, and their covariance."""
    count = runs.sum() * len(folds) / FOLDS
    totals = sums.columns[list(folds), place].sum(axis=(0, 1)) / count
    known = np.zeros(ERROR)
    known[WEIGHT] = 1.0  # the mean of the weights; martingales have mean 0
    means = totals[RESPONSES] - slopes.T @ (totals[:ERROR] - known)
    strata = int(np.count_nonzero(runs))
    left = _residual_products(_center(sums, runs, place, folds), slopes)
    return means, left / count / max(count - strata, 1.0)


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
