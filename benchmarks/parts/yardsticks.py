"""Rivals at their best, for the benchmark `best_rivals`: fixed sizes that minimize the loss, and stops for two arms.

All are for Gaussian rewards with a known standard deviation, simple regret, and the same price for all arms. Two arms
are tried in pairs, and a rule is a limit on the difference of the sums after each pair, so that the exact engine knows
its risk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtr

from dbcare.engines.exact.equal_size import OneBest
from dbcare.policies.elimination.elimination import EliminationPolicy, EliminationTables
from dbcare.theory import normal

Floats = npt.NDArray[np.float64]
# O'Brien and Fleming (1979), five looks, two-sided 5%: stop at look k if |z| >= 2.040 sqrt(5/k); and by how much the
# largest sample exceeds that of a fixed size with 80% power (Jennison and Turnbull 2000, tables 2.3 and 2.4).
LOOKS, OBRIEN_FLEMING, INFLATION = 5, 2.040, 1.028
FIXED_QUANTILES = 1.959964 + 0.841621  # of the fixed size, for two-sided 5% and 80% power


@dataclass(frozen=True)
class PairLimits(EliminationPolicy):
    """Two arms in turn, until their sums differ by more than the limit of the pair, or the limits end."""

    limits: tuple[float, ...]
    arms = 2

    @property
    def max_pulls(self) -> int:
        return 2 * len(self.limits)

    @cached_property
    def tables(self) -> EliminationTables:
        pairs = len(self.limits)
        rows, last = np.zeros(3, dtype=np.int64), np.array([0, 0, pairs], dtype=np.int64)
        return EliminationTables(np.array([0.0, *self.limits]), rows, last, self.max_pulls)


def equal_size_risk(size: int, arms: int, gap: float, cost: float) -> float:
    """Return the risk of so many pulls of each arm, of which one is better by the gap; sigma is 1."""
    return arms * size * cost + gap * OneBest(arms, gap, 0.0, 1.0).chance_wrong(size)


def best_equal_size(arms: int, gap: float, cost: float) -> int:
    """Return the size with the smallest risk at a gap."""
    return OneBest(arms, gap, 0.0, 1.0).best_size(gap, cost)


def test_and_roll_size(population: float, deviation: float, spread: float) -> float:
    """Return the size of each of two groups that maximizes the profit from a population (Feit and Berman 2019).

    Means have a normal prior with standard deviation `spread`; a test costs nothing but what its worse half loses.
    """
    ratio = (deviation / spread) ** 2
    return math.sqrt(population / 4.0 * ratio + (0.75 * ratio) ** 2) - 0.75 * ratio


def roll_size(spread: float, cost: float) -> int:
    """Return the size of each group that minimizes the prior mean of price and loss, where a trial has a price.

    With n rewards of each, the mean loss is spread/sqrt(pi) (1 - 1/sqrt(1 + 1/(n spread^2))), sigma = 1: the expected
    profit of Feit and Berman (2019), less the price of 2 n trials instead of what the population of a test loses.
    """
    sizes = np.arange(0, math.ceil(spread / cost) + 2)
    with np.errstate(divide="ignore"):
        loss = spread / math.sqrt(math.pi) * (1.0 - 1.0 / np.sqrt(1.0 + 1.0 / (sizes * spread**2)))
    return int(np.argmin(2.0 * sizes * cost + loss))


def caring_limits(threshold: float, pairs: int) -> PairLimits:
    """Stop once the expected loss of choosing the leader, with a flat prior, is at most a threshold of caring.

    The rule of commercial tools (Stucchio 2015): sqrt(2/n) Psi(z) <= threshold.
    """

    def limit(n: int) -> float:
        error = math.sqrt(2.0 / n)
        if error * float(normal.expected_excess(0.0)) <= threshold:
            return -1.0
        return n * error * brentq(lambda z: error * float(normal.expected_excess(z)) - threshold, 0.0, 40.0)

    limits = [limit(n) for n in range(1, pairs + 1)]
    stop = next((place for place, each in enumerate(limits) if each < 0.0), pairs - 1)
    return PairLimits(tuple(limits[: stop + 1]))


def group_sequential(gap: float) -> PairLimits:
    """Five looks with O'Brien and Fleming's limits, sized for 80% power at a gap; then the better mean."""
    largest = max(LOOKS, math.ceil(INFLATION * 2.0 * (FIXED_QUANTILES / gap) ** 2))
    limits = [math.inf] * largest
    for look in range(1, LOOKS + 1):
        pair = round(look * largest / LOOKS)
        limits[pair - 1] = OBRIEN_FLEMING * math.sqrt(LOOKS / look) * math.sqrt(2.0 * pair)
    return PairLimits(tuple(limits))


@cache
def chernoff_petkau(steps_per_deviation: int = 60) -> tuple[Floats, Floats]:
    """Return s and the optimal boundary b(s) in the units of `TwoArmChickFrazier`, by backward induction.

    The posterior mean of a drift is a Brownian motion in -s, the posterior variance, with a flat prior; stopping there
    costs 1/s + sqrt(s) Psi(|y|/sqrt(s)). A random walk with steps of h in y and h^2 in s is stopped optimally, from
    small s on; its boundary is too low by h/2 (Chernoff and Petkau 1986). h doubles with every fourfold s.
    """
    found: list[tuple[float, float]] = []
    s, h = 0.2, math.sqrt(0.2) / steps_per_deviation
    places = np.arange(8.0 * steps_per_deviation + 1.0)

    def stop(s: float) -> Floats:
        z = places * h / math.sqrt(s)
        return np.asarray(1.0 / s + math.sqrt(s) * (np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - z * ndtr(-z)))

    values = stop(s)
    while s < 1_000.0:
        end = 4.0 * s
        while s < end:
            s += h * h
            now = stop(s)
            ahead = np.empty_like(values)
            ahead[0], ahead[1:-1], ahead[-1] = values[1], 0.5 * (values[:-2] + values[2:]), now[-1]
            stopped = now <= ahead
            values = np.where(stopped, now, ahead)
            found.append((s, h * (float(np.argmax(stopped)) + 0.5)))
        h *= 2.0
        coarse, values = values[::2], stop(s)
        values[: len(coarse)] = coarse
    table = np.array(found)
    return table[:, 0], table[:, 1]


def optimal_limits(cost: float, boundary: Callable[[Floats], Floats] | None = None) -> PairLimits:
    """Stop two arms where the optimal boundary, or another one, says so; sigma is 1."""
    first, unit = 2.0 ** (1.0 / 3.0) / (2.0 * cost) ** (2.0 / 3.0), (4.0 * cost) ** (1.0 / 3.0)
    pairs = np.arange(1.0, math.ceil(first / 0.2) + 1.0)
    s, b = chernoff_petkau()
    heights = np.interp(first / pairs, s, b) if boundary is None else boundary(first / pairs)
    return PairLimits(tuple(map(float, pairs * unit * heights)))


def prior_mean(risk_at: Callable[[Floats], Floats], spread: float) -> float:
    """Return the mean risk over gaps |N(0, 2 spread^2)|, those of two means from a normal law."""
    gaps = math.sqrt(2.0) * spread * np.linspace(0.05, 4.5, 30)
    density = np.exp(-((gaps / spread) ** 2) / 4.0)
    return float(density @ risk_at(gaps) / density.sum())
