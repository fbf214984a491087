"""DBCARE: Dynamically Budgeted Cost-Adapted Risk-minimizing Elimination (Algorithm 1 of the paper)."""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare.base import checks
from dbcare.base.look import BLUE, Look, PolicyKind
from dbcare.errors import GuessingIsBestWarning
from dbcare.policies.elimination.elimination import (
    NO_CAP,
    EliminationPolicy,
    EliminationTables,
    check_length,
    hoeffding,
)
from dbcare.policies.rule import State
from dbcare.problem.risk import Loss, Risk, check_risk
from dbcare.theory import budgets


@dataclass(frozen=True)
class DBCARE(EliminationPolicy):
    """Elimination with a limit on epochs that depends on their cost.

    While |S| > 1 and n <= N*(|S|): n += 1, pull every survivor once, and drop those whose mean is more than
    e_n = sqrt(4 sigma^2/n * ln(K n / delta)) below the best. N* and delta follow from the risk (`theory.budgets`).
    The test n <= N* precedes the increment, so the last epoch with k survivors is floor(N*(k)) + 1; N* grows as
    arms are dropped.

    `sigma` is the rewards' sub-Gaussian parameter, `bound` the largest difference of two means (delta depends on it
    for simple regret only), and `confidence` the preset for delta: "paper", "theorem" or "corrected".

    For simple regret, `sigma`, `bound`, and the cost (price / value) are in units of the rewards. With two arms or the
    "corrected" delta, decisions are the same in every unit. The delta that the paper prints for more arms adds a plain
    number to `bound`, which suits units in which the cost is well below 1.

    Parameters
    ----------
    risk : Risk
        What a pull costs, the same for all arms, and what a wrong choice loses.
    arms : int
        Number of arms.
    sigma : float
        Sub-Gaussian parameter of the rewards.
    bound : float
        The largest difference of two means; used for simple regret only.
    confidence : {"paper", "theorem", "corrected"}
        The preset for delta.

    Examples
    --------
    >>> from dbcare import DBCARE, Risk
    >>> policy = DBCARE(Risk.misidentification(0.01), arms=3)
    >>> policy.epoch_limit(3), policy.epoch_limit(2)
    (13, 19)
    """

    label = "DBCARE"
    kind = PolicyKind.PAPER
    look = Look((BLUE,))
    planned = True

    risk: Risk
    arms: int
    sigma: float = 1.0
    bound: float = 1.0
    confidence: str = "paper"
    depends_on_unit = True
    stop_rule = (
        "It tries all remaining arms equally often, drops those that are clearly worse, and stops when one is left, "
        "or at a limit that depends on what trials cost."
    )

    def __post_init__(self) -> None:
        check_risk(self.risk)
        checks.set_fields(
            self,
            arms=checks.arms(self.arms),
            sigma=checks.known_sigma(self.sigma),
            bound=checks.positive("bound", self.bound),
        )
        self.risk.costs(self.arms)
        checks.one_of("confidence", self.confidence, budgets.PRESETS)
        check_length(float(budgets.epoch_budget(self.risk.loss, 2, self.cost, self.sigma)), "cost")
        self._warn_if_guessing_is_best()

    @property
    def largest_spread(self) -> float:
        """`bound` for simple regret; infinite for misidentification, which does not depend on it."""
        return self.bound if self.risk.loss is Loss.SIMPLE_REGRET else math.inf

    @property
    def cost(self) -> float:
        """Cost of a pull, the same for all arms."""
        return self.risk.single_cost

    @property
    def delta(self) -> float:
        """The confidence parameter."""
        return float(
            budgets.confidence(self.risk.loss, self.arms, self.cost, self.sigma, self.bound, preset=self.confidence)
        )

    @property
    def checkpoint(self) -> int:
        """N0, with more than two arms."""
        return self.epoch_limit(self.arms) if self.arms > 2 else 0

    def epoch_limit(self, survivors: int) -> int:
        """Return the last epoch while `survivors` arms remain: floor(N*) + 1."""
        return int(budgets.last_epoch(self.risk.loss, survivors, self.cost, self.sigma))

    @cached_property
    def tables(self) -> EliminationTables:
        epochs = np.arange(self.epoch_limit(2) + 1)
        last_epoch = np.zeros(self.arms + 1, dtype=np.int64)
        last_epoch[2:] = budgets.last_epoch(self.risk.loss, np.arange(2, self.arms + 1), self.cost, self.sigma)
        return EliminationTables(
            boundary=hoeffding(epochs, self.sigma, self.arms, self.delta),
            row=np.zeros(self.arms + 1, dtype=np.int64),
            last_epoch=last_epoch,
            max_pulls=NO_CAP,
        )

    @cached_property
    def max_pulls(self) -> int:
        return int(budgets.most_pulls(self.risk.loss, self.arms, self.cost, self.sigma))

    def why_limited(self, state: State, survivors: int) -> str:
        return f"{survivors} arms remain and epoch {self.epoch_limit(survivors)} is the last that can pay for itself"

    def _warn_if_guessing_is_best(self) -> None:
        budget = float(budgets.epoch_budget(self.risk.loss, self.arms, self.cost, self.sigma))
        hopeless = self.risk.loss is Loss.MISIDENTIFICATION and self.cost >= 0.25
        if hopeless or budget < 1.0:
            warnings.warn(
                f"At a cost of {self.cost:g} per pull, choosing one of {self.arms} arms without data is at least as "
                f"good in the worst case (N* = {budget:.3g} epochs); the policy still runs one epoch.",
                GuessingIsBestWarning,
                stacklevel=4,
            )
