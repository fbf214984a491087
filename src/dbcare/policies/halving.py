"""Fixed budget: Sequential Halving and Successive Rejects."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dbcare.base import checks
from dbcare.base.look import ORANGE, RED, Look, PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.policies.schedule import SchedulePolicy

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
    >>> from dbcare import SequentialHalving
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
    >>> from dbcare import SuccessiveRejects
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
