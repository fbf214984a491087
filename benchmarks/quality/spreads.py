"""Measure what it costs Breakeven not to know the spread of the rewards; against rules that know it.

Each group divides the risk with a stated sigma by that of a reference: the rule that knows each arm's spread, or the
rule that takes the right sigma as certain. A ratio above 2.5 is measured again with other random numbers and ten times
the work, which replaces the first result.
"""

import itertools
import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.parts.bars import Bars
from benchmarks.parts.instances import Cell
from benchmarks.parts.measurements import Ratio, count_arms, divide, measure, report_ratios
from dbcare import Bandit, Breakeven, Loss, Policy, Risk
from dbcare.policies.breakeven.losses import BreakevenTables

ORDERS = 400  # equally likely sizes of an order, at the quantiles of a log-normal law
ORDER_RATE = 0.04
POWERS = (0.5, 1.0, 2.0)
SMALLEST_STEP = 0.05  # of the range of means, between the two best
SUSPICIOUS = 2.5
WORK = 2.5e6  # as in `policies.py`, a quarter
Maker = Callable[[Cell], Policy]


def _log_uniform(generator: np.random.Generator, low: float, high: float) -> float:
    return float(low * (high / low) ** generator.uniform())


def _draw_arms(generator: np.random.Generator, most: int) -> int:
    return int(_log_uniform(generator, 2.0, most + 1.0))


def _power_law(generator: np.random.Generator, arms: int) -> npt.NDArray[np.float64]:
    """Return the share of the range by which each arm is behind the best: (k / (K - 1))^power."""
    ranks = np.arange(arms) / (arms - 1)
    shares: npt.NDArray[np.float64] = np.maximum(ranks ** generator.choice(POWERS), SMALLEST_STEP)
    shares[0] = 0.0
    return shares


def differing_cells(count: int, seed: int) -> Iterator[Cell]:
    """Yield Gaussian cells whose standard deviations are log-uniform from 0.3 to 3; K = 2 to 32, gaps 0.1 to 2."""
    generator = np.random.default_rng(seed)
    for number in range(count):
        arms, cost = _draw_arms(generator, 32), _log_uniform(generator, 1e-5, 1e-3)
        gap = _log_uniform(generator, 0.1, 2.0)
        deviations = 0.3 * 10.0 ** generator.uniform(size=arms)
        gaps = gap * (1.0 + generator.uniform(0.0, 2.0, arms))
        gaps[:2] = 0.0, gap
        bandit = Bandit.gaussian((-gaps).tolist(), deviations.tolist())
        name = f"{number}: unequal spreads, K = {arms}, c = {cost:.2g}, gap {gap:.2g}"
        yield Cell(name, bandit, Risk(list(Loss)[number % 2], cost), max(1.0, bandit.spread))


def noisy_cells() -> Iterator[Cell]:
    """Yield cells in which the best of eight arms has a standard deviation of 3, the others 0.3."""
    for loss in Loss:
        for gap in (0.5, 1.0):
            bandit = Bandit.gaussian([gap] + [0.0] * 7, [3.0] + [0.3] * 7)
            yield Cell(f"one noisy arm, gap {gap:g}", bandit, Risk(loss, 1e-4), 1.0)


def revenue_cells(count: int, seed: int) -> Iterator[Cell]:
    """Yield cells of revenue per visitor: at most 4% order, for log-normal amounts with a mean of 1.

    K = 2 to 16, c = 1e-5 to 1e-2; the logarithm of an order has a standard deviation of 1 to 1.5; arms differ in the
    rate of orders, by a power law down to a random share.
    """
    generator = np.random.default_rng(seed)
    for number in range(count):
        arms, cost = _draw_arms(generator, 16), _log_uniform(generator, 1e-5, 1e-2)
        deviation = generator.uniform(1.0, 1.5)
        orders = np.exp(deviation * stats.norm.ppf((np.arange(ORDERS) + 0.5) / ORDERS))
        rates = ORDER_RATE * (1.0 - generator.uniform(0.2, 0.9) * _power_law(generator, arms))
        rows = [np.concatenate([[1.0 - rate], np.full(ORDERS, rate / ORDERS)]) for rate in rates]
        values = [0.0, *(orders / orders.mean()).tolist()]
        bandit = Bandit.categorical(values, [_normalized(row) for row in rows])
        name = f"{number}: revenue, K = {arms}, c = {cost:.2g}, log sd {deviation:.2g}"
        yield Cell(name, bandit, Risk(list(Loss)[number % 2], cost), 1.0)


def true_deviations(bandit: Bandit) -> tuple[float, ...]:
    """Return the standard deviation of each arm's rewards."""
    deviations = []
    for arm in bandit.arms:
        if not hasattr(arm, "outcomes"):
            deviations.append(arm.sigma)  # Gaussian
            continue
        values, chances = map(np.array, arm.outcomes)
        deviations.append(math.sqrt(float(chances @ (values - arm.mean) ** 2)))
    return tuple(deviations)


def _normalized(row: npt.NDArray[np.float64]) -> list[float]:
    return [float(share) for share in row / row.sum()]


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


def main() -> None:
    bars = Bars(__doc__)
    work, cells = bars.size((WORK, 40), (WORK / 10.0, 8))
    unequal = differing_cells(cells, seed=12)
    differing = compare("unequal spreads", unequal, lambda cell: state(cell, 1.0), know_each, work)
    report_ratios(bars, "spreads of 0.3 to 3, sigma 1 stated, over knowing each", differing, 1.5, 3.5)
    noisy = compare("one noisy arm", noisy_cells(), lambda cell: state(cell, 1.0), know_each, work)
    report_ratios(bars, "one noisy best arm, sigma 1 stated, over knowing each", noisy, None, 7.0)
    revenue = compare(
        "revenue",
        revenue_cells(cells, seed=13),
        lambda cell: state(cell, max(true_deviations(cell.bandit))),
        know_largest,
        work,
    )
    report_ratios(bars, "revenue, the right sigma stated, over knowing it", revenue, 0.90)
    learned = compare(
        "revenue, learned",
        revenue_cells(cells, seed=13),
        lambda cell: Breakeven(cell.risk, count_arms(cell), bound=cell.bound),
        know_largest,
        work,
    )
    report_ratios(bars, "revenue, sigma learned, over knowing it", learned)
    bars.save()
