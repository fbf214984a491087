"""The strictest benchmark for two arms: the sequential probability ratio test of an oracle that knows the gap."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare.base import checks
from dbcare.policies.elimination.elimination import EliminationPolicy, EliminationTables, check_length
from dbcare.problem.risk import Risk, check_risk

TAIL = 30.0  # the cap cuts off runs with a probability of about e^-30


@dataclass(frozen=True)
class KnownGapSPRT(EliminationPolicy):
    """Two arms whose gap is known, but not which one is better: stop once their sums differ by more than `threshold`.

    The log-likelihood ratio of the two hypotheses is gap * (S_1 - S_2) / sigma^2, so this is Wald's test with equal
    error probabilities. With the right threshold, which `engines.sprt` finds, it is optimal among all policies
    that pull both arms equally often (Wald and Wolfowitz 1948). An infinite threshold means guessing without a pull.
    A benchmark, not a method: in practice the gap is unknown.

    Parameters
    ----------
    risk : Risk
        What a pull costs, the same for both arms, and what a wrong choice loses.
    gap : float
        The difference of the two means.
    threshold : float
        The difference of the sums beyond which the test stops.
    sigma : float
        Standard deviation of the rewards.

    Examples
    --------
    >>> from dbcare import Risk
    >>> from dbcare.policies import KnownGapSPRT
    >>> KnownGapSPRT(Risk.misidentification(0.01), gap=1.0, threshold=2.0).arms
    2
    """

    risk: Risk
    gap: float
    threshold: float
    sigma: float = 1.0
    arms = 2
    knows_gap = True

    def __post_init__(self) -> None:
        check_risk(self.risk)
        guess = isinstance(self.threshold, float) and self.threshold == math.inf
        checks.set_fields(
            self,
            gap=checks.positive("gap", self.gap),
            sigma=checks.known_sigma(self.sigma),
            threshold=math.inf if guess else checks.non_negative("threshold", self.threshold),
        )
        self.risk.costs(2)
        _ = self.risk.single_cost  # raises if costs differ
        check_length(self._horizon, "gap")

    @property
    def _horizon(self) -> float:
        """Epochs after which almost no run continues: Brownian motion leaves (-h, h) at this rate or faster."""
        if self.threshold == math.inf:
            return 0.0
        reach = self.threshold + math.sqrt(2.0) * self.sigma  # including the overshoot of one step
        rate = self.gap**2 / (4.0 * self.sigma**2) + (math.pi * self.sigma / (2.0 * reach)) ** 2
        return TAIL / rate

    @property
    def max_pulls(self) -> int:
        return 2 * math.ceil(self._horizon)

    @cached_property
    def tables(self) -> EliminationTables:
        epochs = self.max_pulls // 2
        return EliminationTables(
            boundary=np.full(epochs + 1, 0.0 if self.threshold == math.inf else self.threshold),
            row=np.zeros(3, dtype=np.int64),
            last_epoch=np.array([0, 0, epochs], dtype=np.int64),
            max_pulls=self.max_pulls,
        )
