"""Normal and Student-t laws: tails and expected losses.

Q(z) = 1 - Phi(z) is the probability that the apparently worse of two options, z standard errors behind, is better;
Psi(z) = phi(z) - z Q(z) is the expected size of that mistake, in standard errors.

The functions take scalars and use plain arithmetic, for compiled rules and live runs alike.
"""

import math
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PSI_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)
ROOT_HALF = math.sqrt(0.5)
_quantile = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])
MAX_NEWTON_STEPS = 60
NEWTON_PRECISION = 1e-9  # of a step: the next one would be its square
EXCESS_REACH, EXCESS_DENSITY = 37.0, 128  # of the table that inverts Psi: the largest z, and points per unit
TABLE_REACH, TABLE_DENSITY = 8.0, 2048  # of `cumulative`: standard deviations, and points per standard deviation


def tail_of(z: float) -> float:
    """Return Q(z) for one number, in plain arithmetic that rules can compile."""
    return 0.5 * math.erfc(z * ROOT_HALF)


def excess_of(z: float) -> float:
    """Return Psi(z) for one number."""
    return max(0.0, PSI_AT_0 * math.exp(-0.5 * z * z) - z * tail_of(z))


_tail = np.vectorize(tail_of, otypes=[np.float64])
_excess = np.vectorize(excess_of, otypes=[np.float64])


def upper_tail(z: npt.ArrayLike) -> Floats:
    """Return Q(z) = P(Z > z)."""
    return np.asarray(_tail(z))


def expected_excess(z: npt.ArrayLike) -> Floats:
    """Return Psi(z) = E[max(Z - z, 0)]."""
    return np.asarray(_excess(z))


def cumulative(z: npt.ArrayLike) -> Floats:
    """Return Phi(z) = P(Z <= z) for many numbers quickly, with an absolute error below 1e-8.

    It is interpolated from a table that is made on first use; beyond 8 standard deviations it is 0 or 1.
    """
    values, steps = _table()
    place = np.multiply(z, float(TABLE_DENSITY))
    place += TABLE_REACH * TABLE_DENSITY
    np.clip(place, 0.0, len(steps) - 1.0, out=place)
    first = place.astype(np.int32)
    place -= first
    place *= np.take(steps, first)
    place += np.take(values, first)
    return np.asarray(place)


@cache
def _table() -> tuple[Floats, Floats]:
    """Return Phi at evenly spaced points, and its differences."""
    values = 1.0 - _tail(np.linspace(-TABLE_REACH, TABLE_REACH, round(2 * TABLE_REACH * TABLE_DENSITY) + 1))
    return values, np.append(np.diff(values), 0.0)


def quantile(share: npt.ArrayLike) -> Floats:
    """Return the z with Phi(z) = `share`, which lies between 0 and 1."""
    return np.asarray(_quantile(share))


def upper_tail_inverse(tail: npt.ArrayLike) -> Floats:
    """Return the z > 0 with Q(z) = `tail`, or 0 if there is none (a tail of 1/2 or more)."""
    from scipy.special import ndtri  # noqa: PLC0415  # only this needs scipy, for tables of thousands of numbers

    return np.asarray(-ndtri(np.minimum(np.asarray(tail, dtype=np.float64), 0.5)))


def expected_excess_inverse(excess: npt.ArrayLike) -> Floats:
    """Return the z > 0 with Psi(z) = `excess`, or 0 if there is none (Psi(0) = 1/sqrt(2 pi) or more).

    At most 37, where Psi is below 1e-300. Newton's method on ln Psi starts at a table's value and goes on for each
    number until that converges, so a result does not depend on the other numbers.
    """
    from scipy.special import ndtr  # noqa: PLC0415  # as above

    excess = np.asarray(excess, dtype=np.float64)
    places, logs = _excess_table()
    target = np.clip(np.log(excess), logs[0], logs[-1]).ravel()
    z = np.interp(target, logs, places)
    left = np.arange(len(z))
    for _ in range(MAX_NEWTON_STEPS):
        tail = ndtr(-z[left])
        value = PSI_AT_0 * np.exp(-0.5 * z[left] ** 2) - z[left] * tail
        step = (np.log(value) - target[left]) * value / tail
        z[left] += step
        left = left[np.abs(step) > NEWTON_PRECISION * (1.0 + z[left])]
        if len(left) == 0:
            break
    return np.where(excess < PSI_AT_0, np.clip(z.reshape(excess.shape), 0.0, EXCESS_REACH), 0.0)


@cache
def _excess_table() -> tuple[Floats, Floats]:
    """Return places z, and ln Psi there, in increasing order of the latter."""
    places = np.linspace(EXCESS_REACH, 0.0, round(EXCESS_REACH * EXCESS_DENSITY) + 1)
    return places, np.log(expected_excess(places))


EXACT_UP_TO = 30  # degrees of freedom whose tail is summed term by term; above, the normal equivalent is used


def density_at_0(freedom: int) -> float:
    """Return f(0) = Gamma((nu + 1)/2) / (Gamma(nu/2) sqrt(nu pi))."""
    return math.exp(math.lgamma(0.5 * (freedom + 1)) - math.lgamma(0.5 * freedom)) / math.sqrt(freedom * math.pi)


def normal_equivalent(t: float, freedom: int) -> float:
    """Return the z with Q(z) = P(T > t), for t >= 0 (Hill 1970, Algorithm 395).

    The relative error of Q(z) is below 1e-7 for t up to 8 and more than 30 degrees of freedom.
    """
    shifted = freedom - 0.5
    scale = 48.0 * shifted * shifted
    y = shifted * math.log(1.0 + t * t / freedom)
    series = (((-0.4 * y - 3.3) * y - 24.0) * y - 85.5) / (0.8 * y * y + 100.0 + scale) + y + 3.0
    return math.sqrt(y) * (1.0 + series / scale)


def summed_tail(t: float, freedom: int) -> float:
    """Return P(T > t) for t >= 0 as a finite trigonometric sum (Abramowitz and Stegun 26.7.3 and 26.7.4).

    The last step subtracts from 1/2, so tails below about 1e-16 come out as 0.
    """
    square_cosine = freedom / (freedom + t * t)
    sine = t / math.sqrt(freedom + t * t)
    total = 1.0
    for j in range(freedom - 2, 1, -2):
        total = 1.0 + total * square_cosine * (j - 1.0) / j
    if freedom % 2 == 0:
        inside = sine * total
    else:
        rest = 0.0 if freedom == 1 else sine * math.sqrt(square_cosine) * total
        inside = 2.0 / math.pi * (math.atan2(t, math.sqrt(freedom)) + rest)
    return max(0.0, 0.5 - 0.5 * inside)


def student_tail(t: float, freedom: int) -> float:
    """Return P(T > t) for t >= 0."""
    return summed_tail(t, freedom) if freedom <= EXACT_UP_TO else tail_of(normal_equivalent(t, freedom))


def student_excess(t: float, freedom: int, peak: float, tail: float) -> float:
    """Return E[max(T - t, 0)] = (nu + t^2)/(nu - 1) f(t) - t P(T > t), for t >= 0 and at least 2 degrees of freedom.

    `peak` is `density_at_0(freedom)` and `tail` is `student_tail(t, freedom)`.
    """
    density = peak * math.exp(-0.5 * (freedom + 1) * math.log(1.0 + t * t / freedom))
    return max(0.0, (freedom + t * t) / (freedom - 1.0) * density - t * tail)
