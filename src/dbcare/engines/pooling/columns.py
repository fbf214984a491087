"""One compiled pass over runs: for every bandit, sums of weighted losses and martingales, and of their products."""

import math

import numpy as np
from numba import njit, uint64

from dbcare.engines.pooling.model import (
    ALL,
    ALL_VARIANCE,
    BEST,
    BEST_BY_SUM,
    BEST_VARIANCE,
    DIRECTIONS,
    SECOND,
    SECOND_BY_SUM,
    SECOND_VARIANCE,
    THIRD,
)
from dbcare.engines.simulate.rng import INLINE, stream

# The columns of a run: its weight; two martingales per direction, the square and the cube of the difference between the
# best and the second best, and the exponential of `model.Tilt`; then error, regret and pulls. All are multiplied by the
# weight.
WEIGHT = 0
MARTINGALES = 1
SQUARE = MARTINGALES + 2 * DIRECTIONS
CUBE = SQUARE + 1
TILTED = SQUARE + 2
ERROR = SQUARE + 3
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
ROUNDER = 1.5 * 2.0**52  # added to a number, it rounds that to a whole one
VECTOR = 8  # from this many labelings on, vector instructions pay off


@njit(**INLINE)
def exp_of(x):
    """Return exp(x) for -700 < x < 700, with a relative error below 1e-14; unlike `math.exp`, it can be vectorized.

    x = k ln 2 + r, with k the nearest whole number. Added to ROUNDER, k is in the lowest bits of the sum, from which
    those of 2^k are made.
    """
    shifted = x * 1.4426950408889634 + ROUNDER
    k = shifted - ROUNDER
    r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10  # ln 2 in two parts
    series = 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    exponent = (np.float64(shifted).view(np.int64) + np.int64(1023)) << np.int64(52)
    return series * np.int64(exponent).view(np.float64)


def refer(steps, run, logs, deviation, variance):
    """Fill in one run's log-likelihood, deviation and variance of all arms, under each bandit, for reference labels."""
    for place in range(len(logs)):
        logs[place] = 0.0
        deviation[place] = 0.0
        variance[place] = 0.0
    for kind in range(run.shape[1]):
        pulls = run[0, kind]
        total = run[1, kind]
        for place in range(len(logs)):
            logs[place] += steps.theta[kind, place] * total - steps.psi[kind, place] * pulls
            deviation[place] += total - steps.mean[kind, place] * pulls
            variance[place] += steps.variance[kind, place] * pulls


def label_likelihoods(steps, place, reference, moved, logs):
    """Store one run's log-likelihood under a bandit for every labeling; return the largest."""
    for label in range(len(logs)):
        logs[label] = reference
    for move in range(moved.shape[1]):
        by_sum = steps.log_by_sum[place, move]
        by_pull = steps.log[place, move]
        for label in range(len(logs)):
            logs[label] += by_sum[label] * moved[1, move, label] + by_pull[label] * moved[0, move, label]
    highest = logs[0]
    for label in range(1, len(logs)):
        highest = max(highest, logs[label])
    return highest


def average_likelihoods(shares, highest):
    """Turn log-likelihoods into posterior probabilities of the labelings; return their sum, relative to `highest`."""
    if len(shares) == 1:
        shares[0] = 1.0
        return 1.0
    if len(shares) < VECTOR:
        for label in range(len(shares)):
            behind = shares[label] - highest
            shares[label] = math.exp(behind) if behind > FAR else 0.0
    else:
        for label in range(len(shares)):
            behind = shares[label] - highest
            likelihood = exp_of(behind if behind > FAR else FAR)
            shares[label] = likelihood if behind > FAR else 0.0
    total = 0.0
    for label in range(len(shares)):
        total += shares[label]
    scale = 1.0 / total
    for label in range(len(shares)):
        shares[label] *= scale
    return total


def average_over_labels(steps, model, place, pulls, sums, run, deviation, variance, recommended, shares, column):
    """Fill `column` with one run's averaged martingales and losses; return the averaged squared regret.

    `deviation` and `variance` are those of all arms for reference labels.
    """
    labelings = model.labelings
    for index in range(len(column)):
        column[index] = 0.0
    squared_regret = 0.0
    # Deviations and variances of the best and the second best arms, for reference labels.
    best = steps.best[place]
    x0 = run[1, best] - model.mean[place, best] * run[0, best]
    v0 = model.variance[place, best] * run[0, best]
    third = model.third_moment[place, best] * run[0, best]
    x1 = v1 = 0.0
    if steps.has_second:
        second = steps.second[place]
        x1 = run[1, second] - model.mean[place, second] * run[0, second]
        v1 = model.variance[place, second] * run[0, second]
        third -= model.third_moment[place, second] * run[0, second]
        exponent = model.tilt.exponent[place]
        if exponent > 0.0:  # there is one labeling then
            log = exponent * (x0 - x1) + model.tilt.best[place] * run[0, best]
            log += model.tilt.second[place] * run[0, second]
            column[TILTED] = math.exp(-log) - 1.0
    for label in range(len(shares)):
        share = shares[label]
        if share < NEGLIGIBLE:
            continue
        chosen = labelings.reference[recommended]
        y0, y1, total, u0, u1, spread, skew = x0, x1, deviation, v0, v1, variance, third
        for move in range(labelings.moves[label]):
            arm = labelings.arm[label, move]
            change = steps.change[place, label, move]
            made = pulls[arm]
            y0 += change[BEST_BY_SUM] * sums[arm] + change[BEST] * made
            y1 += change[SECOND_BY_SUM] * sums[arm] + change[SECOND] * made
            total += change[ALL] * made
            u0 += change[BEST_VARIANCE] * made
            u1 += change[SECOND_VARIANCE] * made
            spread += change[ALL_VARIANCE] * made
            skew += change[THIRD] * made
            if arm == recommended:
                chosen = labelings.after[label, move]
        column[MARTINGALES] += share * y0
        column[MARTINGALES + 1] += share * (y0 * y0 - u0)
        column[MARTINGALES + 2] += share * y1
        column[MARTINGALES + 3] += share * (y1 * y1 - u1)
        if steps.has_others:  # else the differences are rounding
            y2 = total - y0 - y1
            column[MARTINGALES + 4] += share * y2
            column[MARTINGALES + 5] += share * (y2 * y2 - (spread - u0 - u1))
        ahead = y0 - y1
        column[SQUARE] += share * (ahead * ahead - (u0 + u1))
        column[CUBE] += share * (ahead * (ahead * ahead - 3.0 * (u0 + u1)) - skew)
        regret = model.regret[place, chosen]
        column[ERROR] += share * model.error[place, chosen]
        column[REGRET] += share * regret
        squared_regret += share * regret * regret
    return squared_regret


def add_products(column, sums, products):
    """Add one run's columns, and all their products."""
    for row in range(COLUMNS):
        sums[row] += column[row]
    for row in range(COLUMNS):
        value = column[row]
        for other in range(COLUMNS):
            products[row, other] += value * column[other]


def add_runs(
    steps, model, shares, label_seed, first, recommended, pulls, undecided, tallies,
    arm_pulls, arm_sums, run, moved, logs, deviation, variance, posterior, column, columns, products, plain, weights,
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
        refer(steps, run, logs, deviation, variance)
        for move in range(moved.shape[1]):
            for label in range(moved.shape[2]):
                arm = steps.arm[move, label]
                moved[0, move, label] = arm_pulls[arm]
                moved[1, move, label] = arm_sums[arm]
        highest = -np.inf
        for place in range(count):
            logs[place] = label_likelihoods(steps, place, logs[place], moved, posterior[place])
            highest = max(highest, logs[place])
        mixture = 0.0
        for place in range(count):
            if logs[place] < highest + FAR:
                logs[place] = 0.0
                continue
            logs[place] = math.exp(logs[place] - highest) * average_likelihoods(posterior[place], logs[place])
            mixture += shares[place] * logs[place]
        made = float(pulls[index])
        for place in range(len(plain)):
            weight = logs[place] / mixture
            if weighted:
                weights[index, place] = weight
            if weight < NEGLIGIBLE:
                continue
            squared = average_over_labels(
                steps, model, place, arm_pulls, arm_sums, run, deviation[place], variance[place], chosen,
                posterior[place], column,
            )  # fmt: skip
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
