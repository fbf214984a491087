"""Policies that make the same pulls whatever they see: uniform, the known-gap oracle, and the guess."""

from dataclasses import dataclass
from functools import cached_property

from dbcare import validation
from dbcare.policies.schedule import SchedulePolicy
from dbcare.risk import Risk, required
from dbcare.theory import budgets


@dataclass(frozen=True)
class Uniform(SchedulePolicy):
    """Pull every arm `pulls` times, recommend the largest mean."""

    arms: int
    pulls: int
    risk = None

    def __post_init__(self) -> None:
        validation.set_fields(
            self,
            arms=validation.whole("arms", self.arms, at_least=2),
            pulls=validation.whole("pulls", self.pulls, at_least=1),
        )

    @property
    def schedule(self) -> list[tuple[int, int]]:
        return [(self.pulls, 1)]


@dataclass(frozen=True)
class KnownGapOracle(SchedulePolicy):
    """Two arms whose gap is known, but not which one is better (the paper's oracular policies, Section 2).

    Pulls each arm m = max(0, ceil(4 sigma^2/gap^2 * ln x)) times, x = gap^2/(8 sigma^2 c) for misidentification and
    gap^3/(8 sigma^2 c) for simple regret; m = 0 guesses. A yardstick, not a method: nobody knows the gap.
    """

    risk: Risk
    gap: float
    sigma: float = 1.0
    arms = 2

    def __post_init__(self) -> None:
        required(self.risk)
        validation.set_fields(self, gap=validation.positive("gap", self.gap), sigma=validation.known_sigma(self.sigma))
        self.risk.costs(2)
        _ = self.risk.single_cost  # refuses costs that differ

    @cached_property
    def pulls(self) -> int:
        """Pulls of each arm."""
        return int(budgets.oracle_pulls(self.risk.loss, self.gap, self.risk.single_cost, self.sigma))

    @property
    def schedule(self) -> list[tuple[int, int]]:
        return [(self.pulls, 1)]


@dataclass(frozen=True)
class Guess(SchedulePolicy):
    """Choose an arm uniformly at random without a pull."""

    arms: int
    risk = None

    def __post_init__(self) -> None:
        validation.set_fields(self, arms=validation.whole("arms", self.arms, at_least=2))

    @property
    def schedule(self) -> list[tuple[int, int]]:
        return []
