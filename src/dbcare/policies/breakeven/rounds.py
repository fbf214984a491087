"""BreakevenRounds: Breakeven for arms that answer the same questions, or share the same moments."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import MAX_BLOCKS
from dbcare.base.look import VIOLET, Look, PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.policies.breakeven import losses, pooled_rounds, timed_rounds
from dbcare.policies.breakeven.policy import MAX_NOT_BEFORE, UNLIMITED, BreakevenPolicy
from dbcare.policies.breakeven.rounds_state import DIFFERENCE, SHARED, RoundsTables, has_started, is_open, variance_of
from dbcare.policies.breakeven.state import DEVIATION, LEADER, PULLS, RIVAL, ROUND, section
from dbcare.policies.rule import BlockRule, State
from dbcare.policies.run import DEFAULT_WORDING, Comparisons, Wording
from dbcare.problem.risk import Loss, Risk, check_risk

PATIENCE = {Loss.SIMPLE_REGRET: 0.5, Loss.MISIDENTIFICATION: 1.0}
POOLED_WEIGHT = 4.0  # differences that the pooled variance counts as
FIRST_BLOCKS, FIRST_OF_FEW_BLOCKS = 6, 3
FEW_BLOCKS = 20  # in a pool, such as folds
MAX_ROUND_ARMS = 100  # without a pool, a state holds all pairs of arms
MAX_POOL_REWARDS = 1_000_000  # blocks times arms: a state holds them all


@dataclass(frozen=True)
class BreakevenRounds(BreakevenPolicy):
    """Our own policy for arms that share blocks: questions, folds of a data set, or moments.

    What makes a block good or bad for all arms cancels in differences within it. Two arms are compared only on the
    blocks that both answered. With leader L and n blocks shared with arm k, D is the sum of the differences
    x_L - x_k there, SS_k the sum of their squared deviations, and

        v = sum of SS_k / F,  F = sum of (n_k - 1)                            over all arms but L
        s_k^2 = max(v, (SS_k + 4 v)/(n - 1 + 4)),  se_k^2 = s_k^2/n
        l_k = P(T > t) for misidentification, se_k E[max(T - t, 0)] for simple regret,  t = max(0, D)/(n se_k)

    with a Student-t variable T of min(n - 1 + 4, F) degrees of freedom. If all SS_k are 0, as if one more difference
    had the size of a reward, v is the mean square of the rewards divided by F + 1. The leader moves to the arm that is
    ahead of it by the most standard errors, until none is ahead. After `first_blocks` of each arm, arm k is *open*
    while l_k > a S, with the spend S, and a = 1/2 for simple regret, 1 for misidentification. A run stops once no arm
    is open, or no open arm and the leader can share another block. An arm that is not open can come back.

    Without a pool, a block is a round: a moment at which the leader and all open arms are pulled, and decisions are
    made after complete rounds. With a pool of N blocks in one order for all arms, an arm takes its next block whenever
    it is pulled, and a decision is made after every reward: of the open arms that have answered fewer blocks than L,
    arm k scores l_k/(n_k c_k), and L scores the sum of l_k/n_k over the others, divided by c_L and the costs of those
    that are level with it. The arm with the best score is pulled. If `only_these_blocks` matter, 1/n is replaced by
    1/n - 1/N, and a is half as large: what is left to spend is limited, so stopping early saves less.

    A pull without a reward closes its block for that arm. An arm with fewer than `first_blocks` shared blocks stays
    open, unless three times as many of its pulls, or the leader's, gave no reward: then it is given up.

    If the first blocks of all arms cost as much as a guess can lose, (1 - 1/K) times 1 or `bound`, it guesses.

    Parameters
    ----------
    risk : Risk
        What a pull costs and what a wrong choice loses; costs may differ by arm.
    arms : int
        Number of arms; at most 100 without a pool.
    bound : float, optional
        The largest possible difference of two means, if there is one.
    pool : int, optional
        Number of blocks, such as questions. Default: rounds without end.
    only_these_blocks : bool
        Whether the decision is about the blocks of the pool alone, rather than about more like them.
    first_blocks : int, optional
        Blocks that every arm answers before arms are compared; at most the pool. Default: 6, or 3 in a pool of up to
        20 blocks, such as folds.
    not_before : int
        Pulls before which a run does not stop.

    Examples
    --------
    >>> from dbcare import BreakevenRounds, Risk
    >>> policy = BreakevenRounds(Risk.simple_regret(price=0.01, value=1_000), arms=3, pool=200)
    >>> policy.max_pulls
    600
    """

    label = "BreakevenRounds"
    kind = PolicyKind.OURS
    look = Look((VIOLET,), "^", hollow=True)

    risk: Risk
    arms: int
    bound: float | None = None
    pool: int | None = None
    only_these_blocks: bool = False
    first_blocks: int | None = None
    not_before: int = 0
    stop_rule = (
        "It compares arms only on blocks that they share, leaves an arm aside while choosing the leader is expected to "
        "lose less to it than a fixed share of what has been spent, and stops when all others are left aside."
    )

    def __post_init__(self) -> None:
        check_risk(self.risk)
        checks.set_fields(
            self,
            arms=checks.arms(self.arms),
            bound=None if self.bound is None else checks.positive("bound", self.bound),
            pool=None if self.pool is None else checks.whole("pool", self.pool, at_least=2, at_most=MAX_BLOCKS),
            only_these_blocks=checks.flag("only_these_blocks", self.only_these_blocks),
            first_blocks=None
            if self.first_blocks is None
            else checks.whole("first_blocks", self.first_blocks, at_least=2, at_most=MAX_BLOCKS),
            not_before=checks.whole("not_before", self.not_before, at_least=0, at_most=MAX_NOT_BEFORE),
        )
        self.risk.costs(self.arms)
        if self.pool is None:
            if self.arms > MAX_ROUND_ARMS:
                raise InvalidValueError(
                    f"`arms` must be at most {MAX_ROUND_ARMS} for rounds without a pool but got {self.arms}."
                )
            if self.only_these_blocks:
                raise InvalidValueError("`only_these_blocks` requires a `pool` of blocks.")
        elif self.pool * self.arms > MAX_POOL_REWARDS:
            raise InvalidValueError(
                f"`pool` times `arms` must be at most {MAX_POOL_REWARDS:,} but got {self.pool:,} times {self.arms}."
            )

    @property
    def rule(self) -> BlockRule:  # type: ignore[override]  # which of the two follows from the fields
        """The functions that decide."""
        return timed_rounds.RULE if self.pool is None else pooled_rounds.RULE

    @property
    def state_size(self) -> int:
        if self.pool is None:
            return timed_rounds.state_size(self.arms)
        return pooled_rounds.state_size(self.arms, self.pool)

    @property
    def learns_spread(self) -> bool:
        return True

    @property
    def loss_scale(self) -> float:
        return math.inf  # nothing is stated about the spread

    @property
    def blocks_before_stop(self) -> int:
        """Blocks that every arm answers first."""
        if self.pool is None:
            return self.first_blocks or FIRST_BLOCKS
        default = FIRST_OF_FEW_BLOCKS if self.pool <= FEW_BLOCKS else FIRST_BLOCKS
        return min(self.first_blocks or default, self.pool)

    @property
    def patience(self) -> float:
        """The share a of the spend at which the largest loss is small enough."""
        return PATIENCE[self.risk.loss] * (0.5 if self.only_these_blocks else 1.0)

    @property
    def guesses(self) -> bool:
        at_stake = 1.0 if self.risk.loss is Loss.MISIDENTIFICATION else self.bound
        if at_stake is None or self.not_before > 0:
            return False
        first = self.blocks_before_stop * sum(self.risk.costs(self.arms))
        return first >= (1.0 - 1.0 / self.arms) * at_stake

    @property
    def max_spend(self) -> float:
        """Upper bound on a run's spend, in units of the loss; infinite for simple regret without a bound or a pool.

        A run stops at the end of the round, or pull, with which the spend reaches the largest loss divided by a, or
        when the pool is used up.
        """
        if self.guesses:
            return 0.0
        costs = self.risk.costs(self.arms)
        everything = math.inf if self.pool is None else self.pool * sum(costs)
        first = self.blocks_before_stop * sum(costs)
        waiting = self.not_before * max(costs)
        last = sum(costs) if self.pool is None else max(costs)
        return min(everything, max(self.largest_loss / self.patience, first, waiting) + last)

    @cached_property
    def tables(self) -> RoundsTables:
        regret = self.risk.loss is Loss.SIMPLE_REGRET
        return RoundsTables(
            cost=np.array(self.risk.costs(self.arms)),
            first_blocks=self.blocks_before_stop,
            pool=self.pool or 0,
            share_seen=1.0 / self.pool if self.pool is not None and self.only_these_blocks else 0.0,
            patience=self.patience,
            weight=POOLED_WEIGHT,
            counts_errors=not regret,
            largest_loss=min(self.largest_loss, UNLIMITED),
            guess=self.guesses,
            not_before=self.not_before,
            series=losses.series_of(regret),
            ratios=losses.ratios_of(regret),
        )

    def upcoming(self, state: State) -> list[int] | None:
        """Return the rest of the round; None with a pool, whose rule is asked again after each pull."""
        return timed_rounds.upcoming(state, self.tables) if self.pool is None else None

    def knows_losses(self, state: State) -> bool:
        return has_started(state, self.tables) and bool(state[DEVIATION] > 0.0)

    def comparisons(self, state: State) -> Comparisons | None:
        if not self.knows_losses(state):
            return None
        leader, pooled = int(state[LEADER]), float(state[DEVIATION]) ** 2
        shared, difference = section(self.tables.cost, SHARED), section(self.tables.cost, DIFFERENCE)
        blocks = [int(state[shared + arm]) for arm in range(self.arms)]
        blocks[leader] = max(blocks)
        return Comparisons(
            leader,
            tuple(blocks),
            tuple(float(state[difference + arm]) / max(1, blocks[arm]) for arm in range(self.arms)),
            tuple(
                pooled if arm == leader else variance_of(state, self.tables, arm, pooled) for arm in range(self.arms)
            ),
            self.tables.share_seen,
        )

    def has_broken_even(self, state: State) -> bool:
        return not is_open(state, self.tables, int(state[RIVAL]))

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if not self.guesses:
            return super().why_stopped(state, wording) + self._used_up(state)
        first = self.risk.money(self.blocks_before_stop * sum(self.risk.costs(self.arms)), wording.currency)
        return (
            f"the first {self.blocks_before_stop} blocks of each arm would cost {first}, and a guess cannot lose more"
        )

    def _balance(self, state: State, wording: Wording) -> str:
        rival = int(state[RIVAL])
        blocks = int(state[section(self.tables.cost, SHARED) + rival])
        if has_started(state, self.tables) and blocks < self.blocks_before_stop:  # arms may have missed blocks
            return f"It shares only {blocks} blocks with {wording.arm(rival)}, too few to compare them"
        return super()._balance(state, wording)

    def _used_up(self, state: State) -> str:
        if self.pool is None or self.has_broken_even(state):
            return ""
        return f"; all {self.pool:,} blocks have been used"

    def progress(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if not has_started(state, self.tables):
            return f"block {int(state[ROUND]) + 1} of the first {self.blocks_before_stop}, which all arms answer"
        waits = f"; no stop before {self.not_before:,} {wording.noun}s" if state[PULLS] < self.not_before else ""
        return f"{wording.arm(int(state[LEADER]))} leads. {self._balance(state, wording)}{waits}"
