"""The losses of `theory.normal` for an estimated standard deviation: Student's t with `freedom` degrees of freedom.

The functions take scalars and use plain arithmetic, for compiled rules and live runs alike.
"""

import math

from dbcare.theory.normal import tail_of

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
