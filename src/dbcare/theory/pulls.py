"""How many pulls DBCARE makes: a bound on the mean from the paper's lemma, and the maximum."""

import math

import numpy as np
from numpy.typing import ArrayLike

from dbcare.base import checks
from dbcare.problem.risk import Loss
from dbcare.theory import arguments
from dbcare.theory.arguments import FloatOrFloats, IntOrInts
from dbcare.theory.budgets import last_epoch


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
