"""What rewards say about arms that share blocks: differences within a block leave out what the block is to all arms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dbcare.live.beliefs import ArmRewards, Beliefs
from dbcare.live.recommendation import Interval
from dbcare.live.settings import Settings
from dbcare.policies.run import Comparisons
from dbcare.posterior.model import NORMAL_MARGIN


class PairedBeliefs(Beliefs):
    """Beliefs from comparisons with the leader on shared blocks, at the level of the leader's own mean.

    An arm's mean is that of the leader less the leader's lead over the arm, and its error is that of the comparison
    (`policies.run`). Intervals of the means themselves also allow for what all arms share: the leader's mean
    would differ on other blocks.
    """

    def __init__(
        self, settings: Settings, active: Sequence[int], rewards: Iterable[ArmRewards], comparisons: Comparisons
    ) -> None:
        super().__init__(settings, active, rewards)
        self._plain = Beliefs(settings, active, self.rewards.values())
        self._comparisons = comparisons
        leader = self.rewards[self.active[comparisons.leader]]
        errors = comparisons.error_variances()
        self._variances = {
            arm: error * blocks if blocks else 0.0
            for arm, error, blocks in zip(self.active, errors, comparisons.blocks, strict=True)
        }
        self.rewards = {
            arm: ArmRewards(
                blocks, leader.mean - settings.sign * lead, self._variances[arm] * (blocks - 1) if blocks else 0.0
            )
            for arm, blocks, lead in zip(self.active, comparisons.blocks, comparisons.leads, strict=True)
        }

    def variance_of(self, arm: int) -> float:
        return self._variances[arm]

    def interval(self, arm: int) -> Interval | None:
        within, estimate = super().interval(arm), self.estimate(arm)
        if within is None or estimate is None:
            return None
        shared = NORMAL_MARGIN * self._level_error
        low, high = (math.hypot(end - estimate, shared) for end in within)
        return self._clip(estimate - low), self._clip(estimate + high)

    @property
    def _level_error(self) -> float:
        """The standard error of what all arms' means have in common."""
        compared = self._comparisons
        leader = self.active[compared.leader]
        own = self._plain.rewards[leader]
        common = max(0.0, self._plain.variance_of(leader) - compared.variances[compared.leader] / 2.0)
        return math.sqrt(common * max(0.0, 1.0 / own.trials - compared.share_seen))

    @property
    def _bounded(self) -> None:
        """Leads within blocks are approximate; those that follow from the means would be far wider."""
        return None

    def anytime_interval(self, arm: int) -> Interval | None:
        return None if self.posterior is None else self._plain.anytime_interval(arm)
