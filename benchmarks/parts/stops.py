"""Studies by Breakeven and BreakevenRounds that run until they stop; the true means are drawn for each study.

No engine of dbcare returns what is known of each arm at the stop. So this has loops of its own, with the library's
rules and random numbers.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dbcare import Breakeven, BreakevenRounds, Risk
from dbcare.engines.kernels.compile import kernel
from dbcare.engines.simulate.rng import begun, normal, normal_at, uniform
from dbcare.policies.breakeven import pooled_rounds, rule, timed_rounds
from dbcare.policies.breakeven.state import COUNT, MEAN, SQUARES, section
from dbcare.studies.results.beliefs import ArmRewards, PairedBeliefs
from dbcare.studies.settings import Settings

Floats = npt.NDArray[np.float64]
LEAST_RATE, MOST_RATE = 0.002, 0.98
LONG_POOL = 4_000  # blocks, more than a study needs


class Family(IntEnum):
    """What rewards look like."""

    GAUSSIAN = 0  # with a standard deviation of 1
    EVEN_RATE = 1  # 0 or 1, around 50%
    LOW_RATE = 2  # 0 or 1, around 4%
    REVENUE = 3  # an order by 4%, of log-normal size


RATES = {Family.EVEN_RATE: 0.5, Family.LOW_RATE: 0.04, Family.REVENUE: 0.04}


@dataclass(frozen=True)
class StopCell:
    """Studies of one kind: u is the spread of the means over (sigma^2 c)^(1/3), so that below 1 little can be found.

    Means are drawn from a normal law around the family's usual mean or, if `sparse`, all but one are equal, and that
    one is higher by the spread.
    """

    arms: int
    u: float
    family: Family
    cost: float
    sparse: bool = False
    order_deviation: float = 1.0  # of the logarithm of the size of an order

    @property
    def order_mean(self) -> float:
        """The mean size of an order."""
        return math.exp(0.5 * self.order_deviation**2)

    @property
    def base(self) -> float:
        """The family's usual mean."""
        unit = self.order_mean if self.family is Family.REVENUE else 1.0
        return RATES.get(self.family, 0.0) * unit

    @property
    def deviation(self) -> float:
        """The family's usual standard deviation."""
        if self.family is Family.GAUSSIAN:
            return 1.0
        square = math.exp(2.0 * self.order_deviation**2) if self.family is Family.REVENUE else 1.0
        return math.sqrt(RATES[self.family] * square - self.base**2)

    @property
    def name(self) -> str:
        """A short description."""
        means = "one better" if self.sparse else "normal means"
        family = self.family.name.lower().replace("_", " ")
        orders = "" if self.order_deviation == 1.0 else f", orders' log deviation {self.order_deviation:g}"
        return f"{family}{orders}, K = {self.arms}, u = {self.u:g}, c = {self.cost:g}, {means}"

    @property
    def policy(self) -> Breakeven:
        """The rule, with the family's usual standard deviation as a guess."""
        risk, sigma = Risk.simple_regret(self.cost), self.deviation
        is_rate = self.family in (Family.EVEN_RATE, Family.LOW_RATE)
        return Breakeven(risk, self.arms, sigma, bound=1.0 if is_rate else None, largest_sigma=0.5 if is_rate else None)

    def draw_means(self, generator: np.random.Generator, studies: int) -> Floats:
        """Draw the true means of each study."""
        sigma, base = self.deviation, self.base
        spread = self.u * (sigma * sigma * self.cost) ** (1.0 / 3.0)
        if self.sparse:
            means = np.zeros((studies, self.arms))
            means[np.arange(studies), generator.integers(self.arms, size=studies)] = spread
        else:
            means = spread * generator.standard_normal((studies, self.arms))
        means += base
        if self.family is Family.GAUSSIAN:
            return means
        unit = self.order_mean if self.family is Family.REVENUE else 1.0
        return np.clip(means, LEAST_RATE * unit, MOST_RATE * unit)


@dataclass(frozen=True)
class Stops:
    """What is known of each arm when each study stops, by study and arm; `repeated` counts its most common reward."""

    truth: Floats
    counts: Floats
    means: Floats
    squares: Floats
    repeated: Floats
    chosen: npt.NDArray[np.int64]


def stop_loop(rule: Any) -> Callable[..., None]:
    """Return the loop that runs studies until they stop."""
    init, ask, tell, recommend = rule.init, rule.ask, rule.tell, rule.recommend

    def run_to_stops(seed, family, order_mean, deviation, truth, tables, state, states, zeros, ones, chosen):
        for study in range(len(truth)):
            tie, s0, s1, s2, s3 = begun(seed, study)
            init(state, tables, tie)
            arm = ask(state, tables)
            while arm >= 0:
                if family == 0:
                    drawn, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
                    reward = truth[study, arm] + drawn
                else:
                    drawn, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
                    reward = 0.0
                    if family == 3 and drawn * order_mean < truth[study, arm]:
                        drawn, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
                        reward = math.exp(deviation * drawn)
                    elif family < 3 and drawn < truth[study, arm]:
                        reward = 1.0
                zeros[study, arm] += reward == 0.0
                ones[study, arm] += reward == 1.0
                tell(state, tables, arm, reward)
                arm = ask(state, tables)
            for place in range(len(state)):
                states[study, place] = state[place]
            chosen[study] = recommend(state, tables)

    return run_to_stops


@cache
def _compiled() -> Any:
    return kernel(stop_loop(rule.RULE), "studies until they stop")


def run_to_stops(cell: StopCell, studies: int, seed: int) -> Stops:
    """Run studies until they stop; both the truth and the rewards follow from the seed."""
    policy = cell.policy
    truth = cell.draw_means(np.random.default_rng([seed, 1]), studies)
    states = np.empty((studies, policy.state_size))
    zeros, ones = np.zeros_like(truth), np.zeros_like(truth)
    chosen = np.empty(studies, dtype=np.int64)
    state = np.empty(policy.state_size)
    tables = policy.tables
    order = cell.order_mean, cell.order_deviation
    _compiled()(seed, int(cell.family), *order, truth, tables, state, states, zeros, ones, chosen)

    def take(which: int) -> Floats:
        first = section(tables.cost, which)
        return states[:, first : first + cell.arms]

    repeated = np.maximum(np.maximum(zeros, ones), np.minimum(take(COUNT), 1.0))
    return Stops(truth, take(COUNT), take(MEAN), take(SQUARES), repeated, chosen)


@dataclass(frozen=True)
class BlockCell:
    """Studies with Gaussian rewards of variance 1, correlated within blocks.

    u is the spread of the means over (s^2 c)^(1/3), with the variance s^2 that rewards do not share.
    """

    arms: int
    u: float
    correlation: float
    cost: float
    pooled: bool = False
    family = Family.GAUSSIAN

    @property
    def name(self) -> str:
        """A short description."""
        mode = "pool" if self.pooled else "rounds"
        return f"{mode}, correlation {self.correlation:g}, K = {self.arms}, u = {self.u:g}, c = {self.cost:g}"

    @property
    def policy(self) -> BreakevenRounds:
        """The rule, which knows nothing about the spread."""
        return BreakevenRounds(Risk.simple_regret(self.cost), self.arms, pool=LONG_POOL if self.pooled else None)

    def draw_means(self, generator: np.random.Generator, studies: int) -> Floats:
        """Draw the true means of each study."""
        spread = self.u * ((1.0 - self.correlation) * self.cost) ** (1.0 / 3.0)
        return spread * generator.standard_normal((studies, self.arms))


@dataclass(frozen=True)
class BlockStop:
    """One study at its stop: the truth, the arm that it chose and that arm's rewards, and what it believes."""

    truth: Floats
    chosen: int
    trials: int
    beliefs: PairedBeliefs


def block_loop(rule: Any) -> Callable[..., None]:
    """Return the loop that runs studies until they stop; it keeps the squares of rewards, which no state does."""
    init, ask, tell, recommend, block = rule.init, rule.ask, rule.tell, rule.recommend, rule.block

    def run_blocks_to_stops(seed, shared, own, truth, tables, state, states, squares, chosen):
        for study in range(len(truth)):
            tie, s0, s1, s2, s3 = begun(seed, study)
            init(state, tables, tie)
            key = float(seed * 1_000_003 + study)
            arm = ask(state, tables)
            while arm >= 0:
                drawn, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
                reward = truth[study, arm] + own * drawn + shared * normal_at(key, block(state, tables, arm))
                squares[study, arm] += reward * reward
                tell(state, tables, arm, reward)
                arm = ask(state, tables)
            for place in range(len(state)):
                states[study, place] = state[place]
            chosen[study] = recommend(state, tables)

    return run_blocks_to_stops


@cache
def _compiled_blocks(pooled: bool) -> Any:
    rule = pooled_rounds.RULE if pooled else timed_rounds.RULE
    return kernel(block_loop(rule), "studies with blocks until they stop")


def run_blocks_to_stops(cell: BlockCell, studies: int, seed: int) -> Iterator[BlockStop]:
    """Run studies until they stop; both the truth and the rewards follow from the seed."""
    policy, tables = cell.policy, cell.policy.tables
    truth = cell.draw_means(np.random.default_rng([seed, 1]), studies)
    states, squares = np.empty((studies, policy.state_size)), np.zeros_like(truth)
    chosen = np.empty(studies, dtype=np.int64)
    deviations = np.sqrt([cell.correlation, 1.0 - cell.correlation])
    state = np.empty(policy.state_size)
    _compiled_blocks(cell.pooled)(seed, *deviations, truth, tables, state, states, squares, chosen)
    settings = Settings(tuple(f"arm {number}" for number in range(cell.arms)), cell.cost, policy="breakeven-rounds")
    for study in range(studies):
        counts, means = (states[study, section(tables.cost, which) :][: cell.arms] for which in (COUNT, MEAN))
        compared = policy.comparisons(states[study])
        assert compared is not None
        rewards = [
            ArmRewards(int(count), float(mean), float(total - count * mean * mean))
            for count, mean, total in zip(counts, means, squares[study], strict=True)
        ]
        arm = int(chosen[study])
        beliefs = PairedBeliefs(settings, range(cell.arms), rewards, compared)
        yield BlockStop(truth[study], arm, int(counts[arm]), beliefs)
