"""What DBCARE separates before its budget ends, and how well it chooses among the rest: Lemmas 5 to 7 (Appendix D).

All hold on the good event G, on which no confidence interval fails. With delta from `budgets.confidence`, G fails with
probability at most delta if the radius is a delta-correct interval at all epochs together, as Lemma 5 assumes. A plain
union bound over the epochs up to N*(2) gives 2 (1 + ln N*(2)) delta.

Arms are sorted: Delta_2 <= ... <= Delta_K. Arrays `gaps` have Delta_2 to Delta_K along their last axis, which is K - 1
long, and results have the same shape or lack the last axis.

Rewards are sub-Gaussian in the sense of moment generating functions, E exp(t (X - mean)) <= exp(t^2 sigma^2 / 2) for
every t. The paper defines them by P(X - mean > t) <= exp(-t^2 / (2 sigma^2)), which is weaker: it leaves the lower tail
free and does not give the bound on sums that the proofs use.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from dbcare.errors import InvalidValueError
from dbcare.problem.risk import Loss
from dbcare.theory import arguments
from dbcare.theory.arguments import FloatOrFloats, Floats, IntOrInts
from dbcare.theory.budgets import confidence, epoch_budget


def separating_gap(
    loss: Loss,
    survivors: ArrayLike,
    arms: ArrayLike,
    cost: ArrayLike,
    sigma: ArrayLike = 1.0,
    *,
    bound: ArrayLike = 1.0,
    preset: str = "paper",
) -> FloatOrFloats:
    """Compute the gap above which the k-th best of K arms is dropped before k survivors use up their budget.

    sqrt(16 sigma^2 ln(K N*(k)/delta) / N*(k))

    Lemma 5, the condition of part 3. With N* inserted, as in the proofs of Theorems 2 and 4:
    sqrt(16 e k sigma^2 c ln(K N*(k)/delta)) for misidentification and
    ((k-1) sigma^2 c)^(1/3) sqrt((32 e / 3) ln(K N*(k)/delta)) for simple regret. In units of reward.
    """
    sigma = arguments.positive("sigma", sigma)
    budget = epoch_budget(loss, survivors, cost, sigma)
    return np.sqrt(16.0 * sigma**2 * _interval_log(loss, survivors, arms, cost, sigma, bound, preset) / budget)


def undecided_arms(
    loss: Loss,
    gaps: ArrayLike,
    cost: ArrayLike,
    sigma: ArrayLike = 1.0,
    *,
    bound: ArrayLike = 1.0,
    preset: str = "paper",
) -> IntOrInts:
    """Compute M, the number of arms that may be left when the budget ends.

    M is the smallest number in 1..K for which Delta_k > `separating_gap` for all k > M.

    Lemma 6 and the proofs of Theorems 2 and 4. On the good event, arms M+1 to K are dropped before that.
    """
    gaps, survivors = _sorted_gaps(gaps)
    thresholds = separating_gap(
        loss, survivors, gaps.shape[-1] + 1, *_per_arm(cost, sigma), bound=_column(bound), preset=preset
    )
    kept = np.where(gaps > thresholds, 1.0, survivors)
    undecided: IntOrInts = kept.max(axis=-1).astype(np.int64)
    return undecided


def pulls_until_dropped(
    loss: Loss,
    gaps: ArrayLike,
    cost: ArrayLike,
    sigma: ArrayLike = 1.0,
    *,
    bound: ArrayLike = 1.0,
    preset: str = "paper",
) -> Floats:
    """Bound how often DBCARE pulls each of arms 2 to K: below N*(k) for arms k > M, infinite for the others.

    16 sigma^2 ln(K N*(k)/delta) / Delta_k^2

    Lemma 5, part 3, with M from `undecided_arms`. In pulls, as a real number: epochs are whole, so a run may make one
    more.
    """
    gaps, survivors = _sorted_gaps(gaps)
    cost, sigma, bound = *_per_arm(cost, sigma), _column(bound)
    undecided = np.asarray(undecided_arms(loss, gaps, cost[..., 0], sigma[..., 0], bound=bound[..., 0], preset=preset))
    log = _interval_log(loss, survivors, gaps.shape[-1] + 1, cost, sigma, bound, preset)
    with np.errstate(divide="ignore"):
        needed = 16.0 * sigma**2 * log / gaps**2
    return np.asarray(np.where(survivors > undecided[..., np.newaxis], needed, np.inf))


def wrong_choice(
    loss: Loss,
    gaps: ArrayLike,
    cost: ArrayLike,
    sigma: ArrayLike = 1.0,
    *,
    bound: ArrayLike = 1.0,
    preset: str = "paper",
) -> Floats:
    """Bound the probability of G and recommending arm j, for each of arms 2 to K.

    exp(-N*(M) Delta_j^2 / (4 sigma^2)) for j <= M, 0 for j > M

    Lemma 6, with M from `undecided_arms`; for M = 1 no arm but the best is left. The paper's proof inserts N*(M) for
    the last epoch, which is random. The bound holds nevertheless: let S_n be the sum of n rewards of arm j less that of
    n rewards of the best. Then exp(Delta_j S_n / (2 sigma^2) + n Delta_j^2 / (4 sigma^2)) is a supermartingale that
    begins at 1, and S_n >= 0 at any epoch n >= N*(M) takes it to exp(N*(M) Delta_j^2 / (4 sigma^2)) at least, which has
    at most the stated probability (Ville's inequality).
    """
    gaps, survivors = _sorted_gaps(gaps)
    cost, sigma, bound = *_per_arm(cost, sigma), _column(bound)
    undecided = np.asarray(undecided_arms(loss, gaps, cost[..., 0], sigma[..., 0], bound=bound[..., 0], preset=preset))
    last = np.asarray(epoch_budget(loss, np.maximum(undecided, 2), cost[..., 0], sigma[..., 0]))[..., np.newaxis]
    chance = np.exp(-last * gaps**2 / (4.0 * sigma**2))
    return np.asarray(np.where(survivors <= undecided[..., np.newaxis], chance, 0.0))


def regret_of_choice(budget: ArrayLike, undecided: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Bound the simple regret on G of choosing among M arms that were pulled N or more times each.

    M = 2   sqrt(2 sigma^2 / (e N))
    M > 2   sqrt(4 sigma^2 ln(M-1) / N)

    This replaces Lemma 7, which has sqrt(4 sigma^2 / (sqrt(e) N)) for every M, with N = N*(M). Its proof maximizes
    2 Delta exp(-N Delta^2 / (4 sigma^2)) to that, but the maximum is sqrt(8 sigma^2 / (e N)); and it weighs arm k by
    2^-(k-1), where k - 1 equal arms win equally often. The printed bound is exceeded from M = 232 on, by Gaussian arms
    with equal gaps. Ours: for every x, the regret is at most x + sum over j of max(Delta_j - x, 0) P(choose j), with
    the probabilities of `wrong_choice`; the best x gives the formulas. In units of reward; 0 for M = 1.
    """
    budget = arguments.positive("budget", budget)
    undecided = arguments.whole("undecided", undecided, at_least=1)
    sigma = arguments.positive("sigma", sigma)
    share = np.where(undecided == 2.0, 0.5 / math.e, np.log(np.maximum(undecided - 1.0, 1.0)))
    return np.sqrt(4.0 * sigma**2 * share / budget)


def _interval_log(
    loss: Loss,
    survivors: ArrayLike,
    arms: ArrayLike,
    cost: ArrayLike,
    sigma: ArrayLike,
    bound: ArrayLike,
    preset: str,
) -> FloatOrFloats:
    """Return ln(K N*(k)/delta), which must be positive: the bounds are meaningless at larger costs."""
    arms = arguments.whole("arms", arms, at_least=2)
    cost = arguments.positive("cost", cost)
    ratio = (
        arms * epoch_budget(loss, survivors, cost, sigma) / confidence(loss, arms, cost, sigma, bound, preset=preset)
    )
    return arguments.positive_log(ratio, cost)


def _sorted_gaps(gaps: ArrayLike) -> tuple[Floats, Floats]:
    """Return the gaps of arms 2 to K, which must ascend, and the numbers of these arms."""
    checked = arguments.non_negative("gaps", gaps)
    if checked.ndim == 0 or checked.shape[-1] < 1 or np.any(np.diff(checked, axis=-1) < 0.0):
        raise InvalidValueError(f"`gaps` must have Delta_2 to Delta_K in ascending order but got {checked}.")
    return checked, np.arange(2.0, checked.shape[-1] + 2.0)


def _per_arm(cost: ArrayLike, sigma: ArrayLike) -> tuple[Floats, Floats]:
    return arguments.positive("cost", cost)[..., np.newaxis], arguments.positive("sigma", sigma)[..., np.newaxis]


def _column(bound: ArrayLike) -> Floats:
    return arguments.positive("bound", bound)[..., np.newaxis]
