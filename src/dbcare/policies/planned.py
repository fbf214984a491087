"""Policies whose pulls are planned in advance: halving, uniform sampling, the oracle, the guess, keeping an arm.

Round r pulls every survivor each[r] times and then keeps the best keep[r], breaking ties uniformly. The ranking uses
all of an arm's rewards so far, or only those of the round.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.base.look import ORANGE, PURPLE, RED, YELLOW, Look, PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.policies.epochs import ALIVE, COUNT, EACH, EPOCH, SUMS, drop_worst, epoch_rule
from dbcare.policies.policy import EpochPolicy, Pace, Policy
from dbcare.policies.rule import STOP, Rule, State
from dbcare.policies.run import DEFAULT_WORDING, Wording
from dbcare.problem.risk import Risk, check_risk
from dbcare.theory import budgets


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
    >>> from dbcare.policies.planned import Keep
    >>> Keep(arms=4, arm=2).start().recommendation()
    2
    """

    arms: int
    arm: int
    risk = None
    rule = Rule(_init, _ask, _tell, _recommend)

    def __post_init__(self) -> None:
        checks.set_fields(self, arms=checks.arms(self.arms))
        checks.set_fields(self, arm=checks.whole("arm", self.arm, at_least=0, at_most=self.arms - 1))

    @property
    def tables(self) -> tuple[int]:
        return (self.arm,)

    @property
    def state_size(self) -> int:
        return 1

    @property
    def max_pulls(self) -> int:
        return 0

    @property
    def pools(self) -> bool:
        return False

    @property
    def odds(self) -> list[float]:
        return [float(arm == self.arm) for arm in range(self.arms)]


class ScheduleTables(NamedTuple):
    """Pulls per survivor, and survivors kept, by round; `fresh`: rank by the rewards of the round only."""

    each: npt.NDArray[np.int64]
    keep: npt.NDArray[np.int64]
    fresh: bool


def decide(state: State, tables: ScheduleTables) -> None:
    """End a round: keep the best, then start the next round that has pulls, or stop."""
    done = int(state[EPOCH])
    if done > 0:
        while state[ALIVE] > tables.keep[done - 1]:
            drop_worst(state)
    while done < len(tables.each) and tables.each[done] == 0:
        while state[ALIVE] > tables.keep[done]:
            drop_worst(state)
        done += 1
    state[EPOCH] = done
    state[EACH] = 0
    if done < len(tables.each):
        state[EACH] = int(tables.each[done])
        if tables.fresh:
            state[COUNT] = 0
            for slot in range(int(state[ALIVE])):
                state[SUMS + slot] = 0.0


RULE = epoch_rule(decide)


class SchedulePolicy(EpochPolicy):
    """A policy that follows a schedule, round by round."""

    rule = RULE
    pace = Pace.PLANNED

    @property
    def treats_arms_alike(self) -> bool:
        return True

    @property
    def pools(self) -> bool:
        """Whether to pool: simulating these runs costs next to nothing."""
        return False

    @property
    def pulls_each(self) -> int | None:
        return self.max_pulls // self.arms if len(self.schedule) <= 1 else None

    @property
    def fresh(self) -> bool:
        """Whether a round ranks arms by its own rewards only."""
        return False

    @property
    @abstractmethod
    def schedule(self) -> list[tuple[int, int]]:
        """For each round, the pulls per survivor and the number of arms that it keeps."""

    @cached_property
    def tables(self) -> ScheduleTables:
        steps = np.asarray(self.schedule, dtype=np.int64).reshape(-1, 2)
        return ScheduleTables(each=steps[:, 0].copy(), keep=steps[:, 1].copy(), fresh=self.fresh)

    @property
    def max_pulls(self) -> int:
        """The number of pulls in the schedule, which every run makes."""
        total = 0
        survivors = self.arms
        for pulls, keep in self.schedule:
            total += pulls * survivors
            survivors = keep
        return total

    def why_dropped(self, before: State, after: State, slot: int) -> str:
        ended, kept = int(before[EPOCH]) + 1, int(after[ALIVE])
        return f"dropped at the end of round {ended}: it is not among the best {kept} of {int(before[ALIVE])}"

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if not self.max_pulls:
            return f"it chooses without a {wording.noun}"
        return f"all {wording.noun}s planned in advance have been made"


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
    >>> from dbcare.policies import Uniform
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
    >>> from dbcare import Risk
    >>> from dbcare.policies import KnownGapOracle
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
    >>> from dbcare.policies import Guess
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


RANKINGS = ("round", "all")


@dataclass(frozen=True)
class SequentialHalving(SchedulePolicy):
    """Sequential Halving (Karnin, Koren and Somekh 2013).

    R = ceil(log2 K) rounds; each pulls every survivor floor(budget/(|S| R)) times and keeps the best ceil(|S|/2).
    The ranking uses only the round's rewards ("round", the original) or all of an arm's rewards so far ("all").
    It may make fewer pulls than the budget allows: 19 for K = 5 and a budget of 25.

    Parameters
    ----------
    arms : int
        Number of arms.
    budget : int
        Pulls in all, at most.
    ranking : {"round", "all"}
        The rewards that arms are ranked by.

    Examples
    --------
    >>> from dbcare.policies import SequentialHalving
    >>> SequentialHalving(arms=5, budget=25).max_pulls
    19
    """

    label = "Sequential Halving"
    kind = PolicyKind.FIXED_BUDGET
    look = Look((ORANGE, RED))
    live = False

    arms: int
    budget: int
    ranking: str = "round"
    risk = None

    def __post_init__(self) -> None:
        checks.set_fields(self, arms=checks.arms(self.arms))
        checks.set_fields(self, budget=checks.whole("budget", self.budget, at_least=0))
        checks.one_of("ranking", self.ranking, RANKINGS)
        least = self.arms * self.rounds
        if self.budget < least:
            product = f"{self.arms} * {self.rounds} = {least}"
            raise InvalidValueError(f"`budget` must be at least arms * rounds = {product} but got {self.budget}.")

    @property
    def rounds(self) -> int:
        """ceil(log2 K), in integer arithmetic."""
        return (self.arms - 1).bit_length()

    @property
    def fresh(self) -> bool:
        return self.ranking == "round"

    @property
    def schedule(self) -> list[tuple[int, int]]:
        steps = []
        survivors = self.arms
        for _ in range(self.rounds):
            pulls = self.budget // (survivors * self.rounds)
            survivors = math.ceil(survivors / 2)
            steps.append((pulls, survivors))
        return steps


@dataclass(frozen=True)
class SuccessiveRejects(SchedulePolicy):
    """Successive Rejects (Audibert, Bubeck and Munos 2010).

    With L = 1/2 + sum over i = 2..K of 1/i, phase k = 1..K-1 brings every survivor to
    n_k = ceil((budget - K) / (L * (K + 1 - k))) pulls and drops the worst by the mean of all its rewards.

    Parameters
    ----------
    arms : int
        Number of arms.
    budget : int
        Pulls in all, at most.

    Examples
    --------
    >>> from dbcare.policies import SuccessiveRejects
    >>> SuccessiveRejects(arms=4, budget=40).max_pulls
    38
    """

    label = "Successive Rejects"
    kind = PolicyKind.FIXED_BUDGET
    look = Look((RED, ORANGE))
    live = False

    arms: int
    budget: int
    risk = None

    def __post_init__(self) -> None:
        arms = checks.arms(self.arms)
        # With a smaller budget than K + 1 the first phase would make no pull.
        checks.set_fields(self, arms=arms, budget=checks.whole("budget", self.budget, at_least=arms + 1))

    @property
    def schedule(self) -> list[tuple[int, int]]:
        scale = Fraction(1, 2) + sum(Fraction(1, rank) for rank in range(2, self.arms + 1))
        steps = []
        before = 0
        for phase in range(1, self.arms):
            pulls = math.ceil((self.budget - self.arms) / (scale * (self.arms + 1 - phase)))
            steps.append((pulls - before, self.arms - phase))
            before = pulls
        return steps
