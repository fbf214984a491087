"""What a pass of the exact engine fills: sums over stopping epochs, one row a gap, and quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]

# Columns of the sums.
WRONG, MASS, EPOCHS, SQUARES, CAPPED = range(5)

NEGLIGIBLE = 1e-15  # mass of a gap that is not followed further

Function = TypeVar("Function", bound=Callable[..., Any])


def inner(fastmath: bool | set[str] = False) -> Callable[[Function], Function]:
    """Compile a function that compiled code alone will call: without what Python needs to call it."""
    options: Any = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Callable[[Function], Function], njit(error_model="numpy", fastmath=fastmath, **options))


class Accumulator(NamedTuple):
    """Rows are gaps in ascending order; `found` is what the kernel just weighed: mass that chose right, and wrong."""

    sums: Floats
    levels: Floats
    quantiles: Floats
    reached: npt.NDArray[np.int64]
    found: Floats


def fresh_tally(gaps: int, levels: Floats) -> Accumulator:
    """A tally with nothing booked."""
    return Accumulator(
        sums=np.zeros((gaps, 5)),
        levels=levels,
        quantiles=np.zeros((gaps, levels.size)),
        reached=np.zeros(gaps, dtype=np.int64),
        found=np.zeros((gaps, 2)),
    )


@inner()
def book(tally: Accumulator, active: int, epoch: int) -> None:
    """Add what was found to stop at `epoch`; note the epoch for each level of quantiles that is reached."""
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
    """How many gaps, from the smallest, to follow further: those of which `found`, what still runs, is `least`."""
    while active > 0 and not tally.found[active - 1, 0] + tally.found[active - 1, 1] >= least:
        active -= 1
        for level in range(tally.reached[active], len(tally.levels)):
            tally.quantiles[active, level] = epoch
    return active


@inner()
def decide(tally: Accumulator, active: int) -> None:
    """Of what runs at the last epoch, note what was found to stop with one arm left; `finish` comes next."""
    for gap in range(active):
        tally.sums[gap, CAPPED] = -(tally.found[gap, 0] + tally.found[gap, 1])


@inner()
def finish(tally: Accumulator, active: int, epoch: int) -> None:
    """Book all that runs at the last epoch."""
    book(tally, active, epoch)
    for gap in range(active):
        tally.sums[gap, CAPPED] += tally.found[gap, 0] + tally.found[gap, 1]
    followed(tally, active, epoch, np.inf)
