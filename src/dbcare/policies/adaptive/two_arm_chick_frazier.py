"""Chick and Frazier for two arms that are pulled in turn: the difference is the one unknown mean."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare.base import checks
from dbcare.base.look import RED, Look, PolicyKind
from dbcare.policies.adaptive.chick_frazier import boundary
from dbcare.policies.adaptive.policy import check_regret
from dbcare.policies.elimination import EliminationPolicy, EliminationTables, check_length
from dbcare.problem.risk import Risk

LEAST_VARIANCE = 0.05  # s at which the boundary is 0.003 standard deviations from 0: almost no run gets so far


@dataclass(frozen=True)
class TwoArmChickFrazier(EliminationPolicy):
    """Two arms, pulled in turn: the difference of a pair of rewards has an unknown mean, variance 2 sigma^2, cost 2c.

    Go on while the means differ by less than (4 sigma^2 c)^(1/3) b(s) after n pairs, where b is the boundary of
    `policies.adaptive.chick_frazier` and s = (2 sigma^2)^(1/3)/((2c)^(2/3) n): the optimal stop in continuous time for
    a flat prior and a known sigma (Chick and Gans 2009; Chick and Frazier 2012). Runs on all engines, so its risk is
    known exactly for two Gaussian arms.

    Parameters
    ----------
    risk : Risk
        What a pull costs, the same for both arms; the loss must be simple regret.
    sigma : float
        Standard deviation of the rewards.

    Examples
    --------
    >>> from dbcare import Risk, TwoArmChickFrazier, evaluate_grid
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
