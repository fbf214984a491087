"""The paper's budgets: epochs, confidence, and expected pulls."""

import math

import numpy as np
from numpy.typing import ArrayLike

from dbcare.base import checks
from dbcare.problem.risk import Loss
from dbcare.theory import arguments
from dbcare.theory.arguments import FloatOrFloats, IntOrInts

PRESETS = ("paper", "theorem", "corrected")


def epoch_budget(loss: Loss, survivors: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Compute N*(k), DBCARE's epoch budget while k arms survive.

    misidentification   N*(k) = 1 / (k e c)
    simple regret       N*(k) = (3 / 2e) (sigma / ((k-1) c))^(2/3)

    Theorems 2 and 4; for k = 2 it is the most that the oracle pulls each arm for any gap, before rounding up.
    In epochs, as a real number; Algorithm 1 stops after `last_epoch`.
    """
    survivors = arguments.whole("survivors", survivors, at_least=2)
    cost = arguments.positive("cost", cost)
    sigma = arguments.positive("sigma", sigma)
    with np.errstate(over="ignore"):  # infinite at the smallest costs
        if arguments.loss(loss) is Loss.MISIDENTIFICATION:
            return 1.0 / (survivors * math.e * cost)
        return 1.5 / math.e * (sigma / ((survivors - 1.0) * cost)) ** (2.0 / 3.0)


def last_epoch(loss: Loss, survivors: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> IntOrInts:
    """Compute floor(N*(k)) + 1, the last epoch that DBCARE runs while k arms survive.

    Algorithm 1 tests n <= N*(k) before it increments the epoch. In epochs; never decreases as arms are dropped.
    """
    return np.floor(epoch_budget(loss, survivors, cost, sigma)).astype(np.int64) + 1


def confidence(
    loss: Loss,
    arms: ArrayLike,
    cost: ArrayLike,
    sigma: ArrayLike = 1.0,
    bound: ArrayLike = 1.0,
    *,
    preset: str = "paper",
) -> FloatOrFloats:
    """Compute delta, the probability of a wrong elimination that DBCARE's radius is designed for.

    delta = c / (w + x), with w = 1 for misidentification, w = B for simple regret, and x

                        two arms      K arms as printed          K arms corrected
    misidentification   2 c N*(2)     2 c ln K N*(2)             4 c ln K N*(2)
    simple regret       2 c N*(2)     e K^(1/3) ln K N*(2)       c e K^(1/3) ln K N*(2)

    Two arms: corollaries of Theorems 2 and 4. K arms: the theorems. Corrected: what their proofs need, namely
    delta (w + c E[pulls]) <= c by Lemma 4; the printed formula lacks a c (simple regret, which makes it more cautious
    if c < 1, less so if c > 1, and dependent on the unit of the rewards) and a factor 2 (misidentification, where the
    exact sum of budgets exceeds c by at most 9%).

    Presets: "paper" uses the two-arm formula for K = 2, else the printed one; "theorem" uses the printed formula for
    any K; "corrected" uses the two-arm formula for K = 2, else the corrected one. The result is a probability for every
    sensible cost: it is below cost / w.
    """
    checks.one_of("preset", preset, PRESETS)
    arms = arguments.whole("arms", arms, at_least=2)
    cost = arguments.positive("cost", cost)
    bound = arguments.positive("bound", bound)
    budget = epoch_budget(loss, 2, cost, sigma)
    if arguments.loss(loss) is Loss.MISIDENTIFICATION:
        worst = np.ones_like(bound)
        printed = 2.0 * cost * np.log(arms) * budget
        corrected = 2.0 * printed
    else:
        worst = bound
        printed = math.e * np.cbrt(arms) * np.log(arms) * budget
        corrected = cost * printed
    spent = corrected if preset == "corrected" else printed
    if preset != "theorem":
        spent = np.where(arms == 2, 2.0 * cost * budget, spent)
    return cost / (worst + spent)


def oracle_pulls(loss: Loss, gap: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> IntOrInts:
    """Compute the oracle's pulls of each of two arms; it knows the gap but not which arm is better.

    max(0, ceil(4 sigma^2 / Delta^2 * ln x)), x = Delta^2 / (8 sigma^2 c) for misidentification,
    x = Delta^3 / (8 sigma^2 c) for simple regret

    Propositions 1 and 2. In pulls of one arm; 0 where guessing is best, including at a gap of 0. At most
    ceil(N*(2)).
    """
    gap = arguments.non_negative("gap", gap)
    cost = arguments.positive("cost", cost)
    sigma = arguments.positive("sigma", sigma)
    power = 2 if arguments.loss(loss) is Loss.MISIDENTIFICATION else 3
    ratio = gap**power / (8.0 * sigma**2 * cost)
    squared_gap = np.where(ratio > 1.0, gap**2, 1.0)
    return np.ceil(4.0 * sigma**2 / squared_gap * np.log(np.maximum(ratio, 1.0))).astype(np.int64)


def expected_pulls(loss: Loss, arms: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Bound DBCARE's expected number of pulls on any instance.

    misidentification   2 ln K / (e c)
    simple regret       3 ln K (K sigma^2)^(1/3) / (2 c^(2/3))

    Lemma 4. In pulls of all arms; it treats N* as a real number, so whole epochs can add one pull per arm:
    `most_pulls` <= `expected_pulls` + `arms`.
    """
    arms = arguments.whole("arms", arms, at_least=2)
    cost = arguments.positive("cost", cost)
    sigma = arguments.positive("sigma", sigma)
    if arguments.loss(loss) is Loss.MISIDENTIFICATION:
        return 2.0 * np.log(arms) / (math.e * cost)
    return 1.5 * np.log(arms) * np.cbrt(arms * sigma**2 / cost**2)


def most_pulls(loss: Loss, arms: int, cost: ArrayLike, sigma: ArrayLike = 1.0) -> IntOrInts:
    """Compute the largest number of pulls that DBCARE can make, whatever the rewards.

    last(2) + sum over k = 2..K of last(k), last(k) = floor(N*(k)) + 1

    Algorithm 1: the arm dropped when k are left has at most last(k) pulls, the last survivor at most last(2),
    and all of these are attained together if each arm is dropped as late as possible. In pulls of all arms;
    the bound is tight: some sequence of eliminations attains it.
    """
    survivors = np.arange(2, checks.whole("arms", arms, at_least=2) + 1)
    cost = arguments.positive("cost", cost)[..., np.newaxis]
    sigma = arguments.positive("sigma", sigma)[..., np.newaxis]
    last = np.asarray(last_epoch(loss, survivors, cost, sigma))
    total: IntOrInts = last[..., 0] + last.sum(axis=-1)
    return total
