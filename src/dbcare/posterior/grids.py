"""Integrals over the largest of several independent normal variables, by the trapezoid rule.

With F(x) = prod_k Phi((x - e_k)/d_k), the largest one is above variable k by the integral of Phi_k - F on average, and
variable k is the largest with the probability integral of phi_k F/Phi_k. All settings, each a node of tau with a point
of mu, are integrated at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbcare.theory import normal

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
