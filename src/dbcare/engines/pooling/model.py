"""How likely runs on one bandit are on another, and under other labels of the arms.

Under a labeling, some arms have another class than under the reference labels. Each such *move* of an arm with n pulls
and sum of rewards S adds a multiple of S and one of n to the log-likelihood, and to the deviations and variances of
groups of arms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.policies.policy import Policy
from dbcare.problem.bandits import Bandit
from dbcare.problem.rewards import Bernoulli, Categorical, Empirical, Gaussian, Reward

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


MAX_LABELINGS = 120  # all labels of five different arms
TILT = 2.0  # larger and smaller multiples of the gap removed less variance in the drug trial
DIRECTIONS = 3  # groups of classes whose martingales are followed: the best, the second best, all others


class Labels(Enum):
    """Which labelings of the arms to average over."""

    ONE = "the true one"
    ALL = "all, unless there are more than MAX_LABELINGS: then the true one"
    SOME = "all, unless there are more than MAX_LABELINGS: then those that exchange the best arm with another"


class Labelings(NamedTuple):
    """The labelings of the arms, each by how it differs from the reference, under which arm k has class `reference[k]`.

    Under labeling l, arm `arm[l, i]` has class `after[l, i]` instead of `before[l, i]`, for each i below `moves[l]`.
    Unless the labelings are all there are, each exchanges the best arm with that in `partners`, and every run is
    relabeled by one of them, chosen at random; `partners` is empty if runs need not be relabeled.
    """

    reference: Ints
    moves: Ints
    arm: Ints
    before: Ints
    after: Ints
    best: int
    partners: Ints


class Tilt(NamedTuple):
    """Exponents of a martingale for rewards whose likelihood is unknown, by bandit; 0 where there is a likelihood.

    exp(-exponent (X_best - X_second) - n_best best - n_second second) has mean 1, where X are deviations from the mean
    after n pulls, and `best` and `second` are ln E[exp(-+ exponent (reward - mean))]. It is large in runs in which the
    second best arm looks better than the best, as a ratio of likelihoods would be.
    """

    exponent: Floats
    best: Floats
    second: Floats


class Model(NamedTuple):
    """Several bandits over classes of arms; arms of one class are alike under every bandit. By bandit and class.

    Rewards are counted from `center`, so that large means lose no digits. A class's rewards have log-likelihood
    theta S - psi n, given the sum S of n rewards. `direction` is 0 for the best class under that bandit, 1 for the
    second best, and 2 for all others.
    """

    center: float
    theta: Floats
    psi: Floats
    mean: Floats
    variance: Floats
    third_moment: Floats  # about the mean
    error: Floats  # the loss if an arm of the class is recommended: misidentification
    regret: Floats  # the same: simple regret
    direction: Ints
    labelings: Labelings
    tilt: Tilt
    targets: int  # how many bandits to estimate for: the first ones; the rest, decoys, only lend their runs

    @property
    def bandits(self) -> int:
        """The number of bandits."""
        return len(self.theta)


def find_family(bandits: Sequence[Bandit]) -> str | None:
    """Return the family of rewards whose likelihoods pooling knows, "gaussian" or "bernoulli", or None.

    Gaussian arms must have the same sigma, in all bandits; rates must not be 0 or 1, under which some runs are
    impossible.
    """
    arms = [arm for bandit in bandits for arm in bandit.arms]
    if all(isinstance(arm, Gaussian) and arm.sigma == arms[0].sigma for arm in arms):
        return "gaussian"
    return "bernoulli" if all(isinstance(arm, Bernoulli) and 0.0 < arm.mean < 1.0 for arm in arms) else None


def choose_labels(policy: Policy) -> Labels:
    """Return which labels to average over; runs in epochs are made too fast for a part of the labels to pay."""
    if not policy.treats_arms_alike:
        return Labels.ONE
    return Labels.ALL if policy.pace.in_epochs else Labels.SOME


def build_model(bandits: Sequence[Bandit], labels: Labels, decoys: Sequence[Bandit] = ()) -> Model:
    """Build the model of bandits of one family, or of a single bandit of any; `decoys` only lend their runs."""
    targets = len(bandits)
    bandits = [*bandits, *decoys]
    family = find_family(bandits)
    mean = np.array([bandit.means for bandit in bandits])
    variance = np.array([[_central_moment(arm, 2) for arm in bandit.arms] for bandit in bandits])
    third_moment = np.array([[_central_moment(arm, 3) for arm in bandit.arms] for bandit in bandits])
    # Arms are numbered from the best to the worst, under the bandit whose means differ most.
    order = np.argsort(-mean[int(np.argmax(np.ptp(mean[:targets], axis=1)))], kind="stable")
    if family is not None:  # arms of equal means have equal laws: one class
        _, first, class_of = np.unique(mean[:, order], axis=1, return_index=True, return_inverse=True)
        by_rank = np.argsort(first)  # the classes, from the best on
        chosen, classes = order[first[by_rank]], np.argsort(by_rank)[class_of.ravel()]
    else:
        chosen, classes = order, np.arange(len(order))
    mean, variance, third_moment = (numbers[:, chosen].copy() for numbers in (mean, variance, third_moment))
    reference = np.empty(len(order), np.int64)
    reference[order] = classes
    center = 0.0 if family == "bernoulli" else float(mean.mean())
    mean = mean - center
    theta, psi = _natural_parameters(family, mean, variance)
    best = mean.max(axis=1, keepdims=True)
    rank = np.argsort(np.argsort(-mean, axis=1, kind="stable"), axis=1)
    return Model(
        center=center,
        theta=theta,
        psi=psi,
        mean=mean,
        variance=variance,
        third_moment=third_moment,
        error=(mean < best).astype(np.float64),
        regret=best - mean,
        direction=np.minimum(rank, DIRECTIONS - 1),
        labelings=make_labelings(reference, Labels.ONE if family is None else labels),
        tilt=_make_tilt(bandits, family),
        targets=targets,
    )


def _make_tilt(bandits: Sequence[Bandit], family: str | None) -> Tilt:
    """Return the tilt of a bandit whose rewards have no likelihood here: twice the gap, in units of the variance."""
    exponents = np.zeros((3, len(bandits)))
    if family is None:
        best, second = sorted(bandits[0].arms, key=lambda arm: -arm.mean)[:2]
        variance = (_central_moment(best, 2) + _central_moment(second, 2)) / 2.0
        exponent = TILT * (best.mean - second.mean) / variance if variance > 0.0 else 0.0
        exponents[:, 0] = exponent, _cumulant(best, -exponent), _cumulant(second, exponent)
    return Tilt(*exponents)


def _cumulant(arm: Reward, exponent: float) -> float:
    """Return ln E[exp(exponent (reward - mean))]."""
    if isinstance(arm, Bernoulli | Categorical | Empirical):
        values, probabilities = (np.array(numbers) for numbers in arm.outcomes)
        return float(np.log(probabilities @ np.exp(exponent * (values - arm.mean))))
    return 0.5 * (exponent * arm.sigma) ** 2


def _natural_parameters(family: str | None, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return theta and psi; zeros without a family, so that all weights are 1."""
    if family == "gaussian":
        return mean / variance, 0.5 * mean**2 / variance
    if family == "bernoulli":
        return np.log(mean) - np.log1p(-mean), -np.log1p(-mean)
    return np.zeros_like(mean), np.zeros_like(mean)


def _central_moment(arm: Reward, power: int) -> float:
    if isinstance(arm, Bernoulli | Categorical | Empirical):
        values, probabilities = (np.array(numbers) for numbers in arm.outcomes)
        return float(probabilities @ (values - arm.mean) ** power)
    return arm.sigma**2 if power == 2 else 0.0


def make_labelings(reference: Ints, labels: Labels) -> Labelings:
    """List the labelings of arms whose classes, numbered from the best on, are `reference`."""
    classes = reference.tolist()
    best = classes.index(0)
    listed, partners = [tuple(classes)], []
    if labels is not Labels.ONE and _count_arrangements(classes) <= MAX_LABELINGS:
        listed = _arrange(tuple(classes))
    elif labels is Labels.SOME and len(classes) <= MAX_LABELINGS:
        partners = list(range(len(classes)))
        listed = [_exchange(classes, best, other) for other in partners]
    changes = [
        [(arm, classes[arm], kind) for arm, kind in enumerate(arranged) if kind != classes[arm]] for arranged in listed
    ]
    width = max(1, *(len(change) for change in changes))
    table = np.zeros((3, len(listed), width), np.int64)
    for place, change in enumerate(changes):
        table[:, place, : len(change)] = np.array(change, np.int64).reshape(-1, 3).T
    arm, before, after = table
    moves = np.array([len(change) for change in changes], np.int64)
    return Labelings(np.array(classes, np.int64), moves, arm, before, after, best, np.array(partners, np.int64))


def _count_arrangements(classes: list[int]) -> float:
    """Return the number of distinct arrangements of a multiset; infinite if there are too many to count quickly."""
    if len(classes) > MAX_LABELINGS:
        return math.inf
    sizes = [classes.count(place) for place in set(classes)]
    return math.factorial(len(classes)) // math.prod(map(math.factorial, sizes))


def _arrange(classes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """List the distinct arrangements of a multiset."""
    if len(classes) == 1:
        return [classes]
    listed = []
    for first in sorted(set(classes)):
        rest = list(classes)
        rest.remove(first)
        listed += [(first, *others) for others in _arrange(tuple(rest))]
    return listed


def _exchange(classes: list[int], one: int, other: int) -> tuple[int, ...]:
    changed = list(classes)
    changed[one], changed[other] = changed[other], changed[one]
    return tuple(changed)
