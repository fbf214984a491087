"""KG*: pull the arm with the largest expected gain per cost over any number of pulls, stop when none pays.

After m more pulls of an arm with n, its posterior mean has moved by a normal variable with the variance
sigma^2 r/n, where r = m/(n + m). If it is d away from the best other mean, the expected gain is w Psi(d/w) with
w = sigma sqrt(r/n). The gain per pull rises and falls in m; at its largest, Psi(u)/phi(u) = (1 - r)/2 for u = d/w. With
z = d sqrt(n)/sigma, u = z/sqrt(r), so that the best r is a function of z alone, which is tabulated.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.base.look import ORANGE, Look, PolicyKind
from dbcare.policies.breakeven.losses import gaussian_loss, series_of
from dbcare.policies.breakeven.state import COUNT, LEADER, MADE, MEAN, STOPPED, section
from dbcare.policies.literature.chick_frazier import second_mean
from dbcare.policies.literature.parts import (
    AdaptiveProblem,
    AdaptiveTables,
    SamplingPart,
    StoppingPart,
    ValueRule,
    wins_tie,
)
from dbcare.policies.rule import State
from dbcare.policies.run import Wording
from dbcare.problem.risk import Risk
from dbcare.theory.normal import PSI_AT_0, expected_excess

Floats = npt.NDArray[np.float64]

GRID = 64  # points of the table per unit of z
REACH = 8.0  # beyond, r is so near to 1 that its last value will do


class GainNumbers(NamedTuple):
    """The numbers that gains are computed from."""

    sigma: float
    price: Floats  # of a pull of each arm
    share: Floats  # the best r by z, in steps of 1/GRID
    series: Floats  # of Psi


@cache
def best_shares() -> Floats:
    """Return the best r at z = 0, 1/GRID, ..., REACH."""
    u = np.concatenate([np.linspace(0.6, 8.0, 20_000), np.linspace(8.0, 30.0, 2_000)[1:]])
    share = 1.0 - 2.0 * expected_excess(u) / (PSI_AT_0 * np.exp(-0.5 * u * u))
    rising = share > 0.0
    z = u[rising] * np.sqrt(share[rising])
    grid = np.arange(0.0, REACH + 1.0 / GRID, 1.0 / GRID)
    return np.asarray(np.interp(grid, np.concatenate([[0.0], z]), np.concatenate([[0.0], share[rising]])))


def gain_rate(numbers: GainNumbers, arm: int, difference: float, pulls: float) -> float:
    """Return the largest expected gain of an arm per unit of cost, over any whole number of pulls."""
    place = min(difference * math.sqrt(pulls) / numbers.sigma, REACH) * GRID
    point = min(int(place), len(numbers.share) - 2)
    share = numbers.share[point] + (place - point) * (numbers.share[point + 1] - numbers.share[point])
    fewer = max(1.0, math.floor(pulls * share / (1.0 - share)))
    gain = max(gain_per_pull(numbers, difference, pulls, fewer), gain_per_pull(numbers, difference, pulls, fewer + 1.0))
    return float(gain / numbers.price[arm])


def gain_per_pull(numbers: GainNumbers, difference: float, pulls: float, more: float) -> float:
    """Return the expected gain of so many more pulls of an arm, per pull."""
    width = numbers.sigma * math.sqrt(more / (pulls * (pulls + more)))
    return width * gaussian_loss(numbers.series, difference / width) / more


def difference_of(state: State, tables: AdaptiveTables, arm: int, second: float) -> float:
    """Return how far an arm's mean is from the best other one."""
    mean, leader = section(tables.cost, MEAN), int(state[LEADER])
    return float(state[mean + leader] - (second if arm == leader else state[mean + arm]))


def choose(state: State, tables: AdaptiveTables) -> int:
    """Return the arm with the largest expected gain per cost."""
    made, second = section(tables.cost, MADE), second_mean(state, tables)
    chosen = -1
    largest = 0.0
    for arm in range(len(tables.cost)):
        difference = difference_of(state, tables, arm, second)
        gain = gain_rate(tables.sampling, arm, difference, state[made + arm])
        if chosen < 0 or gain > largest or (gain == largest and wins_tie(state, tables, arm, chosen)):
            chosen = arm
            largest = gain
    return chosen


def decide(state: State, tables: AdaptiveTables) -> None:
    """Stop once no number of pulls of any arm is expected to gain more than it costs."""
    count, second = section(tables.cost, COUNT), second_mean(state, tables)
    for arm in range(len(tables.cost)):
        difference = difference_of(state, tables, arm, second)
        if gain_rate(tables.stopping, arm, difference, state[count + arm]) > 1.0:
            return
    state[STOPPED] = 1


def describe(state: State, tables: AdaptiveTables, wording: Wording, risk: Risk | None) -> str:
    """Explain in one clause which arm gains the most."""
    count, second = section(tables.cost, COUNT), second_mean(state, tables)
    gains = [
        gain_rate(tables.stopping, arm, difference_of(state, tables, arm, second), state[count + arm])
        for arm in range(len(tables.cost))
    ]
    best = max(range(len(gains)), key=lambda arm: gains[arm])
    return f"more {wording.noun}s of {wording.arm(best)} would gain {gains[best]:.3g} times what they cost"


def numbers(problem: AdaptiveProblem) -> GainNumbers:
    """Return the numbers of a problem."""
    assert problem.risk is not None
    assert problem.sigma is not None
    return GainNumbers(problem.sigma, np.array(problem.risk.costs(problem.arms)), best_shares(), series_of(True))


SAMPLING = SamplingPart(choose, numbers, needs=("risk", "sigma"))
STOPPING = StoppingPart(decide, numbers, describe, needs=("risk", "sigma"))


class KGStar(ValueRule):
    """KG* for K arms: Frazier and Powell (2010), *Paradoxes in Learning*, with the stop of Chick and Frazier (2012).

    With a flat prior and a known sigma, m more pulls of arm k are expected to gain g_k(m) = w Psi(d_k/w), where d_k is
    how far its mean is from the best other one, and w = sigma sqrt(m/(n_k (n_k + m))). Pull the arm with the largest
    g_k(m)/(m c_k) over k and m = 1, 2, ...; stop when it is no more than 1. Looking m pulls ahead avoids the early stop
    of the plain knowledge gradient, where one pull gains nothing but many would.

    Parameters
    ----------
    risk : Risk
        What a pull costs; the loss must be simple regret. Costs may differ by arm.
    arms : int
        Number of arms.
    sigma : float
        Standard deviation of the rewards.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare import Risk
    >>> from dbcare.policies import KGStar
    >>> run = KGStar(Risk.simple_regret(0.001), arms=3, sigma=0.5).start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.4, 0.1][arm])
    >>> run.recommendation(), run.pulls
    (0, 8)
    """

    label = "KG*"
    kind = PolicyKind.COST_AWARE
    look = Look((ORANGE,), "*")
    sampling_part = SAMPLING
    stopping_part = STOPPING
