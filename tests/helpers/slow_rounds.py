"""BreakevenRounds written a second time, slowly: everything is computed anew from the rewards after each of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from scipy import stats

from dbcare.policies.breakeven.rounds import BreakevenRounds
from dbcare.policies.rule import next_tie
from dbcare.problem.risk import Loss


@dataclass
class SlowRounds:
    """A run of a policy, which must not guess nor wait; `tie` breaks ties as in the policy's own run."""

    policy: BreakevenRounds
    tie: int
    answers: list[dict[int, float]] = field(default_factory=lambda: [{}])  # by block, then by arm
    spent: float = 0.0
    leader: int = -1
    members: list[int] = field(default_factory=list)  # of the round, those still to be pulled
    stopped: bool = False

    def __post_init__(self) -> None:
        drawn, self.priority = float(self.tie), []
        for _ in range(self.policy.arms):
            drawn = next_tie(drawn)
            self.priority.append(drawn)
        self.members = list(range(self.policy.arms))
        self.costs = self.policy.risk.costs(self.policy.arms)
        self.first = self.policy.first_blocks or (3 if self.policy.pool and self.policy.pool <= 20 else 6)

    def positions(self) -> list[int]:
        """Return how many blocks each arm has answered."""
        return [sum(arm in block for block in self.answers) for arm in range(self.policy.arms)]

    def ask(self) -> int | None:
        """Return the arm to pull next; None once the run has stopped."""
        if self.stopped:
            return None
        if self.policy.pool is None:
            start = (len(self.answers) - 1) % self.policy.arms
            return min(self.members, key=lambda arm: (arm - start) % self.policy.arms)
        positions = self.positions()
        if min(positions) < self.first:
            return positions.index(min(positions))
        return self._best_score(positions)

    def _best_score(self, positions: Sequence[int]) -> int | None:
        losses, lead = self.losses(), positions[self.leader]
        limit = self._limit()
        open_arms = [arm for arm, loss in losses.items() if loss > limit]
        scores = {}
        for arm in open_arms:
            if positions[arm] < lead:
                scores[arm] = losses[arm] / (len(self.differences(arm)) * self.costs[arm])
        others = [arm for arm in open_arms if positions[arm] >= lead]
        if others and lead < (self.policy.pool or 0):
            level = [arm for arm in others if positions[arm] == lead]
            gain = sum(losses[arm] / len(self.differences(arm)) for arm in others)
            scores[self.leader] = gain / (self.costs[self.leader] + sum(self.costs[arm] for arm in level))
        return max(scores, key=lambda arm: (scores[arm], self.priority[arm])) if scores else None

    def tell(self, arm: int, reward: float) -> None:
        """Count a reward of the arm asked for."""
        position = self.positions()[arm] if self.policy.pool is not None else len(self.answers) - 1
        while len(self.answers) <= position:
            self.answers.append({})
        self.answers[position][arm] = reward
        self.spent += self.costs[arm]
        if self.policy.pool is None:
            self.members.remove(arm)
            if self.members:
                return
            self.answers.append({})
            self.members = list(range(self.policy.arms))
            if len(self.answers) - 1 < self.first:
                return
        elif min(self.positions()) < self.first:
            return
        self._decide()

    def _decide(self) -> None:
        if self.leader < 0:
            rewards = [[block[arm] for block in self.answers if arm in block] for arm in range(self.policy.arms)]
            means = [math.fsum(own) / len(own) for own in rewards]
            self.leader = max(range(self.policy.arms), key=lambda arm: (means[arm], self.priority[arm]))
        for _ in range(2 * self.policy.arms):
            ahead = {}
            for arm in self._rivals():
                shared = self.differences(arm)
                if math.fsum(shared) < 0.0:
                    ahead[arm] = -math.fsum(shared) / math.sqrt(len(shared))
            if not ahead:
                break
            self.leader = max(ahead, key=lambda arm: ahead[arm])
        losses = self.losses()
        self.members = [self.leader] + [arm for arm in losses if losses[arm] > self._limit()]
        self.stopped = len(self.members) == 1
        if self.policy.pool is not None and not self.stopped:
            self.stopped = self._best_score(self.positions()) is None

    def _rivals(self) -> list[int]:
        return [arm for arm in range(self.policy.arms) if arm != self.leader]

    def _limit(self) -> float:
        share = 0.5 if self.policy.risk.loss is Loss.SIMPLE_REGRET else 1.0
        return self.spent * share / (2.0 if self.policy.only_these_blocks else 1.0)

    def differences(self, arm: int) -> list[float]:
        """Return by how much the leader is better on each block that it shares with an arm."""
        return [block[self.leader] - block[arm] for block in self.answers if arm in block and self.leader in block]

    def losses(self) -> dict[int, float]:
        """Return what choosing the leader is expected to lose to each other arm."""
        shared = {arm: self.differences(arm) for arm in self._rivals()}
        squares = {arm: math.fsum((one - math.fsum(own) / len(own)) ** 2 for one in own) for arm, own in shared.items()}
        freedom = sum(len(own) - 1 for own in shared.values())
        pooled = math.fsum(squares.values()) / freedom
        if pooled == 0.0:
            rewards = [reward for block in self.answers for reward in block.values()]
            pooled = math.fsum(reward * reward for reward in rewards) / len(rewards) / (freedom + 1)
        largest = 0.5 if self.policy.risk.loss is Loss.MISIDENTIFICATION else (self.policy.bound or math.inf)
        losses = {}
        for arm, own in shared.items():
            blocks = len(own)
            if blocks < self.first or pooled == 0.0:
                losses[arm] = largest
                continue
            variance = max(pooled, (squares[arm] + 4.0 * pooled) / (blocks + 3.0))
            seen = 1.0 / self.policy.pool if self.policy.pool and self.policy.only_these_blocks else 0.0
            error = math.sqrt(variance * max(0.0, 1.0 / blocks - seen))
            if error == 0.0:
                losses[arm] = 0.0
                continue
            nu = max(3, int(min(blocks + 3.0, freedom)))
            law = stats.t(nu)
            t = max(0.0, math.fsum(own)) / (blocks * error)
            if self.policy.risk.loss is Loss.MISIDENTIFICATION:
                losses[arm] = float(law.sf(t))
            else:
                losses[arm] = float(error * ((nu + t * t) / (nu - 1.0) * law.pdf(t) - t * law.sf(t)))
            losses[arm] = min(losses[arm], largest)
        return losses

    def recommendation(self) -> int:
        """Return the arm to choose."""
        return self.leader
