"""Elimination on two Gaussian arms, exactly: the density of a walk that stops outside a boundary.

The difference D_n of the two arms' sums is a Gaussian walk; in units of the standard deviation of a step it has
drift theta = gap/(sqrt(2) sigma) and variance 1 per epoch. Let f_n be the density of D_n on the runs not stopped before
epoch n, under a reference drift mu. Then f_1 = N(mu, 1) and f_{n+1} = (f_n cut to |x| <= b(n)) * N(mu, 1). Under
another drift the density is f_n(x) exp((theta - mu) x - n (theta^2 - mu^2)/2). Hence f_n(-x) = f_n(x) exp(-2 mu x), so
x >= 0 suffices, and the mass that stops below -b(n) under theta is the mass that stops above b(n) under -theta.

f_n and the normal density are smooth: their Fourier transforms fall like exp(-w^2/2), so sums over a grid of step 1/4
equal the integrals up to rounding, provided that the weights of `edge_table` make the cut at b(n), between two points.

Most of the mass is far from the boundary. Mass more than `span` points inside cannot reach it within BLOCK epochs. This
bulk is faded out smoothly, moved BLOCK epochs at once by N(BLOCK mu, BLOCK) from every `stride`-th point, and added
back to the rest, which has moved epoch by epoch.

All sums have positive terms, except for slight oscillations of the weights, so tails keep their relative accuracy and
one pass serves many drifts. Only tails beyond SPREAD or FREE standard deviations and each drift's last NEGLIGIBLE mass
are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.engines.exact.law import (
    NEGLIGIBLE,
    Accumulator,
    Floats,
    TwoArmLaw,
    assemble_law,
    book,
    check_gaps,
    check_levels,
    decide,
    finish,
    fixed_law,
    followed,
    inner,
    make_accumulator,
    two_arm_boundary,
)
from dbcare.engines.kernels.compile import kernel
from dbcare.errors import InvalidValueError
from dbcare.policies.elimination.elimination import EliminationTables
from dbcare.policies.rule import Calls

SPREAD = 8.3  # half-width of a step's law, in standard deviations; 5e-17 lies beyond
FREE = 9.0  # half-width of the law of the walk without a boundary, in standard deviations
HALF = 16  # points on each side of a cut that its weights affect
CHUNK = 64  # points weighed with one pair of exponentials
UNROLL = 8  # terms of a convolution added in one sweep
BLOCK = 16  # epochs that the bulk moves at once
FASTEST_BULK = 0.25  # the largest drift for which the bulk moves in blocks


class Walk(NamedTuple):
    """A pass: boundary, ascending drifts, tables and work arrays; the point x = i*step is at density[pad + i]."""

    boundary: Floats
    drifts: Floats
    step: float
    edge: Floats  # the cut's weights, as polynomials
    left: int  # points that the walk can move down in an epoch; `right`: up
    right: int
    kernel: Floats  # mass that moves by right, right - 1, ..., -left points per epoch
    mirror: Floats  # f_n(-x) / f_n(x)
    rising: Floats  # [drift, k]: exp((theta - mu) k step)
    falling: Floats  # [drift, k]: exp(-(theta + mu) k step)
    stride: int
    span: int
    fade: Floats  # the bulk's share of the density, from span points below its middle to span above
    bulk_reach: int  # points that the bulk can move in BLOCK epochs
    bulk_kernel: Floats
    pad: int
    density: Floats
    spare: Floats
    bulk: Floats
    weights: Floats
    part: Floats


@inner()
def _clear(array: Floats, start: int, stop: int) -> None:
    for i in range(start, stop):
        array[i] = 0.0


@inner()
def _mirror(density: Floats, pad: int, mirror: Floats, count: int) -> None:
    for i in range(1, count + 1):
        density[pad - i] = density[pad + i] * mirror[i]


@inner(fastmath=True)
def _convolve(source: Floats, taps: Floats, target: Floats, start: int, stop: int, shift: int) -> None:
    """target[i] = sum over k of taps[k] * source[i + k - shift], UNROLL terms per sweep."""
    _clear(target, start, stop)
    swept = target[start:stop]
    for k in range(0, len(taps), UNROLL):
        t0, t1, t2, t3 = taps[k], taps[k + 1], taps[k + 2], taps[k + 3]
        t4, t5, t6, t7 = taps[k + 4], taps[k + 5], taps[k + 6], taps[k + 7]
        s = source[start - shift + k :]
        for i in range(len(swept)):
            head = t0 * s[i] + t1 * s[i + 1] + t2 * s[i + 2] + t3 * s[i + 3]
            swept[i] += head + t4 * s[i + 4] + t5 * s[i + 5] + t6 * s[i + 6] + t7 * s[i + 7]


@inner()
def _cut_weights(place: float, edge: Floats, weights: Floats) -> int:
    """Fill the weights of a cut at `place` (in steps); return the point of the first weight."""
    cell = math.floor(place)
    t = place - cell - 0.5
    for k in range(2 * HALF):
        weights[k] = 0.0
    for power in range(len(edge) - 1, -1, -1):
        for k in range(2 * HALF):
            weights[k] = weights[k] * t + edge[power, k]
    return int(cell) - HALF + 1


@inner(fastmath={"reassoc", "contract", "nsz"})
def _weigh(
    walk: Walk, density: Floats, low: int, top: int, place: float, epoch: int, active: int, found: Floats
) -> int:
    """Find each drift's mass beyond a cut at +-place; return the point of the first weight."""
    first = _cut_weights(min(place / walk.step, top + HALF + 1.0), walk.edge, walk.weights)
    if low == 0 and first < 0:
        _mirror(density, walk.pad, walk.mirror, len(walk.weights) // 2)
        low = first
    slow = walk.drifts[0]
    for drift in range(active):
        found[drift, 0] = found[drift, 1] = 0.0
    for start in range(max(first, low), top + 1, CHUNK):
        size = min(CHUNK, top + 1 - start)
        for k in range(size):
            weight = start + k - first
            walk.part[k] = density[walk.pad + start + k] * (1.0 - walk.weights[weight] if weight < 2 * HALF else 1.0)
        x = start * walk.step
        for drift in range(active):
            fast = walk.drifts[drift]
            above = 0.0
            below = 0.0
            for k in range(size):
                above += walk.part[k] * walk.rising[drift, k]
                below += walk.part[k] * walk.falling[drift, k]
            level = -0.5 * epoch * (fast - slow) * (fast + slow)
            found[drift, 0] += walk.step * above * math.exp((fast - slow) * x + level)
            found[drift, 1] += walk.step * below * math.exp(-(fast + slow) * x + level)
    return first


@inner()
def _cut(density: Floats, pad: int, low: int, top: int, first: int, weights: Floats) -> int:
    """Cut the density at both boundaries; return its last point."""
    end = min(top, first + 2 * HALF - 1)
    for i in range(max(low, first), end + 1):
        density[pad + i] *= weights[i - first] + (weights[-i - first] - 1.0 if -i >= first else 0.0)
    return end


@inner()
def _bulk_middle(walk: Walk, epoch: int, low: int, top: int, fast: float) -> int:
    """Return where to fade out the bulk for the next BLOCK epochs, or -1 if that is impossible or not worthwhile."""
    if fast > FASTEST_BULK or epoch + BLOCK > len(walk.boundary):
        return -1
    nearest = top * walk.step
    for ahead in range(epoch - 1, epoch - 1 + BLOCK):
        nearest = min(nearest, walk.boundary[ahead])
    middle = int(nearest / walk.step) - walk.span
    return middle if middle > low + 2 * walk.span else -1


@inner()
def _take_bulk(walk: Walk, density: Floats, low: int, middle: int) -> None:
    """Move the bulk out of the density."""
    for place in range(-(-low // walk.stride), (middle + walk.span) // walk.stride + 1):
        i = place * walk.stride
        share = walk.fade[i - middle + walk.span] if i > middle - walk.span else 1.0
        walk.bulk[place] = density[walk.pad + i] * share
    for i in range(middle - walk.span, middle + walk.span + 1):
        density[walk.pad + i] *= 1.0 - walk.fade[i - middle + walk.span]


@inner(fastmath=True)
def _put_bulk(walk: Walk, density: Floats, low: int, top: int, middle: int) -> None:
    """Add the bulk back, BLOCK epochs later."""
    _clear(density, walk.pad + low, walk.pad + middle - walk.span)
    begin = -(-low // walk.stride)
    mirrored = walk.bulk_reach // walk.stride if low == 0 else -begin
    for place in range(-mirrored, (middle + walk.span) // walk.stride + 1):
        mass = walk.bulk[abs(place)]
        if place < 0:
            mass *= math.exp(2.0 * walk.drifts[0] * walk.step * walk.stride * place)
        start = place * walk.stride - walk.bulk_reach
        skip = max(0, low - start)
        taps = walk.bulk_kernel[skip:]
        target = density[walk.pad + start + skip : walk.pad + top + 1]
        for k in range(min(len(taps), len(target))):
            target[k] += mass * taps[k]


@inner()
def _lowest(epoch: int, drift: float, step: float) -> int:
    """Return the lowest point that a walk without a boundary can reach."""
    return int(max(0.0, (epoch * drift - FREE * math.sqrt(epoch)) / step))


@inner()
def _highest(epoch: int, drift: float, step: float) -> int:
    """Return the highest point that a walk without a boundary can reach."""
    return int((epoch * drift + FREE * math.sqrt(epoch)) / step) + 1


def carry_density(walk: Walk, tally: Accumulator) -> None:
    """Run a pass and fill the accumulator."""
    active = len(walk.drifts)
    slow, fast = walk.drifts[0], walk.drifts[active - 1]
    right = walk.right
    density, spare = walk.density, walk.spare
    epoch = int(np.int64(1))  # numba would compile much of this twice for a literal 1
    check = 8
    over = False
    low, top = _lowest(epoch, slow, walk.step), _highest(epoch, fast, walk.step)
    for i in range(low, top + 1):
        density[walk.pad + i] = math.exp(-0.5 * (i * walk.step - slow) ** 2) / math.sqrt(2.0 * math.pi)
    while True:
        if over or epoch >= check:
            _weigh(walk, density, low, top, 0.0, epoch, active, tally.found)
            if over:
                finish(tally, active, epoch)
                return
            active = followed(tally, active, epoch, NEGLIGIBLE)
            if active == 0:
                return
            fast = walk.drifts[active - 1]
            top = min(top, _highest(epoch, fast, walk.step))
            right = math.ceil((SPREAD + fast) / walk.step)
            check = epoch + max(8, epoch // 8)
        taps = walk.kernel[walk.right - right :][: (walk.left + right) // UNROLL * UNROLL + UNROLL]
        middle = _bulk_middle(walk, epoch, low, top, fast)
        near = low
        if middle >= 0:
            _take_bulk(walk, density, low, middle)
            near = middle - walk.span
        for _ in range(BLOCK if middle >= 0 else 1):
            first = _weigh(walk, density, near, top, walk.boundary[epoch - 1], epoch, active, tally.found)
            over = epoch == len(walk.boundary)
            if over:
                decide(tally, active)
                break
            book(tally, active, epoch)
            end = _cut(density, walk.pad, near, top, first, walk.weights)
            if end < near:
                followed(tally, active, epoch, np.inf)
                return
            epoch += 1
            after = near if middle >= 0 else _lowest(epoch, slow, walk.step)
            top = min(end + right, _highest(epoch, fast, walk.step))
            _clear(density, walk.pad + end + 1, walk.pad + top + walk.left + UNROLL + 1)
            if near == 0:
                _mirror(density, walk.pad, walk.mirror, right)
            else:
                _clear(density, walk.pad + after - right, walk.pad + near)
            _convolve(density, taps, spare, walk.pad + after, walk.pad + top + 1, right)
            density, spare = spare, density
            near = after
        if middle >= 0:
            _put_bulk(walk, density, low, top, middle)
        low = _lowest(epoch, slow, walk.step)


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
