"""Breakeven as it was before it learned the spread: a sigma for all arms, checked against the rewards before a stop.

Studies that were stored with this rule keep it; new ones use `Breakeven`.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.policies import breakeven_losses, guarded_losses, guarded_rule
from dbcare.policies.breakeven import MAX_SIGMA_FACTOR, MOST_STUDENT_EXCESS
from dbcare.policies.breakeven_promise import BreakevenPolicy
from dbcare.policies.breakeven_state import LEAST_FREEDOM, state_size
from dbcare.policies.look import VIOLET, Look, PolicyKind
from dbcare.risk import Loss, Risk, check_risk


@dataclass(frozen=True)
class BreakevenGuarded(BreakevenPolicy):
    """The rule of studies that were stored before `sigma_pulls`.

    The losses are those of `Breakeven` with a known sigma, l_k = Q(z_k) or se_k Psi(z_k). Before a stop, and after the
    first such check, l_k is the larger of that and the Student-t loss at the standard deviation of the rewards, one for
    all arms, cut at 10 sigma; a run takes at least four rewards. `sigma=None`: the Student-t loss alone, which requires
    a `bound` for simple regret.
    """

    label = "Breakeven with a guard"
    kind = PolicyKind.OURS
    look = Look((VIOLET,), "D", hollow=True)
    closed = True

    risk: Risk
    arms: int
    sigma: float | None = 1.0
    bound: float | None = None
    rule = guarded_rule.RULE
    stop_rule = (
        "It stops once choosing the leader is expected to lose no more to its strongest rival than has been spent, "
        "also if the spread of the rewards is what they show rather than what was stated."
    )

    def __post_init__(self) -> None:
        check_risk(self.risk)
        if self.risk.loss is Loss.SIMPLE_REGRET and self.sigma is None and self.bound is None:
            raise InvalidValueError("`bound` is required for simple regret if sigma is unknown.")
        validation.set_fields(
            self,
            arms=validation.arms(self.arms),
            sigma=None if self.sigma is None else validation.positive("sigma", self.sigma),
            bound=None if self.bound is None else validation.positive("bound", self.bound),
        )
        self.risk.costs(self.arms)

    @property
    def identity(self) -> str:
        """As this rule's runs were stored when it was `Breakeven`."""
        return (
            f"Breakeven(risk={self.risk!r}, arms={self.arms!r}, sigma={self.sigma!r}, sigma_guard=True, "
            f"bound={self.bound!r})"
        )

    @property
    def state_size(self) -> int:
        return state_size(self.arms, guarded_rule.SECTIONS)

    @property
    def learns_spread(self) -> bool:
        return True

    @property
    def least_pulls(self) -> int:
        return LEAST_FREEDOM + 1

    @property
    def believed_sigma(self) -> float:
        return math.inf if self.sigma is None else MAX_SIGMA_FACTOR * self.sigma

    @property
    def loss_scale(self) -> float:
        return self.believed_sigma * MOST_STUDENT_EXCESS

    @cached_property
    def tables(self) -> guarded_losses.GuardedTables:
        return guarded_losses.GuardedTables(
            cost=np.array(self.risk.costs(self.arms)),
            sigma=0.0 if self.sigma is None else self.sigma,
            precision=0.0 if self.sigma is None else 1.0 / self.sigma,
            counts_errors=self.risk.loss is Loss.MISIDENTIFICATION,
            largest_loss=self.largest_loss,
            largest_deviation=self.believed_sigma,
            guess=self.guesses,
            series=breakeven_losses.series_of(self.risk.loss is Loss.SIMPLE_REGRET),
        )
