"""BreakevenRacing: elimination that drops an arm once its expected loss is no more than its share of the spend."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.base.look import VIOLET, Look, PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.policies.elimination.elimination import EliminationPolicy, EliminationTables
from dbcare.policies.rule import State
from dbcare.problem.risk import Loss, Risk, check_risk
from dbcare.theory import budgets, normal

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_ARMS = 10_000  # so that the tables have room for a few epochs
# Numbers in the tables that take about 3 seconds to compute: 0.3 us each for misidentification, 1 for simple regret.
MAX_TABLE_SIZES = {Loss.MISIDENTIFICATION: 10_000_000, Loss.SIMPLE_REGRET: 3_000_000}


@dataclass(frozen=True)
class BreakevenRacing(EliminationPolicy):
    """Elimination at the break-even point of loss and spend; our own rule, not the paper's.

    Like DBCARE, it pulls every survivor once per epoch. With k survivors at epoch n, dropping an arm whose mean is
    z standard errors sigma sqrt(2/n) below the best is expected to lose Q(z) for misidentification and
    sigma sqrt(2/n) Psi(z) for simple regret, under a flat prior (`theory.normal`). An arm is dropped when that is below
    its share of the spend, s = c n k/(k-1): the radius is e_{n,k} = sigma sqrt(2/n) z, where loss(z) = s. At the first
    epoch without a positive solution only the leader stays. At most T = K (floor(N*(K)) + 1) pulls, with the paper's
    N*.

    Parameters
    ----------
    risk : Risk
        What a pull costs, the same for all arms, and what a wrong choice loses.
    arms : int
        Number of arms.
    sigma : float
        Sub-Gaussian parameter of the rewards. It must be known, and has no `sigma_pulls`: radii and T are computed from
        it before the first pull, and the theorems rest on that.

    Examples
    --------
    >>> from dbcare import BreakevenRacing, Risk
    >>> BreakevenRacing(Risk.misidentification(0.01), arms=2).max_pulls
    38
    """

    label = "BreakevenRacing"
    kind = PolicyKind.OURS
    look = Look((VIOLET,), "s", hollow=True)

    risk: Risk
    arms: int
    sigma: float = 1.0
    stop_rule = (
        "It tries all remaining arms equally often, drops an arm once that is expected to lose less than its share of "
        "what has been spent, and stops when one arm remains."
    )

    def __post_init__(self) -> None:
        check_risk(self.risk)
        checks.set_fields(
            self,
            arms=checks.whole("arms", self.arms, at_least=2, at_most=MAX_ARMS),
            sigma=checks.known_sigma(self.sigma),
        )
        self.risk.costs(self.arms)
        if self.cost < self._smallest_cost:
            raise InvalidValueError(
                f"`cost` must be at least {self._smallest_cost:.3g} for {self.arms} arms at sigma {self.sigma:g} "
                f"but got {self.cost:g}; Breakeven accepts less."
            )

    @property
    def cost(self) -> float:
        """Cost of a pull, the same for all arms."""
        return self.risk.single_cost

    @property
    def _smallest_cost(self) -> float:
        """The cost at which the tables reach their largest size.

        Their rows, one for each k = 2..K survivors, have T/k numbers, with T = K (N*(K) + 1): T (H_K - 1) in all.
        Solved for the cost in N*(K), which is 1/(K e c) or (3/2e) (sigma/((K-1) c))^(2/3).
        """
        per_epoch = self.arms * math.fsum(1.0 / survivors for survivors in range(2, self.arms + 1))
        epochs = MAX_TABLE_SIZES[self.risk.loss] / per_epoch - 1.0
        if self.risk.loss is Loss.MISIDENTIFICATION:
            return 1.0 / (self.arms * math.e * epochs)
        return self.sigma / (self.arms - 1) * math.pow(1.5 / math.e / epochs, 1.5)

    @cached_property
    def max_pulls(self) -> int:
        """T = K (floor(N*(K)) + 1)."""
        return self.arms * int(budgets.last_epoch(self.risk.loss, self.arms, self.cost, self.sigma))

    @cached_property
    def tables(self) -> EliminationTables:
        survivors = np.arange(2, self.arms + 1)
        lengths = self.max_pulls // survivors  # the last epochs that the cap allows
        starts = np.cumsum(lengths) - lengths
        epochs = np.arange(1, lengths.sum() + 1) - np.repeat(starts, lengths)
        boundary = self._boundary(epochs.astype(np.float64), np.repeat(survivors, lengths))
        row, last_epoch = np.zeros((2, self.arms + 1), dtype=np.int64)
        row[2:] = starts + np.arange(len(starts))  # each row before has a number for epoch 0
        # The first epoch whose boundary is 0, or the last that the cap allows.
        last_epoch[2:] = np.minimum.reduceat(np.where(boundary == 0.0, epochs, np.repeat(lengths, lengths)), starts)
        return EliminationTables(
            boundary=np.insert(boundary, starts, 0.0),
            row=row,
            last_epoch=last_epoch,
            max_pulls=self.max_pulls,
            overtime=1,
        )

    def _boundary(self, epochs: Floats, survivors: Ints) -> Floats:
        """Return b(n) = n e_{n,k} for each pair of epoch and survivors."""
        share = self.cost * epochs * survivors / (survivors - 1.0)
        if self.risk.loss is Loss.MISIDENTIFICATION:
            z = normal.upper_tail_inverse(share)
        else:
            z = normal.expected_excess_inverse(share * np.sqrt(epochs / 2.0) / self.sigma)
        return self.sigma * np.sqrt(2.0 * epochs) * z

    def why_limited(self, state: State, survivors: int) -> str:
        return f"{survivors} arms remain, too close to separate; none can lose more than was spent"
