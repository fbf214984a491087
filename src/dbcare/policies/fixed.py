"""Policies whose pulls do not depend on the rewards: uniform, the known-gap oracle, guessing, and keeping an arm."""

from dataclasses import dataclass
from functools import cached_property

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.policies.policy import Policy
from dbcare.policies.rule import STOP, Rule, State
from dbcare.policies.schedule import SchedulePolicy
from dbcare.risk import Risk, check_risk
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

    arms: int
    pulls: int
    risk = None

    def __post_init__(self) -> None:
        validation.set_fields(
            self,
            arms=validation.arms(self.arms),
            pulls=validation.whole("pulls", self.pulls, at_least=1),
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

    risk: Risk
    gap: float
    sigma: float = 1.0
    arms = 2

    def __post_init__(self) -> None:
        check_risk(self.risk)
        validation.set_fields(self, gap=validation.positive("gap", self.gap), sigma=validation.known_sigma(self.sigma))
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

    arms: int
    risk = None

    def __post_init__(self) -> None:
        validation.set_fields(self, arms=validation.arms(self.arms))

    @property
    def schedule(self) -> list[tuple[int, int]]:
        return []


def _init(state: State, tables: tuple[int], tie: int) -> None:
    state[0] = 0.0


def _ask(state: State, tables: tuple[int]) -> int:
    return STOP


def _tell(state: State, tables: tuple[int], arm: int, reward: float) -> None:
    state[0] += 1.0


def _recommend(state: State, tables: tuple[int]) -> int:
    return tables[0]


@dataclass(frozen=True)
class Keep(Policy):
    """Choose the same arm in every run, without any pulls, such as what is in use today.

    Parameters
    ----------
    arms : int
        Number of arms.
    arm : int
        The arm to choose.

    Examples
    --------
    >>> from dbcare.policies.fixed import Keep
    >>> Keep(arms=4, arm=2).start().recommendation()
    2
    """

    arms: int
    arm: int
    risk = None
    rule = Rule(_init, _ask, _tell, _recommend)

    def __post_init__(self) -> None:
        validation.set_fields(self, arms=validation.arms(self.arms))
        validation.set_fields(self, arm=validation.whole("arm", self.arm, at_least=0, at_most=self.arms - 1))

    @property
    def tables(self) -> tuple[int]:
        return (self.arm,)

    @property
    def state_size(self) -> int:
        return 1

    @property
    def max_pulls(self) -> int:
        return 0
