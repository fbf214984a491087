"""The guarded rule that stored studies keep: decisions against a second implementation, and its guarantees."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.special import ndtr, stdtr  # far quicker than scipy.stats for single numbers
from scipy.stats import t

from dbcare import Loss, Risk
from dbcare.errors import InvalidValueError
from dbcare.policies.breakeven_guarded import BreakevenGuarded


@dataclass
class Reference:
    """A second implementation of the guarded rule, with lists and scipy.

    `samples`: degrees of freedom and pooled deviation at the last update of each arm's loss.
    """

    policy: BreakevenGuarded
    rewards: list[list[float]] = field(default_factory=list)
    samples: list[tuple[int, float]] = field(default_factory=list)
    leader: int = -1
    doubted: bool = False

    def __post_init__(self) -> None:
        self.rewards = [[] for _ in range(self.policy.arms)]
        self.samples = [(0, 0.0)] * self.policy.arms
        self.costs = self.policy.risk.costs(self.policy.arms)
        self.doubted = self.policy.sigma is None

    @property
    def spent(self) -> float:
        return math.fsum(cost * len(own) for cost, own in zip(self.costs, self.rewards, strict=True))

    def tell(self, arm: int, reward: float) -> None:
        self.rewards[arm].append(reward)
        if min(map(len, self.rewards)) > 0:
            leader = int(np.argmax([np.mean(own) for own in self.rewards]))
            scale_unknown = not any(deviation for _, deviation in self.samples)
            everything = self.leader == arm or leader != self.leader or scale_unknown
            self.weigh(range(self.policy.arms) if everything else [arm])
            self.leader = leader

    def weigh(self, arms: Iterable[int]) -> None:
        rewards = [reward for own in self.rewards for reward in own]
        within = sum(float(np.var(own)) * len(own) for own in self.rewards)
        choices = [(len(rewards) - 1, float(np.var(rewards)) * len(rewards)), (len(rewards) - self.policy.arms, within)]
        usable = [(freedom, squares) for freedom, squares in choices if freedom > 2 and squares > 0.0]
        freedom, squares = min(usable, key=lambda choice: choice[1] / (choice[0] - 2), default=(0, 0.0))
        for arm in arms:
            self.samples[arm] = (freedom, math.sqrt(squares / freedom)) if self.doubted and freedom else (0, 0.0)

    @property
    def losses(self) -> dict[int, float]:
        counts, means = [len(own) for own in self.rewards], [float(np.mean(own)) for own in self.rewards]
        losses = {}
        for arm, (freedom, deviation) in enumerate(self.samples):
            if arm == self.leader:
                continue
            gap, spread = means[self.leader] - means[arm], math.sqrt(1.0 / counts[arm] + 1.0 / counts[self.leader])
            loss = 0.0
            if self.policy.sigma is not None:
                z = gap / (self.policy.sigma * spread)
                tail, density = float(ndtr(-z)), math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
                loss = tail if self.is_error else self.policy.sigma * spread * (density - z * tail)
            elif deviation == 0.0:
                loss = math.inf
            if deviation > 0.0:
                x = gap / (deviation * spread)
                tail = float(stdtr(freedom, -x))
                if self.is_error:
                    loss = max(loss, tail)
                else:
                    excess = (freedom + x * x) / (freedom - 1.0) * t.pdf(x, freedom) - x * tail
                    loss = max(loss, deviation * spread * excess)
            losses[arm] = min(loss, 0.5 if self.is_error else self.policy.largest_loss)
        return losses

    @property
    def is_error(self) -> bool:
        return self.policy.risk.loss is Loss.MISIDENTIFICATION

    def ask(self) -> int | None:
        """Return the arm to pull, or None; means must not tie."""
        counts = [len(own) for own in self.rewards]
        if 0 in counts:
            return counts.index(0)
        if max(self.losses.values()) <= self.spent:
            self.doubted = True
            self.weigh(range(self.policy.arms))
            if max(self.losses.values()) <= self.spent and sum(counts) >= 4:
                return None
        losses, lead = self.losses, counts[self.leader]
        scores = {
            arm: loss * lead / (counts[arm] * (counts[arm] + lead) * self.costs[arm]) for arm, loss in losses.items()
        }
        removed = sum(loss * counts[arm] / (lead * (counts[arm] + lead)) for arm, loss in losses.items())
        scores[self.leader] = removed / self.costs[self.leader]
        return max(scores, key=scores.__getitem__)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("costs", [1e-3, (1e-3, 4e-3, 5e-4, 1e-3, 2e-3)])
@pytest.mark.parametrize("sigma", [1.0, 0.4, None])
def test_decisions_follow_the_formulas(loss: Loss, costs: float | tuple[float, ...], sigma: float | None) -> None:
    """Pull by pull, on Gaussian rewards, which do not tie; K = 5."""
    policy = BreakevenGuarded(Risk(loss, costs), 5, sigma, bound=3.0)
    for seed in range(3):
        generator = np.random.default_rng(seed)
        means = generator.uniform(0.0, 1.0, 5)
        run, second = policy.start(seed=seed), Reference(policy)
        while (arm := second.ask()) is not None:
            if sigma is None and not second.samples[0][1]:
                arm = run.ask()  # while the scale is unknown, all losses tie
                assert arm is not None
            assert run.ask() == arm
            reward = generator.normal(means[arm], 1.0)
            run.tell(reward)
            second.tell(arm, reward)
        assert run.ask() is None
        assert run.pulls == sum(map(len, second.rewards))


def test_the_guard_waits_for_four_rewards_and_uses_their_spread() -> None:
    """K = 2, sigma understated by 5: Gaussian losses vanish at once, but the rewards' deviation keeps the run going.

    Rewards 1, 3 and 0, 1 have a mean of 1.25, a sum of squared deviations of 4.75 and 3 degrees of freedom (within arms
    it is 2.5 with only 2): deviation 1.2583, t = 1.5/1.2583 = 1.192, tail 0.1595 > 0.004 spent.
    """
    rewards = [iter((1.0, 3.0)), iter((0.0, 1.0))]
    run = BreakevenGuarded(Risk.misidentification(0.001), 2, sigma=0.2).start(seed=1)
    for _ in range(4):
        arm = run.ask()
        assert arm is not None
        run.tell(next(rewards[arm]))
    assert t.sf(1.5 / math.sqrt(4.75 / 3.0), 3) == pytest.approx(0.1595, abs=1e-4)
    assert run.ask() is not None
    assert "expected to lose 0.159" in run.why()


def test_limits() -> None:
    """The largest loss is 10 sigma sqrt(2) E[max(T_3, 0)]; without sigma, simple regret needs a bound."""
    policy = BreakevenGuarded(Risk.simple_regret(1e-3), 2, 3.0)
    assert policy.largest_loss == pytest.approx(30.0 * math.sqrt(2.0) * math.sqrt(3.0) / math.pi, rel=1e-9)
    with pytest.raises(InvalidValueError, match="`bound` is required for simple regret if sigma is unknown"):
        BreakevenGuarded(Risk.simple_regret(1e-3), 2, None)
