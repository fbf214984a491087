"""The boundary of a stopping problem in continuous time, for many arms and for two in turn.

Sampling one unknown mean at a cost, against a known alternative, is a problem for Brownian motion. In units of
sigma^(2/3) c^(1/3), the boundary is a function b of s = sigma^(2/3)/(c^(2/3) n), the scaled posterior variance.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.base.look import RED, Look, PolicyKind
from dbcare.policies.breakeven.state import COUNT, LEADER, MADE, MEAN, STOPPED, section
from dbcare.policies.elimination.elimination import EliminationPolicy, EliminationTables, check_length
from dbcare.policies.literature.parts import (
    AdaptiveProblem,
    AdaptiveTables,
    SamplingPart,
    StoppingPart,
    ValueRule,
    check_regret,
    wins_tie,
)
from dbcare.policies.rule import State
from dbcare.policies.run import Wording
from dbcare.problem.risk import Risk


def boundary(s: float) -> float:
    """Return b(s), an approximation: Equation 16 of Chick and Frazier (2012), after Chernoff and Petkau (1986)."""
    if s <= 1.0:
        return 0.233 * s * s
    if s <= 3.0:
        return s * (-0.02326 + s * (0.3167 + s * (-0.06906 + s * 0.00537)))
    log = math.log(s)
    if s <= 40.0:
        return 0.705 * math.sqrt(s) * log
    return 0.642 * math.sqrt(s * math.pow(2.0 * log, 1.4) - math.log(32.0 * math.pi))


class BoundaryNumbers(NamedTuple):
    """By arm: the unit of differences, sigma^(2/3) c^(1/3), and s for one pull, sigma^(2/3)/c^(2/3)."""

    unit: npt.NDArray[np.float64]
    variance: npt.NDArray[np.float64]


def second_mean(state: State, tables: AdaptiveTables) -> float:
    """Return the largest mean of an arm other than the leader."""
    mean, leader = section(tables.cost, MEAN), int(state[LEADER])
    second = -math.inf
    for arm in range(len(tables.cost)):
        if arm != leader:
            second = max(second, state[mean + arm])
    return second


def depth(
    state: State, tables: AdaptiveTables, numbers: BoundaryNumbers, arm: int, pulls: float, second: float
) -> float:
    """Return how far inside the boundary the difference of an arm to the best other one is; negative outside."""
    mean, leader = section(tables.cost, MEAN), int(state[LEADER])
    difference = state[mean + leader] - (second if arm == leader else state[mean + arm])
    return float(numbers.unit[arm] * boundary(numbers.variance[arm] / pulls) - difference)


def choose(state: State, tables: AdaptiveTables) -> int:
    """Return the arm that is deepest inside its boundary."""
    made, second = section(tables.cost, MADE), second_mean(state, tables)
    chosen = -1
    deepest = 0.0
    for arm in range(len(tables.cost)):
        inside = depth(state, tables, tables.sampling, arm, state[made + arm], second)
        if chosen < 0 or inside > deepest or (inside == deepest and wins_tie(state, tables, arm, chosen)):
            chosen = arm
            deepest = inside
    return chosen


def decide(state: State, tables: AdaptiveTables) -> None:
    """Stop once no arm is inside its boundary."""
    count, second = section(tables.cost, COUNT), second_mean(state, tables)
    for arm in range(len(tables.cost)):
        if depth(state, tables, tables.stopping, arm, state[count + arm], second) > 0.0:
            return
    state[STOPPED] = 1


def describe(state: State, tables: AdaptiveTables, wording: Wording, risk: Risk | None) -> str:
    """Explain in one clause which arm is deepest inside its boundary."""
    count, second = section(tables.cost, COUNT), second_mean(state, tables)
    inside = [depth(state, tables, tables.stopping, arm, state[count + arm], second) for arm in range(len(tables.cost))]
    deepest = max(range(len(inside)), key=lambda arm: inside[arm])
    if inside[deepest] <= 0.0:
        return f"no arm is near enough to the best other one to be worth another {wording.noun}"
    return f"{wording.arm(deepest)} is {inside[deepest]:.4g} inside the boundary"


def numbers(problem: AdaptiveProblem) -> BoundaryNumbers:
    """Return the units of a problem."""
    assert problem.risk is not None
    assert problem.sigma is not None
    costs = np.array(problem.risk.costs(problem.arms))
    return BoundaryNumbers(np.cbrt(problem.sigma**2 * costs), np.cbrt((problem.sigma / costs) ** 2))


SAMPLING = SamplingPart(choose, numbers, needs=("risk", "sigma"))
STOPPING = StoppingPart(decide, numbers, describe, needs=("risk", "sigma"))


class ChickFrazier(ValueRule):
    """ESP_b for K arms: Chick and Frazier (2012), *Sequential Sampling with Economics of Selection Procedures*.

    It minimizes the same risk as ours. With a flat prior and a known sigma, go on while some arm's mean differs from
    the best other one by less than sigma^(2/3) c^(1/3) b(s_k), where s_k = sigma^(2/3)/(c^(2/3) n_k) and b is the
    boundary of the problem in continuous time for one arm, as if the other were known (Chick and Gans 2009). Pull the
    arm that is deepest inside its boundary. Without a guarantee: each arm is compared as if the other were known, so
    it stops too soon if few arms compete. For two, `TwoArmChickFrazier` is better.

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
    >>> from dbcare.policies import ChickFrazier
    >>> run = ChickFrazier(Risk.simple_regret(0.001), arms=3, sigma=0.5).start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.4, 0.1][arm])
    >>> run.recommendation(), run.pulls
    (0, 11)
    """

    label = "Chick-Frazier"
    kind = PolicyKind.COST_AWARE
    look = Look((RED,), "p")
    sampling_part = SAMPLING
    stopping_part = STOPPING


LEAST_VARIANCE = 0.05  # s at which the boundary is 0.003 standard deviations from 0: almost no run gets so far


@dataclass(frozen=True)
class TwoArmChickFrazier(EliminationPolicy):
    """Two arms, pulled in turn: the difference of a pair of rewards has an unknown mean, variance 2 sigma^2, cost 2c.

    Go on while the means differ by less than (4 sigma^2 c)^(1/3) b(s) after n pairs, where b is the boundary of
    `policies.literature.chick_frazier` and s = (2 sigma^2)^(1/3)/((2c)^(2/3) n): the optimal stop in continuous time
    for a flat prior and a known sigma (Chick and Gans 2009; Chick and Frazier 2012). Runs on all engines, so its risk
    is known exactly for two Gaussian arms.

    Parameters
    ----------
    risk : Risk
        What a pull costs, the same for both arms; the loss must be simple regret.
    sigma : float
        Standard deviation of the rewards.

    Examples
    --------
    >>> from dbcare import Risk, evaluate_grid
    >>> from dbcare.policies import TwoArmChickFrazier
    >>> risk = Risk.simple_regret(1e-4)
    >>> evaluate_grid(TwoArmChickFrazier(risk), [0.1, 0.5]).risk(risk).round(4)
    array([0.0368, 0.0063])
    """

    label = "Chick-Frazier, two arms in turn"
    kind = PolicyKind.COST_AWARE
    look = Look((RED,), "p", hollow=True)
    live = False

    risk: Risk
    sigma: float = 1.0
    arms = 2

    def __post_init__(self) -> None:
        check_regret(self, self.risk)
        checks.set_fields(self, sigma=checks.known_sigma(self.sigma))
        _ = self.risk.single_cost  # raises if costs differ
        check_length(self._first_variance / LEAST_VARIANCE, "cost")

    @property
    def _first_variance(self) -> float:
        """s after one pair."""
        return math.pow(2.0 * self.sigma**2, 1.0 / 3.0) / math.pow(2.0 * self.risk.single_cost, 2.0 / 3.0)

    @property
    def max_pulls(self) -> int:
        return 2 * max(1, math.ceil(self._first_variance / LEAST_VARIANCE))

    @cached_property
    def tables(self) -> EliminationTables:
        pairs = self.max_pulls // 2
        unit = math.pow(4.0 * self.sigma**2 * self.risk.single_cost, 1.0 / 3.0)
        heights = [0.0] + [n * unit * boundary(self._first_variance / n) for n in range(1, pairs + 1)]
        return EliminationTables(
            boundary=np.array(heights),
            row=np.zeros(3, dtype=np.int64),
            last_epoch=np.array([0, 0, pairs], dtype=np.int64),
            max_pulls=self.max_pulls,
        )
