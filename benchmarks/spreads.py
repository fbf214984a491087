"""Measure what it costs Breakeven not to know the spread of the rewards; part of `benchmarks/policies.py`.

Each group divides the risk with a stated sigma by that of a reference: the rule that knows each arm's spread, or the
rule that takes the right sigma as certain. A ratio above 2.5 is measured again with other random numbers and ten times
the work, which replaces the first result.
"""

import itertools
import math
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from instances import Cell
from measurements import Ratio, Report, count_arms, divide, measure
from spread_cells import differing_cells, noisy_cells, revenue_cells, true_deviations

from dbcare import Breakeven, Policy
from dbcare.policies.breakeven_spread import BreakevenTables

SUSPICIOUS = 2.5
Maker = Callable[[Cell], Policy]


@dataclass(frozen=True)
class KnowsEach(Breakeven):
    """Breakeven told each arm's standard deviation."""

    deviations: tuple[float, ...] = ()

    @cached_property
    def tables(self) -> BreakevenTables:
        assert self.sigma is not None
        return super().tables._replace(stated=np.square(np.array(self.deviations) / self.sigma))


def state(cell: Cell, sigma: float) -> Breakeven:
    """Return Breakeven with a stated sigma."""
    return Breakeven(cell.risk, count_arms(cell), sigma, bound=cell.bound)


def know_each(cell: Cell) -> Policy:
    """Return Breakeven told each arm's standard deviation."""
    deviations = true_deviations(cell.bandit)
    return KnowsEach(cell.risk, count_arms(cell), max(deviations), math.inf, cell.bound, deviations=deviations)


def know_largest(cell: Cell) -> Policy:
    """Return Breakeven told the largest standard deviation of an arm."""
    return Breakeven(cell.risk, count_arms(cell), max(true_deviations(cell.bandit)), math.inf, cell.bound)


def compare(group: str, cells: Iterable[Cell], ours: Maker, reference: Maker, work: float) -> list[Ratio]:
    """Return the ratios of a group."""
    streams = itertools.count(zlib.crc32(group.encode()))
    ratios = []
    began = time.monotonic()
    for cell in cells:
        ratio = divide(cell, *(measure(make(cell), cell, work, next(streams)) for make in (ours, reference)))
        if ratio.value > SUSPICIOUS:
            again = (measure(make(cell), cell, 10.0 * work, next(streams)) for make in (ours, reference))
            ratio = divide(cell, *again)
        ratios.append(ratio)
    print(f"  {group}: {len(ratios)} cells, {time.monotonic() - began:.0f} s", flush=True)
    return ratios


def measure_spreads(report: Report, work: float) -> None:
    """Report all groups."""
    differing = compare("unequal spreads", differing_cells(40, seed=12), lambda cell: state(cell, 1.0), know_each, work)
    report.add_ratios("spreads of 0.3 to 3, sigma 1 stated, over knowing each", differing, 1.5, 3.5)
    noisy = compare("one noisy arm", noisy_cells(), lambda cell: state(cell, 1.0), know_each, work)
    report.add_ratios("one noisy best arm, sigma 1 stated, over knowing each", noisy, None, 7.0)
    revenue = compare(
        "revenue",
        revenue_cells(40, seed=13),
        lambda cell: state(cell, max(true_deviations(cell.bandit))),
        know_largest,
        work,
    )
    report.add_ratios("revenue, the right sigma stated, over knowing it", revenue, 0.90)
    learned = compare(
        "revenue, learned",
        revenue_cells(40, seed=13),
        lambda cell: Breakeven(cell.risk, count_arms(cell), bound=cell.bound),
        know_largest,
        work,
    )
    report.add_ratios("revenue, sigma learned, over knowing it", learned)
