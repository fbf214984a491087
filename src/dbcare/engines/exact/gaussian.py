"""Two Gaussian arms and any elimination rule: the tables for the kernel in `gaussian_kernel`, which has the math."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.engines.compile import kernel
from dbcare.engines.exact.accumulator import Accumulator, Floats, decide, make_accumulator
from dbcare.engines.exact.gaussian_kernel import (
    BLOCK,
    CHUNK,
    FASTEST_BULK,
    FREE,
    HALF,
    SPREAD,
    UNROLL,
    Walk,
    carry_density,
)
from dbcare.engines.exact.law import (
    TwoArmLaw,
    assemble_law,
    check_gaps,
    check_levels,
    fixed_law,
    two_arm_boundary,
)
from dbcare.errors import InvalidValueError
from dbcare.policies.elimination.elimination import EliminationTables
from dbcare.policies.rule import Calls

DEFAULT_STEP = 0.25
# Gaps whose drift exceeds the reference by more than this would need ever wider kernels; they get their own pass.
MAX_EXTRA_DRIFT = 4.0


def two_arm_gaussian(
    tables: EliminationTables,
    gaps: npt.ArrayLike,
    sigma: float,
    *,
    levels: Iterable[float] = (),
    step: float = DEFAULT_STEP,
) -> TwoArmLaw:
    """Compute the law of an elimination policy on Gaussian arms whose means differ by each of `gaps`.

    `sigma` is the arms' standard deviation (the root mean square if they differ), whatever sigma the policy assumes.
    `step` is the grid step, in standard deviations of the difference of two rewards. Guarantee: the measured
    `mass_defect` is below 1e-10; halving the default step changes error and pulls by less than 1e-8 of the risk.
    """
    grid = check_gaps(gaps)
    quantile_levels = check_levels(levels)
    scale = math.sqrt(2.0) * checks.positive("sigma", sigma)
    boundary = two_arm_boundary(tables) / scale
    if not boundary.size:
        return fixed_law(grid, 0, np.full(grid.shape, 0.5), quantile_levels)
    if checks.positive("step", step) > 0.5:
        raise InvalidValueError(f"`step` must be at most 0.5 but got {step}.")
    # Beyond this drift, the first epoch with a finite boundary is certain to be the last.
    max_drift = float(np.max(boundary[np.isfinite(boundary)], initial=0.0)) + 50.0

    def run(waiting: Floats) -> Accumulator:
        drifts = np.minimum(waiting / scale, max_drift)
        drifts = drifts[drifts <= drifts[0] + MAX_EXTRA_DRIFT]
        accumulator = make_accumulator(drifts.size, quantile_levels)
        _carry_kernel()(_make_walk(boundary, drifts, step), accumulator)
        return accumulator

    return assemble_law(grid, quantile_levels, run)


@cache
def _carry_kernel() -> Any:
    return kernel(carry_density, "the exact engine for Gaussian arms", {decide: Calls.SELDOM})


def _make_walk(boundary: Floats, drifts: Floats, step: float) -> Walk:
    """Build a pass with its tables."""
    slow, fast = float(drifts[0]), float(drifts[-1])
    left = math.ceil((SPREAD - slow) / step)
    right = math.ceil((SPREAD + fast) / step)
    pad = max(right, HALF) + UNROLL
    free = (boundary.size * fast + FREE * math.sqrt(boundary.size)) / step
    held = float(np.max(boundary)) / step + HALF + right
    size = pad + int(max(min(free, held), (fast + FREE) / step)) + max(left, 0) + 2 * (HALF + UNROLL)
    stride = max(1, int(0.5 * math.sqrt(BLOCK) / step))
    span = math.ceil((SPREAD * math.sqrt(2.0 * BLOCK) + BLOCK * FASTEST_BULK) / step)
    bulk_reach = math.ceil((SPREAD * math.sqrt(BLOCK) + BLOCK * FASTEST_BULK) / step)
    powers = step * np.arange(CHUNK)
    bulk_moves = step * np.arange(-bulk_reach, bulk_reach + 1)
    return Walk(
        boundary=boundary,
        drifts=drifts,
        step=step,
        edge=edge_table(HALF),
        left=left,
        right=right,
        kernel=np.append(step * _normal_density(step * np.arange(right, -left - 1, -1) - slow, 1.0), np.zeros(UNROLL)),
        mirror=np.exp(-2.0 * slow * step * np.arange(pad + 1)),
        rising=np.exp(np.outer(drifts - slow, powers)),
        falling=np.exp(-np.outer(drifts + slow, powers)),
        stride=stride,
        span=span,
        fade=np.array([0.5 * math.erfc(k * step / math.sqrt(2.0 * BLOCK)) for k in range(-span, span + 1)]),
        bulk_reach=bulk_reach,
        bulk_kernel=stride * step * _normal_density(bulk_moves - BLOCK * slow, BLOCK),
        pad=pad,
        density=np.zeros(size),
        spare=np.zeros(size),
        bulk=np.zeros(size // stride + 1),
        weights=np.zeros(2 * HALF),
        part=np.zeros(CHUNK),
    )


def _normal_density(x: npt.NDArray[np.floating[Any]], variance: float) -> Floats:
    return np.asarray(np.exp(-0.5 * x**2 / variance) / math.sqrt(2.0 * math.pi * variance))


@cache
def edge_table(half: int, degree: int = 15) -> Floats:
    """Return the weights that cut a sum over a grid at a place between its points.

    Integrating the polynomial through the 2*half points around each cell, instead of the function itself, gives a
    point at distance u (in steps) inside the cut the weight W(u), the integral up to u of the fundamental function L
    of central Lagrange interpolation. W is 0 for u <= -half, 1 for u >= half, and W(u) + W(-u) = 1.
    Column k holds W(t + half - 1 - k) for 0 <= t < 1 as a polynomial in t - 1/2, one coefficient per row.
    """
    nodes, masses = np.polynomial.legendre.leggauss(half + 4)
    fractions = 0.5 - 0.5 * np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    columns = []
    below = 0.0
    for cell in range(-half, half):
        reached = [
            below + 0.5 * t * float(masses @ _fundamental(cell, 0.5 * t * (nodes + 1.0), half))
            for t in (*fractions, 1.0)
        ]
        columns.append(np.polynomial.Polynomial.fit(fractions - 0.5, reached[:-1], degree, domain=[-0.5, 0.5]))
        below = reached[-1]
    return np.array([column.convert().coef for column in reversed(columns)]).T.copy()


def _fundamental(cell: int, t: Floats, half: int) -> Floats:
    """Return L(cell + t): 1 at 0, and 0 at the other points of the stencil around the cell."""
    value = np.ones_like(t)
    for node in range(cell - half + 1, cell + half + 1):
        if node != 0:
            value *= (cell + t - node) / -node
    return value
