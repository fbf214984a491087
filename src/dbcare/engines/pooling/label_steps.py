"""What the labelings of the arms change, as tables for the kernel that sums over runs.

Under a labeling, some arms have another class than under the reference labels. Each such *move* of an arm with n pulls
and sum of rewards S adds a multiple of S and one of n to the log-likelihood, and to the deviations and variances of
groups of arms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.engines.pooling.model import DIRECTIONS, Model

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# What a move changes by a multiple of S (`_BY_SUM`) or n: the deviation of the best arms, of the second best, and of
# all; their variances; and the third moment of the best less that of the second best.
BEST_BY_SUM, BEST, SECOND_BY_SUM, SECOND, ALL, BEST_VARIANCE, SECOND_VARIANCE, ALL_VARIANCE, THIRD = range(9)
CHANGES = 9


class LabelSteps(NamedTuple):
    """Tables of moves, and of classes in the order in which the kernel reads them.

    Parameters
    ----------
    arm : array
        arm[move, labeling]: which arm moves; moves that a labeling does not have change nothing.
    log_by_sum, log : array
        By bandit, move and labeling: multiples of S and n that are added to the log-likelihood.
    change : array
        change[bandit, labeling, move]: the CHANGES numbers above.
    theta, psi, mean, variance : array
        Those of `Model`, by class and bandit.
    best, second : array
        The class of direction 0 and 1 under each bandit.
    has_second, has_others : bool
        Whether there are classes of direction 1 and 2.
    """

    arm: Ints
    log_by_sum: Floats
    log: Floats
    change: Floats
    theta: Floats
    psi: Floats
    mean: Floats
    variance: Floats
    best: Ints
    second: Ints
    has_second: bool
    has_others: bool


def tabulate(model: Model) -> LabelSteps:
    """Tabulate what the labelings of a model change."""
    labelings = model.labelings
    moves = int(labelings.moves.max())
    arm, before, after = (table[:, :moves] for table in (labelings.arm, labelings.before, labelings.after))
    best, second, others = ((model.direction == direction).astype(np.float64) for direction in range(DIRECTIONS))

    # In the order of the constants above.
    numbers = [
        best,
        -best * model.mean,
        second,
        -second * model.mean,
        -model.mean,
        best * model.variance,
        second * model.variance,
        model.variance,
        (best - second) * model.third_moment,
    ]

    def change(by_class: Floats) -> Floats:
        return np.asarray(by_class[:, after] - by_class[:, before])

    def by_move(by_class: Floats) -> Floats:
        return np.ascontiguousarray(change(by_class).transpose(0, 2, 1))

    return LabelSteps(
        arm=np.ascontiguousarray(arm.T),
        log_by_sum=by_move(model.theta),
        log=by_move(-model.psi),
        change=np.ascontiguousarray(np.stack([change(by_class) for by_class in numbers], axis=-1)),
        theta=np.ascontiguousarray(model.theta.T),
        psi=np.ascontiguousarray(model.psi.T),
        mean=np.ascontiguousarray(model.mean.T),
        variance=np.ascontiguousarray(model.variance.T),
        best=np.argmax(best, axis=1),
        second=np.argmax(second, axis=1),
        has_second=bool(second.any()),
        has_others=bool(others.any()),
    )
