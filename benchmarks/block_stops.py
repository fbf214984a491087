"""Studies by BreakevenRounds, run until they stop, whose true means are drawn anew; for `benchmarks/calibration.py`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from stops import Family

from dbcare import BreakevenRounds, Risk
from dbcare.engines.compile import kernel
from dbcare.engines.rng import begun, normal, normal_at
from dbcare.live.beliefs import ArmRewards
from dbcare.live.paired_beliefs import PairedBeliefs
from dbcare.live.settings import Settings
from dbcare.policies import pooled_rounds, timed_rounds
from dbcare.policies.breakeven_state import COUNT, MEAN, section

Floats = npt.NDArray[np.float64]
LONG_POOL = 4_000  # blocks, more than a study needs


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
def _compiled(pooled: bool) -> Any:
    rule = pooled_rounds.RULE if pooled else timed_rounds.RULE
    return kernel(block_loop(rule), "studies with blocks until they stop")


def run_blocks_to_stops(cell: BlockCell, studies: int, seed: int) -> Iterator[BlockStop]:
    """Run studies until they stop; both the truth and the rewards follow from the seed."""
    policy, tables = cell.policy, cell.policy.tables
    truth = cell.draw_means(np.random.default_rng([seed, 1]), studies)
    states, squares = np.empty((studies, policy.state_size)), np.zeros_like(truth)
    chosen = np.empty(studies, dtype=np.int64)
    deviations = np.sqrt([cell.correlation, 1.0 - cell.correlation])
    _compiled(cell.pooled)(seed, *deviations, truth, tables, np.empty(policy.state_size), states, squares, chosen)
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
