"""Our upper bounds for `BreakevenRacing` on Gaussian arms; docs/explanation/proofs.md has the proof for two arms.

Two arms, in the scale-free variable theta = Delta sqrt(n / (2 sigma^2)). Misidentification: rho = 4 sigma^2 c / Delta^2
and Q(z) = rho theta^2 on the boundary; simple regret: kappa = rho / Delta and Psi(z) = kappa theta^3. The probability
of a wrong crossing is at most rho J, by the tangent bound on first-passage densities, and the cost is at most
rho T + 2c:

    J(rho)     = integral of (z phi/Q + 2) theta exp(-z theta - theta^2/2) d theta      over Q(z) <= 1/e
    J_S(kappa) = integral of (z + 3W)(phi/Psi) theta^2 exp(-z theta - theta^2/2) d theta, W = Psi/Q, over z >= 0
    T, T_S     = integral of Phi(z - theta) d(theta^2)                                   over the same ranges

They are computed as integrals over z, whose nodes and normal losses are the same for every rho and kappa.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dbcare.errors import InvalidValueError
from dbcare.problem.risk import Loss
from dbcare.theory import arguments, lower, normal
from dbcare.theory.arguments import FloatOrFloats, Floats

MAX_Z = 36.0  # where Q and Psi are about to underflow
PANELS, NODES = 240, 16  # Gauss-Legendre quadrature in z; integrands are smooth on a scale of 1/z


class Quadrature(NamedTuple):
    """Nodes z, their weights, and the normal losses there."""

    z: Floats
    weight: Floats
    density: Floats
    tail: Floats
    excess: Floats


@cache
def _quadrature(start: float) -> Quadrature:
    edges = np.linspace(start, MAX_Z, PANELS + 1)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(edges)[:, np.newaxis] / 2.0
    z = ((edges[:-1] + edges[1:])[:, np.newaxis] / 2.0 + half * nodes).ravel()
    density = normal.PSI_AT_0 * np.exp(-0.5 * z * z)
    return Quadrature(z, (half * weights).ravel(), density, normal.upper_tail(z), normal.expected_excess(z))


def two_arm(loss: Loss, gap: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Bound the risk for two arms, with the constants of the oracle that knows the gap.

    misidentification   32 lower + 2 c
    simple regret       32 lower + 2 c if Delta >= (sigma^2 c)^(1/3), else 2 lower + 0.861 (sigma^2 c)^(1/3) + 2 c

    `lower` is `lower.two_arm`. In units of the loss; there is no factor ln(1/c), unlike in DBCARE's `upper.two_arm`.
    """
    gap = arguments.non_negative("gap", gap)
    cost = arguments.positive("cost", cost)
    sigma = arguments.positive("sigma", sigma)
    lower_bound = lower.two_arm(loss, gap, cost, sigma)
    if arguments.loss(loss) is Loss.MISIDENTIFICATION:
        return 32.0 * lower_bound + 2.0 * cost
    scale = np.cbrt(sigma**2 * cost)
    return np.where(gap >= scale, 32.0 * lower_bound, 2.0 * lower_bound + 0.861 * scale) + 2.0 * cost


def two_arm_minimax(cost: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Bound the simple-regret risk for two arms with any gap: 1.635 (sigma^2 c)^(1/3) + 2 c, or 6.09 H*_SR + 2 c."""
    cost = arguments.positive("cost", cost)
    return 1.635 * np.cbrt(arguments.positive("sigma", sigma) ** 2 * cost) + 2.0 * cost


def two_arm_integral(loss: Loss, gap: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Compute the sharper bound for two arms from which `two_arm` is derived.

    misidentification   min(1/2, rho J + Q(1/sqrt(e rho))) + min(rho T, 1/e) + 2 c
    simple regret       Delta (min(1/2, kappa J_S + Q((Psi(0)/kappa)^(1/3))) + kappa T_S) + 2 c

    In units of the loss; for gaps above 0.
    """
    gap = arguments.positive("gap", gap)
    cost = arguments.positive("cost", cost)
    sigma = arguments.positive("sigma", sigma)
    rho = 4.0 * sigma**2 * cost / gap**2
    if arguments.loss(loss) is Loss.MISIDENTIFICATION:
        crossing, sampling = integrals(loss, rho)
        wrong = rho * crossing + normal.upper_tail(1.0 / np.sqrt(math.e * rho))
        return np.minimum(0.5, wrong) + np.minimum(rho * sampling, 1.0 / math.e) + 2.0 * cost
    kappa = rho / gap
    crossing, sampling = integrals(loss, kappa)
    wrong = kappa * crossing + normal.upper_tail(np.cbrt(normal.PSI_AT_0 / kappa))
    return gap * (np.minimum(0.5, wrong) + kappa * sampling) + 2.0 * cost


def integrals(loss: Loss, hardness: ArrayLike) -> tuple[Floats, Floats]:
    """Compute J and T at rho, or J_S and T_S at kappa."""
    from scipy.special import ndtr  # noqa: PLC0415  # only this needs scipy, for thousands of numbers

    hardness = arguments.positive("hardness", hardness, infinite=True)[..., np.newaxis]
    error = arguments.loss(loss) is Loss.MISIDENTIFICATION
    z, weight, density, tail, excess = _quadrature(float(normal.upper_tail_inverse(1.0 / math.e)) if error else 0.0)
    if error:
        theta = np.sqrt(tail / hardness)
        crossing = (z * density / tail + 2.0) * density / (2.0 * hardness)
        sampling = density / hardness
    else:
        theta = np.cbrt(excess / hardness)
        crossing = (z + 3.0 * excess / tail) * density * (tail / excess) / (3.0 * hardness)
        sampling = 2.0 * tail / (3.0 * hardness * theta)
    wrong = crossing * np.exp(-z * theta - 0.5 * theta**2) @ weight
    return wrong, (sampling * ndtr(z - theta)) @ weight


def misidentification(complexity: ArrayLike, arms: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Bound the misidentification risk for K arms of complexity H, for c K <= 0.13; for K > 2, the proof is a sketch.

    119 (1 + ln(K-1)) lower + (1 + e) c K if sigma^2 c H <= 1, else 5.48 lower + c K

    `lower` is `lower.misidentification`; there is no factor ln(1/c), unlike in DBCARE's `upper.misidentification`.
    """
    complexity = arguments.positive("complexity", complexity, infinite=True)
    arms = arguments.whole("arms", arms, at_least=2)
    cost = arguments.positive("cost", cost)
    sigma = arguments.positive("sigma", sigma)
    _check_spending(cost * arms)
    lower_bound = lower.misidentification(complexity, cost, sigma)
    easy = 119.0 * (1.0 + np.log(arms - 1.0)) * lower_bound + (1.0 + math.e) * cost * arms
    return np.where(sigma**2 * cost * complexity <= 1.0, easy, 5.48 * lower_bound + cost * arms)


def simple_regret_minimax(arms: ArrayLike, cost: ArrayLike, sigma: ArrayLike = 1.0) -> FloatOrFloats:
    """Bound the simple-regret risk on any instance of K arms: (14 + 6 ln K) ((K-1) sigma^2 c)^(1/3) + c K.

    The proof is a sketch.
    """
    arms = arguments.whole("arms", arms, at_least=2)
    cost = arguments.positive("cost", cost)
    sigma = arguments.positive("sigma", sigma)
    return (14.0 + 6.0 * np.log(arms)) * np.cbrt((arms - 1.0) * sigma**2 * cost) + cost * arms


def _check_spending(spending: Floats) -> None:
    if np.any(spending > 0.13):
        raise InvalidValueError(f"`cost` times `arms` must be at most 0.13 but got {float(np.max(spending)):g}.")
