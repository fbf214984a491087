"""Two Bernoulli arms and any elimination rule: dynamic programming on the lattice of differences.

The difference d of the two arms' sums moves by +1, 0 or -1 per epoch. Under means 1/2 +- gap/2 the probabilities are
((1+gap)/2)^2, (1-gap^2)/2, ((1-gap)/2)^2, so that the likelihood ratio of one gap against another (the reference) at
(n, d) is exp(n*level + d*slope), with

    level = ln((1-gap^2) / (1-reference^2)),    slope = ln((1+gap)/(1-gap)) - ln((1+reference)/(1-reference)),

and one pass under the reference serves a grid of gaps. All terms are positive, so rounding errors stay relative. The
pass drops mass below TINY far down, where every larger gap has even less, and each gap's last NEGLIGIBLE mass.
"""

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

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

TINY = 1e-30
SMALLEST = 1e-290  # above this, products do not lose digits


def two_arm_bernoulli(tables: EliminationTables, gaps: npt.ArrayLike, *, levels: Iterable[float] = ()) -> TwoArmLaw:
    """Compute the law of an elimination policy on Bernoulli arms with means 1/2 +- gap/2, for each of `gaps`.

    Exact up to rounding; the measured `mass_defect` is below 1e-10.
    """
    grid = check_gaps(gaps, at_most=1.0)
    quantile_levels = check_levels(levels)
    boundary = two_arm_boundary(tables)

    def run(waiting: Floats) -> Accumulator:
        reference = float(waiting[0])
        slopes = log_levels = np.zeros(1)
        if reference < 1.0:
            carried = waiting[waiting < 1.0]
            slopes = 2.0 * (np.arctanh(carried) - np.arctanh(reference))
            log_levels = np.log1p(-(carried**2)) - np.log1p(-(reference**2))
        return _run_pass(
            boundary, (1.0 + reference) / 2.0, (1.0 - reference) / 2.0, slopes, log_levels, quantile_levels
        )

    if not boundary.size:
        return fixed_law(grid, 0, np.full(grid.shape, 0.5), quantile_levels)
    return assemble_law(grid, quantile_levels, run)


def two_arm_bernoulli_pair(
    tables: EliminationTables, best: float, other: float, *, levels: Iterable[float] = ()
) -> TwoArmLaw:
    """Compute the law of an elimination policy on two Bernoulli arms with means `best` >= `other`."""
    high, low = checks.unit("best", best), checks.unit("other", other)
    if high < low:
        raise InvalidValueError(f"`best` must not be below `other` but got {best} and {other}.")
    gap = check_gaps(high - low)
    quantile_levels = check_levels(levels)
    boundary = two_arm_boundary(tables)
    if not boundary.size:
        return fixed_law(gap, 0, np.full(1, 0.5), quantile_levels)
    zeros = np.zeros(1)
    return assemble_law(gap, quantile_levels, lambda _: _run_pass(boundary, high, low, zeros, zeros, quantile_levels))


def _run_pass(
    boundary: Floats, best: float, other: float, slopes: Floats, levels: Floats, quantile_levels: Floats
) -> Accumulator:
    """Run a pass under the means `best` and `other`."""
    accumulator = make_accumulator(slopes.size, quantile_levels)
    widest = int(min(boundary.size, np.max(boundary))) + 3
    moves = best * (1.0 - other), best * other + (1.0 - best) * (1.0 - other), (1.0 - best) * other
    _carry_kernel()(boundary, moves, slopes, levels, np.zeros((2, 2 * widest + 1)), accumulator)
    return accumulator


@cache
def _carry_kernel() -> Any:
    return kernel(carry_lattice, "the exact engine for Bernoulli arms")


@inner()
def _weigh(
    chance: Floats,
    low: int,
    high: int,
    limit: int,
    epoch: int,
    slopes: Floats,
    levels: Floats,
    tally: Accumulator,
    active: int,
) -> None:
    """Find each gap's mass at d > limit and at d < -limit."""
    origin = len(chance) // 2
    for gap in range(active):
        right = 0.0
        for d in range(max(low, limit + 1), high + 1):
            right += chance[origin + d] * math.exp(epoch * levels[gap] + d * slopes[gap])
        wrong = 0.0
        for d in range(low, min(high, -limit - 1) + 1):
            wrong += chance[origin + d] * math.exp(epoch * levels[gap] + d * slopes[gap])
        tally.found[gap, 0] = right
        tally.found[gap, 1] = wrong


def carry_lattice(
    boundary: "Floats",
    moves: "tuple[float, float, float]",
    slopes: "Floats",
    levels: "Floats",
    room: "Floats",
    tally: "Accumulator",
) -> None:
    """Run a pass and fill the accumulator."""
    up, stay, down = moves
    active = len(slopes)
    chance, spare = room[0], room[1]
    origin = len(chance) // 2
    chance[origin] = 1.0
    low = high = centre = int(np.int64(0))  # numba would compile much of this twice for a literal 0
    check = 8
    for epoch in range(1, len(boundary) + 1):
        chance[origin + low - 1] = chance[origin + low - 2] = 0.0
        chance[origin + high + 1] = chance[origin + high + 2] = 0.0
        low -= 1
        high += 1
        before = chance[origin + low - 1 : origin + high + 2]
        after = spare[origin + low : origin + high + 1]
        for k in range(len(after)):
            after[k] = up * before[k] + stay * before[k + 1] + down * before[k + 2]
        chance, spare = spare, chance
        limit = math.floor(min(boundary[epoch - 1], float(len(boundary))))
        if high > limit or low < -limit:
            _weigh(chance, low, high, limit, epoch, slopes, levels, tally, active)
            book(tally, active, epoch)
            low, high = max(low, -limit), min(high, limit)
        while low < high and chance[origin + low] < TINY:
            low += 1
        while low < high and chance[origin + high] < SMALLEST:
            high -= 1
        if epoch < check and epoch < len(boundary):
            continue
        _weigh(chance, low, high, centre, epoch, slopes, levels, tally, active)
        for gap in range(active):
            tie = chance[origin] * math.exp(epoch * levels[gap]) if low <= 0 <= high else 0.0
            tally.found[gap, 0] += tie / 2.0
            tally.found[gap, 1] += tie / 2.0
        if epoch == len(boundary):
            finish(tally, active, epoch)
            return
        active = followed(tally, active, epoch, NEGLIGIBLE)
        if active == 0:
            return
        check = epoch + max(8, epoch // 8)
