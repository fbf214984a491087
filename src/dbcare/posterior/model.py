"""What rewards so far say about all arms at once: the posterior, by quadrature over grids and mixtures.

With F(x) = prod_k Phi((x - e_k)/d_k), the largest one is above variable k by the integral of Phi_k - F on average, and
variable k is the largest with the probability integral of phi_k F/Phi_k. All settings, each a node of tau with a point
of mu, are integrated at once.

A chosen arm was chosen because its mean is high, so the mean is too high on average. Shrinking all means toward each
other, by as much as the data suggest, corrects that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dbcare.errors import InvalidValueError
from dbcare.theory import normal

Value = TypeVar("Value")


class ComputedOnce(Generic[Value]):
    """Like `functools.cached_property`, without the lock that in Python 3.11 all instances share.

    A child that is forked while another thread holds that lock would wait for it forever. Two threads may compute the
    same value here, which does no harm.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]  # on the class, as descriptors do
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


Floats = npt.NDArray[np.float64]

REACH = 6.0  # standard deviations: beyond, a normal distribution function counts as 0 or 1
STEP = 0.8  # smallest standard deviations between points of an even grid, for which the rule is almost exact
STEP_OF_MANY = 1.2  # over sqrt(ln K): the largest of K variables varies less than any of them
FINE_STEP = 0.2  # between the points that each variable adds to an uneven grid
MAX_POINTS = 1_000  # of an even grid; beyond, spreads differ so much that an uneven one is smaller


@dataclass(frozen=True)
class Grid:
    """Points of each setting with their weights, and F there."""

    centers: Floats  # by setting and variable
    spreads: Floats
    shares: Floats  # of the settings
    points: Floats  # by setting
    widths: Floats  # of the trapezoid rule, likewise
    product: Floats  # F at the points

    def loss_of(self, variable: int) -> float:
        """Return by how much the largest variable is above one of them on average."""
        z = (self.points - self.centers[:, variable, None]) / self.spreads[:, variable, None]
        inside = np.sum((normal.cumulative(z) - self.product) * self.widths, axis=1)
        first = z[:, 0]  # below the first point F is 0
        below = normal.PSI_AT_0 * np.exp(-0.5 * np.square(first)) + first * normal.cumulative(first)
        return float(self.shares @ (inside + self.spreads[:, variable] * below))

    def chance_of(self, variable: int) -> float:
        """Return the probability that a variable is the largest."""
        z = (self.points - self.centers[:, variable, None]) / self.spreads[:, variable, None]
        density = normal.PSI_AT_0 * np.exp(-0.5 * np.square(z)) / self.spreads[:, variable, None]
        below = np.maximum(normal.cumulative(z), self.product)  # where both are 0, it is not the largest
        share = np.divide(self.product, below, out=np.zeros_like(below), where=below > 0.0)
        return float(self.shares @ np.sum(density * share * self.widths, axis=1))


def lay_grid(centers: Floats, spreads: Floats, shares: Floats) -> Grid:
    """Lay the grid for variables with these centers and standard deviations; only those near the top shape it."""
    bottoms = np.max(centers - REACH * spreads, axis=1)
    tops = np.max(centers + REACH * spreads, axis=1)
    matters = np.any(centers + REACH * spreads > bottoms[:, None], axis=0)
    near, wide = centers[:, matters], spreads[:, matters]
    step = min(STEP, STEP_OF_MANY / math.sqrt(math.log(max(2, near.shape[1]))))
    count = 1 + math.ceil(float(np.max((tops - bottoms) / wide.min(axis=1))) / step)
    if count <= MAX_POINTS:
        points = bottoms[:, None] + (tops - bottoms)[:, None] * np.linspace(0.0, 1.0, count)
    else:
        steps = np.arange(-REACH, REACH + FINE_STEP, FINE_STEP)
        each = near[:, :, None] + wide[:, :, None] * steps
        points = np.sort(np.clip(each.reshape(len(each), -1), bottoms[:, None], tops[:, None]), axis=1)
    gaps = np.diff(points, axis=1)
    widths = np.zeros_like(points)
    widths[:, :-1] += 0.5 * gaps
    widths[:, 1:] += 0.5 * gaps
    return Grid(centers, spreads, shares, points, widths, _multiply(points, near, wide))


def _multiply(points: Floats, centers: Floats, spreads: Floats) -> Floats:
    """Return F at the points; in a setting where a variable is far below all points, its factor is 1."""
    product = np.ones_like(points)
    for center, spread in zip(centers.T[:, :, None], spreads.T[:, :, None], strict=True):
        near = np.flatnonzero(center + REACH * spread > points[:, :1])
        product[near] *= normal.cumulative((points[near] - center[near]) / spread[near])
    return product


MAX_STEPS = 50  # of Newton's method, with bisection where that would leave the bracket
TOLERANCE = 1e-7  # of the probability


def find_quantiles(centers: Floats, spreads: Floats, weights: Floats, share: float) -> Floats:
    """Return the values below which mixtures have this share of their mass.

    The mixtures are the columns of `centers` and `spreads`; their components have the same weights. A quantile lies
    between the least and the largest of the components.
    """
    target = NormalDist().inv_cdf(share)
    each = centers + spreads * target
    low, high = each.min(axis=0), each.max(axis=0)
    x = weights @ each
    for _ in range(MAX_STEPS):
        z = (x - centers) / spreads
        reached = weights @ normal.cumulative(z)
        is_found = np.abs(reached - share) < TOLERANCE
        if is_found.all():
            break
        low, high = np.where(reached > share, low, x), np.where(reached > share, x, high)
        # Newton's method on the normal quantile of F(x), which is almost a straight line.
        u = normal.quantile(reached)
        slope = weights @ (np.exp(-0.5 * np.square(z)) / spreads) * np.exp(0.5 * np.square(u))
        step = x - (u - target) / slope
        x = np.where(is_found, x, np.where((low < step) & (step < high), step, 0.5 * (low + high)))
    return np.asarray(x)


LEVEL = 0.95  # of all intervals
NORMAL_MARGIN = 1.959963984540054  # standard errors of a normal interval at that level
FEWEST_NODES, MOST_NODES = 40, 320  # of the quadrature over tau
ENOUGH_NODES = 24  # with weights that matter
PRIOR_SCALE = 2.0  # of tau, in typical standard errors
MIN_WEIGHT = 1e-5  # nodes with less are left out
MU_POINTS = (-math.sqrt(3.0), 0.0, math.sqrt(3.0))  # Gauss-Hermite, in standard deviations of mu
MU_WEIGHTS = (1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0)
LEAST_ERROR = 1e-13  # relative to a mean: a smaller standard error of it counts as this
SMALLEST_ERROR = 1e-100


@dataclass(frozen=True)
class Posterior:
    """The posterior of K means, given the mean m_k of each arm's rewards and its standard error sqrt(a_k).

    The prior is mu_k ~ N(mu, tau^2), with mu flat and tau half-Cauchy with scale 2 med, where med^2 is the median of
    the a_k. Given tau, with w_k = 1/(tau^2 + a_k), V = 1/sum(w_k) and mu^ = V sum(w_k m_k), arm k has the mean
    e_k = mu^ + b_k (m_k - mu^) and, given mu, the variance d_k^2 = b_k a_k, with b_k = tau^2/(tau^2 + a_k). Tau is
    integrated over log-spaced nodes, mu over 3 points of mean mu^ and variance V; no random numbers are drawn.

    Larger means are better. Arms whose standard error is infinite have no rewards: they are as the others are.

    Parameters
    ----------
    means : tuple of float
        Mean reward of each arm.
    errors : tuple of float
        Standard errors of those means.

    Examples
    --------
    >>> from dbcare.posterior import Posterior
    >>> posterior = Posterior((0.6, 0.5, 0.45), (0.05, 0.05, 0.05))
    >>> round(float(posterior.estimates[0]), 2), round(float(posterior.chances[0]), 2)
    (0.56, 0.78)
    """

    means: tuple[float, ...]
    errors: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.means) != len(self.errors) or len(self.means) < 2:
            raise InvalidValueError(
                f"`means` and `errors` must have one entry for each of 2 or more arms but got {len(self.means)} and "
                f"{len(self.errors)}."
            )
        if not any(math.isfinite(error) for error in self.errors):
            raise InvalidValueError("`errors` must be finite for at least one arm but got none that is.")

    @classmethod
    def from_means(cls, means: Sequence[float], errors: Sequence[float]) -> Posterior:
        """Return the posterior for means and their standard errors, in any sequences."""
        return cls(tuple(map(float, means)), tuple(map(float, errors)))

    @ComputedOnce
    def _precisions(self) -> Floats:
        """Return 1/a_k, which is 0 for an arm without rewards."""
        least = np.maximum(LEAST_ERROR * np.abs(self.means), SMALLEST_ERROR)
        return np.asarray(1.0 / np.square(np.maximum(self.errors, least)))

    @ComputedOnce
    def _is_observed(self) -> npt.NDArray[np.bool_]:
        return np.isfinite(self.errors)

    @ComputedOnce
    def _observed_means(self) -> Floats:
        return np.array(self.means)[self._is_observed]

    @ComputedOnce
    def _nodes(self) -> tuple[Floats, Floats]:
        """Return the nodes of tau and their weights: more of them where the data leave tau little room."""
        count = FEWEST_NODES
        tau, weight = self._weigh_nodes(count)
        while len(tau) < ENOUGH_NODES and count < MOST_NODES:
            count *= 2
            tau, weight = self._weigh_nodes(count)
        return tau, weight

    def _weigh_nodes(self, count: int) -> tuple[Floats, Floats]:
        """Return those of `count` nodes that matter, and their shares of p(tau).

        p(tau) is proportional to sqrt(V prod(w_k)) exp(-sum(w_k (m_k - mu^)^2)/2)/(1 + (tau/(2 med))^2), and each node
        of the log-spaced grid stands for an interval of tau of a size proportional to tau.
        """
        m, q = self._observed_means, self._precisions[self._is_observed]
        typical = math.sqrt(float(np.median(1.0 / q)))
        low = 0.05 * min(typical, float(np.sqrt(1.0 / q[m.argmax()])))
        high = max(300.0 * typical, 30.0 * float(np.ptp(m)))
        logs, step = np.linspace(math.log(low), math.log(high), count, retstep=True)
        tau = np.exp(logs)
        w = q / (1.0 + np.square(tau)[:, None] * q)
        v = 1.0 / w.sum(axis=1)
        center = v * (w @ m)
        misfit = np.sum(w * np.square(m - center[:, None]), axis=1)
        density = logs - np.log1p(np.square(tau / (PRIOR_SCALE * typical)))
        density += 0.5 * (np.log(v) + np.log(w).sum(axis=1) - misfit)
        weight = np.exp(density - density.max())
        weight[0] *= 0.5 + 1.0 / float(step)  # the mass below the first node
        weight /= weight.sum()
        kept = weight >= MIN_WEIGHT
        return tau[kept], weight[kept] / weight[kept].sum()

    @ComputedOnce
    def _given_tau(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return e_k, b_k and d_k by node and arm, and V by node."""
        tau, _ = self._nodes
        square = np.square(tau)[:, None]
        q = self._precisions
        w = q / (1.0 + square * q)
        v = 1.0 / w.sum(axis=1)
        m = np.where(self._is_observed, np.array(self.means), 0.0)
        center = (v * (w @ m))[:, None]
        b = square * w
        return center + b * (m - center), b, np.sqrt(square / (1.0 + square * q)), v

    @ComputedOnce
    def _grid(self) -> Grid:
        """Return the grid for integrals over the best mean, for each node of tau and point of mu."""
        _, weight = self._nodes
        e, b, d, v = self._given_tau
        shift = np.sqrt(v)[:, None] * (1.0 - b)
        centers = np.concatenate([e + point * shift for point in MU_POINTS])
        weights = np.concatenate([share * weight for share in MU_WEIGHTS])
        return lay_grid(centers, np.concatenate([d] * len(MU_POINTS)), weights)

    @ComputedOnce
    def estimates(self) -> Floats:
        """Return the means of the arms, corrected for selection: uncorrected, that of the chosen arm is too high."""
        return np.asarray(self._nodes[1] @ self._given_tau[0])

    def expected_loss(self, arm: int) -> float:
        """Return E[max_k mu_k - mu_arm], against all other arms jointly, in units of the rewards."""
        return self._least_loss + float(self.estimates.max() - self.estimates[arm])

    @ComputedOnce
    def _least_loss(self) -> float:
        """Return the expected loss of choosing the arm with the largest estimate."""
        return max(0.0, self._grid.loss_of(int(self.estimates.argmax())))

    @ComputedOnce
    def chances(self) -> Floats:
        """Return the probability of being best of each arm; they sum to 1, but for the error of the quadrature."""
        return np.array([self.chance_best(arm) for arm in range(len(self.means))])

    def chance_best(self, arm: int) -> float:
        """Return the probability that an arm is best."""
        return min(1.0, self._grid.chance_of(arm))

    def chance_ahead(self, arm: int, other: int) -> float:
        """Return the probability that one arm's mean is above another's."""
        centers, spreads = self._leads(other)
        return float(self._nodes[1] @ normal.cumulative(centers[:, arm] / spreads[:, arm]))

    @ComputedOnce
    def intervals(self) -> Floats:
        """Return a 95% interval of each arm's mean that allows for selection, as rows of two numbers.

        It is the hull of the usual interval, m_k -+ 1.96 standard errors, and the central one of the posterior, which
        given tau has the variance b_k a_k + (1 - b_k)^2 V.
        """
        e, b, d, v = self._given_tau
        spreads = np.sqrt(np.square(d) + np.square(1.0 - b) * v[:, None])
        return self._hull(e, spreads, np.array(self.means), np.array(self.errors))

    def lead_intervals(self, other: int) -> Floats:
        """Return a 95% interval of each arm's lead over another one, as `intervals` does; that arm's own is 0."""
        m, errors = np.array(self.means), np.array(self.errors)
        hull = self._hull(*self._leads(other), m - m[other], np.hypot(errors, errors[other]))
        hull[other] = 0.0
        return hull

    def lead_interval(self, arm: int, other: int) -> tuple[float, float]:
        """Return a 95% interval of the lead of one arm over another."""
        low, high = self.lead_intervals(other)[arm]
        return float(low), float(high)

    def _leads(self, other: int) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of mu_k - mu_other given tau, whose variance has (b_k - b_other)^2 V."""
        e, b, d, v = self._given_tau
        square = np.square(d) + np.square(d[:, [other]]) + np.square(b - b[:, [other]]) * v[:, None]
        return e - e[:, [other]], np.sqrt(square)

    def _hull(self, centers: Floats, spreads: Floats, means: Floats, errors: Floats) -> Floats:
        low, high = (
            find_quantiles(centers, spreads, self._nodes[1], share)
            for share in ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0)
        )
        known = np.isfinite(errors)
        margins = NORMAL_MARGIN * np.where(known, errors, 0.0)
        low = np.where(known, np.minimum(low, means - margins), low)
        return np.stack([low, np.where(known, np.maximum(high, means + margins), high)], axis=1)
