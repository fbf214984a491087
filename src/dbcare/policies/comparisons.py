"""What a rule that compares arms within blocks knows about them, for people to read."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Comparisons:
    """The leader against each arm on the blocks that both answered.

    If arms' rewards share only what is common to a block, differences with the leader, over n_j and n_k blocks, have
    the covariance (v/2)/max(n_j, n_k), where v is the variance of a difference. So they are as if the mean of each arm
    had an independent error: the leader's with the variance a_L = (v/2)/max n_k, arm k's with s_k^2/n_k - a_L.

    Parameters
    ----------
    leader : int
        The leading arm.
    blocks : tuple of int
        Blocks that each arm shares with the leader; for the leader, the most of them.
    leads : tuple of float
        By how much the leader is better there, on average; 0 for itself.
    variances : tuple of float
        Variance s_k^2 of a difference, as far as the rule believes it; for the leader, the pooled one, v.
    share_seen : float
        1/N where nothing but N blocks matters, else 0.
    """

    leader: int
    blocks: tuple[int, ...]
    leads: tuple[float, ...]
    variances: tuple[float, ...]
    share_seen: float

    def error_variances(self) -> list[float]:
        """Return the variance of the error of each arm's mean, apart from what all arms share; at least 0."""
        own = self._left(self.leader) * self.variances[self.leader] / 2.0
        return [
            own if arm == self.leader else max(0.0, variance * self._left(arm) - own)
            for arm, variance in enumerate(self.variances)
        ]

    def _left(self, arm: int) -> float:
        """Return 1/n, or 1/n - 1/N: the error of a mean, per variance of a block."""
        return math.inf if self.blocks[arm] == 0 else max(0.0, 1.0 / self.blocks[arm] - self.share_seen)
