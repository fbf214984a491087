"""Breakeven racing: elimination that drops an arm once its expected loss is no more than its share of the spending."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare import validation
from dbcare.policies.elimination import EliminationPolicy, EliminationTables, check_length
from dbcare.policies.rule import State
from dbcare.risk import Loss, Risk, required
from dbcare.theory import budgets, normal


@dataclass(frozen=True)
class BreakevenRacing(EliminationPolicy):
    """Elimination at the break-even point of loss and spending; our own rule, not the paper's.

    Every survivor once an epoch, as DBCARE. With k survivors at epoch n, the loss of dropping an arm whose mean lies
    z standard errors sigma sqrt(2/n) behind, under a flat prior, is Q(z) for misidentification and
    sigma sqrt(2/n) Psi(z) for simple regret (`theory.normal`). An arm is dropped when that is below its share of the
    spending, s = c n k/(k-1): the radius is e_{n,k} = sigma sqrt(2/n) z, z solving loss(z) = s. At the first epoch
    without a positive solution only the leader stays. At most T = K (floor(N*(K)) + 1) pulls, N* the paper's.
    """

    risk: Risk
    arms: int
    sigma: float = 1.0

    def __post_init__(self) -> None:
        required(self.risk)
        validation.set_fields(
            self,
            arms=validation.whole("arms", self.arms, at_least=2),
            sigma=validation.known_sigma(self.sigma),
        )
        self.risk.costs(self.arms)
        check_length(self.arms * float(budgets.epoch_budget(self.risk.loss, self.arms, self.cost, self.sigma)), "cost")

    @property
    def cost(self) -> float:
        """The cost of a pull, the same for all arms."""
        return self.risk.single_cost

    @property
    def max_pulls(self) -> int:
        """T = K (floor(N*(K)) + 1)."""
        return self.arms * int(budgets.last_epoch(self.risk.loss, self.arms, self.cost, self.sigma))

    @cached_property
    def tables(self) -> EliminationTables:
        rows = [self._boundary(survivors) for survivors in range(2, self.arms + 1)]
        starts = np.cumsum([0, *(len(row) for row in rows)])
        # The first epoch whose boundary is 0, or the last that the cap allows.
        last = [int(np.argmax(row[1:] == 0.0)) + 1 if np.any(row[1:] == 0.0) else len(row) - 1 for row in rows]
        return EliminationTables(
            boundary=np.concatenate(rows),
            row=np.array([0, 0, *starts[:-1]], dtype=np.int64),
            last_epoch=np.array([0, 0, *last], dtype=np.int64),
            max_pulls=self.max_pulls,
            overtime=1,
        )

    def _boundary(self, survivors: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """b(n) = n e_{n,k} for n = 0, 1, ... as far as the cap can lead."""
        epochs = np.arange(1, self.max_pulls // survivors + 1, dtype=np.float64)
        share = self.cost * epochs * survivors / (survivors - 1.0)
        if self.risk.loss is Loss.MISIDENTIFICATION:
            z = normal.upper_tail_inverse(share)
        else:
            z = normal.expected_excess_inverse(share * np.sqrt(epochs / 2.0) / self.sigma)
        return np.concatenate([[0.0], self.sigma * np.sqrt(2.0 * epochs) * z])

    def why_limited(self, state: State, survivors: int) -> str:
        return f"{survivors} arms are left, level, and none of them can lose more than what has been spent"
