"""The accumulator that a pass of the exact engine fills: sums over stopping epochs, one row per gap, and quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]

# Columns of `sums`.
WRONG, MASS, EPOCHS, SQUARES, CAPPED = range(5)

NEGLIGIBLE = 1e-15  # a gap with less mass still running is not followed further

Function = TypeVar("Function", bound=Callable[..., Any])


def inner(fastmath: bool | set[str] = False) -> Callable[[Function], Function]:
    """Compile a function that only compiled code calls; leave out the wrappers that Python would need."""
    options: Any = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Callable[[Function], Function], njit(error_model="numpy", fastmath=fastmath, **options))


class Accumulator(NamedTuple):
    """Sums and quantiles; rows are gaps in ascending order.

    `found` holds the mass that the kernel weighed last: right choices and wrong choices.
    """

    sums: Floats
    levels: Floats
    quantiles: Floats
    reached: npt.NDArray[np.int64]
    found: Floats


def make_accumulator(gaps: int, levels: Floats) -> Accumulator:
    """Allocate an empty accumulator."""
    return Accumulator(
        sums=np.zeros((gaps, 5)),
        levels=levels,
        quantiles=np.zeros((gaps, levels.size)),
        reached=np.zeros(gaps, dtype=np.int64),
        found=np.zeros((gaps, 2)),
    )


@inner()
def book(tally: Accumulator, active: int, epoch: int) -> None:
    """Add the mass found to stop at `epoch`; record the epoch for each quantile level that is reached."""
    for gap in range(active):
        mass = tally.found[gap, 0] + tally.found[gap, 1]
        tally.sums[gap, WRONG] += tally.found[gap, 1]
        tally.sums[gap, MASS] += mass
        tally.sums[gap, EPOCHS] += epoch * mass
        tally.sums[gap, SQUARES] += float(epoch) * epoch * mass
        while tally.reached[gap] < len(tally.levels) and tally.sums[gap, MASS] >= tally.levels[tally.reached[gap]]:
            tally.quantiles[gap, tally.reached[gap]] = epoch
            tally.reached[gap] += 1


@inner()
def followed(tally: Accumulator, active: int, epoch: int, least: float) -> int:
    """Return how many gaps, from the smallest, to follow further: those with at least `least` mass still running.

    `found` must hold the running mass.
    """
    while active > 0 and not tally.found[active - 1, 0] + tally.found[active - 1, 1] >= least:
        active -= 1
        for level in range(tally.reached[active], len(tally.levels)):
            tally.quantiles[active, level] = epoch
    return active


@inner()
def decide(tally: Accumulator, active: int) -> None:
    """Record the mass found to stop at the last epoch with one arm left; call `finish` next."""
    for gap in range(active):
        tally.sums[gap, CAPPED] = -(tally.found[gap, 0] + tally.found[gap, 1])


@inner()
def finish(tally: Accumulator, active: int, epoch: int) -> None:
    """Add all mass still running at the last epoch."""
    book(tally, active, epoch)
    for gap in range(active):
        tally.sums[gap, CAPPED] += tally.found[gap, 0] + tally.found[gap, 1]
    followed(tally, active, epoch, np.inf)
