"""Policies whose pulls do not depend on the rewards: uniform, the known-gap oracle, and guessing."""

from dataclasses import dataclass
from functools import cached_property

from dbcare.base import checks
from dbcare.base.look import PURPLE, YELLOW, Look, PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.policies.schedule import SchedulePolicy
from dbcare.problem.risk import Risk, check_risk
from dbcare.theory import budgets

MAX_PULLS_PER_ARM = 2.0**62  # fits into a counter


@dataclass(frozen=True)
class Uniform(SchedulePolicy):
    """Pull every arm `pulls` times and recommend the one with the largest mean.

    Parameters
    ----------
    arms : int
        Number of arms.
    pulls : int
        Pulls of each arm.

    Examples
    --------
    >>> from dbcare import Uniform
    >>> Uniform(arms=3, pulls=10).max_pulls
    30
    """

    kind = PolicyKind.FIXED_BUDGET
    look = Look((YELLOW,))
    live = False

    arms: int
    pulls: int
    risk = None

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            arms=checks.arms(self.arms),
            pulls=checks.whole("pulls", self.pulls, at_least=1),
        )

    @property
    def schedule(self) -> list[tuple[int, int]]:
        return [(self.pulls, 1)]


@dataclass(frozen=True)
class KnownGapOracle(SchedulePolicy):
    """Two arms whose gap is known, but not which one is better (the paper's oracular policies, Section 2).

    Pulls each arm m = max(0, ceil(4 sigma^2/gap^2 * ln x)) times, where x = gap^2/(8 sigma^2 c) for misidentification
    and gap^3/(8 sigma^2 c) for simple regret; m = 0 guesses. A benchmark, not a method: in practice the gap is unknown.

    Parameters
    ----------
    risk : Risk
        What a pull costs, the same for both arms, and what a wrong choice loses.
    gap : float
        The difference of the two means.
    sigma : float
        Sub-Gaussian parameter of the rewards.

    Examples
    --------
    >>> from dbcare import KnownGapOracle, Risk
    >>> KnownGapOracle(Risk.misidentification(1e-3), gap=0.5).pulls
    56
    """

    label = "known-gap oracle"
    kind = PolicyKind.YARDSTICK
    look = Look((PURPLE,))
    live = False

    risk: Risk
    gap: float
    sigma: float = 1.0
    arms = 2
    knows_gap = True

    def __post_init__(self) -> None:
        check_risk(self.risk)
        checks.set_fields(self, gap=checks.positive("gap", self.gap), sigma=checks.known_sigma(self.sigma))
        self.risk.costs(2)
        # The oracle never pulls an arm more often than N*(2), rounded up.
        if budgets.epoch_budget(self.risk.loss, 2, self.risk.single_cost, self.sigma) > MAX_PULLS_PER_ARM:
            raise InvalidValueError(
                f"`cost` must allow at most {MAX_PULLS_PER_ARM:g} pulls of an arm but got {self.risk.single_cost:g}, "
                f"which allows more at sigma {self.sigma:g}."
            )

    @cached_property
    def pulls(self) -> int:
        """Number of pulls per arm."""
        return int(budgets.oracle_pulls(self.risk.loss, self.gap, self.risk.single_cost, self.sigma))

    @property
    def schedule(self) -> list[tuple[int, int]]:
        return [(self.pulls, 1)]


@dataclass(frozen=True)
class Guess(SchedulePolicy):
    """Choose an arm uniformly at random without any pulls.

    Parameters
    ----------
    arms : int
        Number of arms.

    Examples
    --------
    >>> from dbcare import Guess
    >>> Guess(arms=4).max_pulls
    0
    """

    kind = PolicyKind.YARDSTICK
    look = Look((YELLOW,))
    live = False

    arms: int
    risk = None

    def __post_init__(self) -> None:
        checks.set_fields(self, arms=checks.arms(self.arms))

    @property
    def schedule(self) -> list[tuple[int, int]]:
        return []
