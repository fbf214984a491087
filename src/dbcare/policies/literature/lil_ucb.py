"""lil'UCB: pull the arm with the highest bound by the law of the iterated logarithm, stop by the counts of pulls."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from dbcare.base.look import RED, Look, PolicyKind
from dbcare.policies.breakeven.state import COUNT, MADE, MEAN, PULLS, STOPPED, is_ahead, section
from dbcare.policies.elimination.racing import DEFAULT_MAX_PULLS
from dbcare.policies.literature.parts import (
    DEFAULT_DELTA,
    HEURISTIC,
    OWN_SECTION,
    PROVEN,
    AdaptivePolicy,
    AdaptiveProblem,
    AdaptiveTables,
    SamplingPart,
    StoppingPart,
    compose,
    wins_tie,
)
from dbcare.policies.rule import Rule, State
from dbcare.policies.run import Wording
from dbcare.problem.risk import Risk

RADIUS, KNOWN = OWN_SECTION, OWN_SECTION + 1  # of the bound by arm, and the number of pulls that it was computed for


class LilNumbers(NamedTuple):
    """The bound sqrt(scale ln(max(ln(growth n), least)/level)/n), and the factor of the stop."""

    scale: float  # ((1 + b)(1 + sqrt(e)))^2 2 sigma^2 (1 + e)
    growth: float  # 1 + e
    least: float  # the heuristic has e = 0, for which the iterated logarithm does not exist until n = 3
    level: float
    factor: float  # lambda


def radius(lil: LilNumbers, pulls: float) -> float:
    """Return by how much the bound of an arm with so many pulls exceeds its mean."""
    log = max(math.log(lil.growth * pulls), lil.least)
    return math.sqrt(lil.scale * math.log(log / lil.level) / pulls)


def prepare(state: State, tables: AdaptiveTables) -> None:
    """Compute the radii of arms that were pulled, as logarithms of all arms would take most of a pull's time."""
    made, known = section(tables.cost, MADE), section(tables.cost, KNOWN)
    for arm in range(len(tables.cost)):
        if state[known + arm] != state[made + arm]:
            state[known + arm] = state[made + arm]
            state[section(tables.cost, RADIUS) + arm] = radius(tables.sampling, state[made + arm])


def choose(state: State, tables: AdaptiveTables) -> int:
    """Return the arm with the highest upper bound."""
    made, mean, known = section(tables.cost, MADE), section(tables.cost, MEAN), section(tables.cost, KNOWN)
    chosen = -1
    highest = 0.0
    for arm in range(len(tables.cost)):
        pulls = state[made + arm]
        is_known = state[known + arm] == pulls  # not while rewards are pending
        width = state[section(tables.cost, RADIUS) + arm] if is_known else radius(tables.sampling, pulls)
        upper = state[mean + arm] + width
        if chosen < 0 or upper > highest or (upper == highest and wins_tie(state, tables, arm, chosen)):
            chosen = arm
            highest = upper
    return chosen


def recommend(state: State, tables: AdaptiveTables) -> int:
    """Return the arm with the most pulls; among several, the one with the largest mean."""
    count = section(tables.cost, COUNT)
    best = 0
    for arm in range(1, len(tables.cost)):
        more = state[count + arm] - state[count + best]
        if more > 0 or (more == 0 and is_ahead(state, tables.cost, arm, best)):
            best = arm
    return best


def decide(state: State, tables: AdaptiveTables) -> None:
    """Stop once an arm has 1 more than lambda times as many pulls as all others together."""
    most = state[section(tables.cost, COUNT) + recommend(state, tables)]
    if most >= 1.0 + tables.stopping.factor * (state[PULLS] - most):
        state[STOPPED] = 1


def describe(state: State, tables: AdaptiveTables, wording: Wording, risk: Risk | None) -> str:
    """Explain in one clause how the pulls are shared."""
    arm = recommend(state, tables)
    most = int(state[section(tables.cost, COUNT) + arm])
    needed = math.ceil(1.0 + tables.stopping.factor * (state[PULLS] - most))
    return f"{wording.arm(arm)} has {wording.count(most)} of {int(state[PULLS])}, and {needed} would be enough"


def numbers(problem: AdaptiveProblem) -> LilNumbers:
    """Return the numbers of Theorem 2, or those of the heuristic."""
    assert problem.delta is not None
    assert problem.sigma is not None
    if problem.rate == HEURISTIC:
        excess, boost, factor, level, least = 0.0, 0.5, 1.0 + 10.0 / problem.arms, problem.delta / 5.0, 1.0
    else:
        excess, boost, least = 0.01, 1.0, 0.0
        factor = ((2.0 + boost) / boost) ** 2
        constant = (2.0 + excess) / excess * (1.0 / math.log(1.0 + excess)) ** (1.0 + excess)
        root = problem.delta / (math.sqrt(1.0 + problem.delta) + 1.0)  # sqrt(1 + delta) - 1, without cancellation
        level = root**2 / (4.0 * constant)
    scale = ((1.0 + boost) * (1.0 + math.sqrt(excess))) ** 2 * 2.0 * problem.sigma**2 * (1.0 + excess)
    return LilNumbers(scale, 1.0 + excess, least, level, factor)


SAMPLING = SamplingPart(choose, numbers, needs=("sigma", "delta"), prepare=prepare, sections=2)
STOPPING = StoppingPart(
    decide,
    numbers,
    describe,
    needs=("sigma", "delta"),
    only_with=SAMPLING,
    why="it counts pulls, which say something about the means only where the highest bound was always pulled",
)


@dataclass(frozen=True)
class LilUCB(AdaptivePolicy):
    """lil'UCB for K arms: Jamieson, Malloy, Nowak and Bubeck (2014), *An Optimal Exploration Algorithm*.

    Pull the arm with the highest m_k + (1 + b)(1 + sqrt(e)) sqrt(2 sigma^2 (1 + e) ln(ln((1 + e) n_k)/d)/n_k). Stop
    once an arm has at least 1 more than l times as many pulls as all others together, and recommend it. Rates:
    "proven"     e = 0.01, b = 1, l = ((2 + b)/b)^2 = 9, and d so that 4 sqrt(c d) + 4 c d = delta for
                 c = (2 + e)/e ln(1 + e)^-(1 + e); the error is at most `delta` (their Theorem 2)
    "heuristic"  e = 0, b = 1/2, l = 1 + 10/K, d = delta/5, without proof; ln n_k counts as at least 1

    Parameters
    ----------
    arms : int
        Number of arms.
    delta : float
        The error that is allowed.
    sigma : float
        Sub-Gaussian parameter of the rewards.
    rate : {"proven", "heuristic"}
        The rate, as above.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare.policies import LilUCB
    >>> run = LilUCB(arms=3, sigma=0.5, rate="heuristic").start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.4, 0.1][arm])
    >>> run.recommendation(), run.pulls
    (0, 76)
    """

    label = "lil'UCB"
    kind = PolicyKind.FIXED_CONFIDENCE
    look = Look((RED,), "<", hollow=True)

    arms: int
    delta: float = DEFAULT_DELTA
    sigma: float = 1.0
    rate: str = PROVEN
    max_pulls: int = DEFAULT_MAX_PULLS
    risk = None
    sampling_part = SAMPLING
    stopping_part = STOPPING

    @property
    def rule(self) -> Rule:  # type: ignore[override]  # the parts decide
        """The rule of the two parts, which recommends the arm with the most pulls."""
        return compose(SAMPLING, STOPPING, recommend)
