"""What a policy may be told about a problem, by the names of the parameters that policies share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbcare.problem.bandits import Bandit, ScoreTable
from dbcare.problem.rewards import Bernoulli
from dbcare.problem.risk import Risk
from dbcare.problem.spread import Spread

MAX_CAP_PULLS = 1e15


@dataclass(frozen=True)
class PolicyFacts:
    """The risk, the number of arms, the spread of the rewards, and what else is known.

    `bound` is the largest possible difference of two means, by default the width of the rewards' range; `gap` that
    between the two best arms, and `family` the rewards' distribution; None where nobody knows. Only yardsticks and
    simulations know the gap. `not_before` is the number of pulls before which a run must not stop, if there is one.
    `pool` is the number of blocks that arms share, if that is limited, and `only_these_blocks` whether the decision is
    about these very blocks rather than about more like them.
    """

    risk: Risk
    arms: int
    spread: Spread
    bound: float | None = None
    gap: float | None = None
    family: str | None = None
    not_before: int | None = None
    pool: int | None = None
    only_these_blocks: bool | None = None

    @classmethod
    def from_bandit(cls, bandit: Bandit, risk: Risk, bound: float | None = None) -> PolicyFacts:
        """Return what a simulation of `bandit` knows; `bound` defaults to the spread of its means, at least 1."""
        pool = bandit.blocks if isinstance(bandit, ScoreTable) else None
        return cls(
            risk,
            len(bandit.arms),
            _know_spread(bandit),
            max(bandit.spread, 1.0) if bound is None else bound,
            bandit.smallest_gap,
            "bernoulli" if isinstance(bandit.arms[0], Bernoulli) else "gaussian",
            pool=pool,
            only_these_blocks=None if pool is None else True,
        )

    @property
    def max_pulls(self) -> int:
        """The paper's cap on fixed confidence, 10 / cost, but at least one pull per arm."""
        return max(self.arms, round(min(10.0 / min(self.risk.costs(self.arms)), MAX_CAP_PULLS)))

    def known(self, *, learns: bool = False) -> dict[str, Any]:
        """Return the values by parameter; an unknown sigma is passed on as None, other unknown values are left out.

        A policy that `learns` the spread is given the likely sigma, any other one that is never too small.
        """
        values = {
            "risk": self.risk,
            "arms": self.arms,
            "sigma_pulls": self.spread.sigma_pulls,
            "largest_sigma": self.spread.largest,
            "bound": self.spread.width if self.bound is None else self.bound,
            "gap": self.gap,
            "family": self.family,
            "not_before": self.not_before,
            "max_pulls": self.max_pulls,
            "pool": self.pool,
            "only_these_blocks": self.only_these_blocks,
        }
        sigma = self.spread.guess if learns else self.spread.certain
        return {name: value for name, value in values.items() if value is not None} | {"sigma": sigma}


def _know_spread(bandit: Bandit) -> Spread:
    """Return what a simulation knows about the spread: that rewards are 0 or 1, or sigma and the range, if any."""
    if all(isinstance(arm, Bernoulli) for arm in bandit.arms):
        return Spread(binary=True)
    outcomes = [arm.outcomes for arm in bandit.arms if hasattr(arm, "outcomes")]
    if len(outcomes) < len(bandit.arms):
        return Spread(sigma=bandit.sigma)
    values = [value for arm_values, _ in outcomes for value in arm_values]
    return Spread(sigma=bandit.sigma, bounds=(min(values), max(values)))
