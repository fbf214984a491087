"""The losses of `theory.normal` where the standard deviation is estimated: Student's t with `freedom` degrees.

Scalars in plain arithmetic, for rules that are compiled and for live runs alike.
"""

import math

from dbcare.theory.normal import tail_of

EXACT_UP_TO = 30  # degrees of freedom summed term by term; beyond, Hill's expansion, relative error below 1e-6


def density_at_0(freedom: int) -> float:
    """f(0) = Gamma((nu + 1)/2) / (Gamma(nu/2) sqrt(nu pi))."""
    return math.exp(math.lgamma(0.5 * (freedom + 1)) - math.lgamma(0.5 * freedom)) / math.sqrt(freedom * math.pi)


def student_tail(t: float, freedom: int) -> float:
    """P(T > t) for t >= 0.

    Up to EXACT_UP_TO degrees the finite trigonometric sum (Abramowitz and Stegun 26.7.3 and 26.7.4), then the
    normalising expansion of Hill (1970, Algorithm 395). The sum ends in a difference from 1/2, so that tails below
    about 1e-16 come out as 0.
    """
    if freedom > EXACT_UP_TO:
        shifted = freedom - 0.5
        scale = 48.0 * shifted * shifted
        y = shifted * math.log1p(t * t / freedom)
        series = (((-0.4 * y - 3.3) * y - 24.0) * y - 85.5) / (0.8 * y * y + 100.0 + scale) + y + 3.0
        return tail_of(math.sqrt(y) * (1.0 + series / scale))
    odd = freedom % 2
    square_cosine = freedom / (freedom + t * t)
    sine = t / math.sqrt(freedom + t * t)
    total = 1.0
    for j in range(freedom - 2, 1, -2):
        total = 1.0 + total * square_cosine * (j - 1.0) / j
    if odd == 0:
        inside = sine * total
    else:
        angle = math.atan2(t, math.sqrt(freedom))
        inside = angle + (0.0 if freedom == 1 else sine * math.sqrt(square_cosine) * total)
        inside *= 2.0 / math.pi
    return max(0.0, 0.5 - 0.5 * inside)


def student_excess(t: float, freedom: int, peak: float) -> float:
    """E[max(T - t, 0)] for t >= 0 and at least 2 degrees of freedom; `peak` is `density_at_0(freedom)`."""
    density = peak * math.exp(-0.5 * (freedom + 1) * math.log1p(t * t / freedom))
    return max(0.0, (freedom + t * t) / (freedom - 1.0) * density - t * student_tail(t, freedom))
