"""Bandits: K arms with known reward distributions, the truth that a simulation draws from.

Policies never see a bandit. Gaps are Delta_k = best mean - mean_k, and complexity is H = sum over k >= 2 of
Delta_k^-2 (Section 3 of the paper).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dbcare import datasets, validation
from dbcare.errors import InvalidValueError
from dbcare.rewards import Bernoulli, Categorical, Empirical, Gaussian, Reward
from dbcare.validation import show

TIED = 1e-150  # a sum of inverse squares of smaller gaps could overflow


@dataclass(frozen=True)
class Bandit:
    """K arms; `bound`, if given, is the paper's B: no two means differ by more.

    Parameters
    ----------
    arms : tuple of reward families
        The distribution of each arm's rewards; the class methods build common ones.
    names : tuple of str, optional
        Names of the arms.
    bound : float, optional
        The B of the paper: no two means differ by more.

    Examples
    --------
    >>> from dbcare import Bandit
    >>> bandit = Bandit.gaussian([0.5, 0.2, 0.0], sigma=0.5)
    >>> bandit.best_arms, round(bandit.smallest_gap, 3)
    ((0,), 0.3)
    """

    arms: tuple[Reward, ...]
    names: tuple[str, ...] | None = None
    bound: float | None = None

    def __post_init__(self) -> None:
        arms = tuple(validation.items("arms", self.arms, "a sequence of reward families"))
        validation.arms(len(arms))
        for index, arm in enumerate(arms):
            if not isinstance(arm, Reward):
                raise InvalidValueError(f"`arms[{index}]` must be a reward family but got {show(arm)}.")
        object.__setattr__(self, "arms", arms)
        if self.names is not None:
            names = tuple(validation.items("names", self.names, f"{len(arms)} distinct names"))
            if not all(isinstance(name, str) for name in names) or not len(arms) == len(names) == len(set(names)):
                raise InvalidValueError(f"`names` must be {len(arms)} distinct names but got {show(names)}.")
            object.__setattr__(self, "names", names)
        if self.bound is not None:
            object.__setattr__(self, "bound", validation.positive("bound", self.bound))
            self.require_bound(self.bound)

    @classmethod
    def gaussian(
        cls, means: Iterable[float], sigma: float | Iterable[float] = 1.0, *, bound: float | None = None
    ) -> Bandit:
        """Create normal arms, with one `sigma` for all or one per arm."""
        mean_list = validation.items("means", means, "one number per arm")
        single = isinstance(sigma, numbers.Real | str) or not isinstance(sigma, Iterable)
        sigmas = [sigma] * len(mean_list) if single else validation.items("sigma", sigma, "one number or one per arm")
        if len(sigmas) != len(mean_list):
            raise InvalidValueError(
                f"`sigma` must be one number or one per arm ({len(mean_list)}) but got {len(sigmas)}."
            )
        arms = tuple(Gaussian(mean, deviation) for mean, deviation in zip(mean_list, sigmas, strict=True))
        return cls(arms, bound=bound)

    @classmethod
    def bernoulli(cls, means: Iterable[float], *, bound: float | None = None) -> Bandit:
        """Create arms that yield 1 with the given probabilities, else 0."""
        rates = validation.items("means", means, "one number per arm")
        return cls(tuple(Bernoulli(mean) for mean in rates), bound=bound)

    @classmethod
    def categorical(
        cls, values: Sequence[float], probabilities: Iterable[Sequence[float]], *, bound: float | None = None
    ) -> Bandit:
        """Create arms over the same `values`, with one row of probabilities per arm."""
        listed = tuple(validation.items("values", values, "a sequence of numbers"))
        rows = validation.items("probabilities", probabilities, "one row of probabilities per arm")
        return cls(tuple(Categorical(listed, row) for row in rows), bound=bound)

    @classmethod
    def empirical(cls, data: Iterable[Sequence[float]], *, bound: float | None = None) -> Bandit:
        """Create arms that resample observed rewards, one sequence per arm."""
        rows = validation.items("data", data, "one sequence of rewards per arm")
        return cls(tuple(Empirical(rewards) for rewards in rows), bound=bound)

    @classmethod
    def two_arm(cls, gap: float, sigma: float = 1.0) -> Bandit:
        """Create Gaussian arms with means +-gap/2 (Section 4 of the paper)."""
        half = validation.non_negative("gap", gap) / 2.0
        return cls.gaussian((half, -half), sigma)

    @classmethod
    def two_arm_bernoulli(cls, gap: float) -> Bandit:
        """Create Bernoulli arms with means 1/2 +- gap/2 (Section 4 of the paper)."""
        half = validation.unit("gap", gap) / 2.0
        return cls.bernoulli((0.5 + half, 0.5 - half))

    @classmethod
    def one_sparse(cls, arms: int, gap: float, sigma: float = 1.0) -> Bandit:
        """Create one arm with mean `gap` and the others with mean 0 (appendix on experiments): H = (K-1)/gap^2."""
        count = validation.arms(arms)
        return cls.gaussian([validation.non_negative("gap", gap)] + [0.0] * (count - 1), sigma)

    @classmethod
    def linear_decay(cls, arms: int, gap: float, sigma: float = 1.0) -> Bandit:
        """Create arms whose gaps grow linearly from `gap` to 2*gap (appendix on experiments).

        mean_1 = gap, mean_k = -gap * (k-2)/(K-2) for k = 2..K; requires at least 3 arms.
        """
        count = validation.arms(arms, at_least=3)
        smallest = validation.non_negative("gap", gap)
        others = [-smallest * rank / (count - 2) for rank in range(count - 1)]
        return cls.gaussian([smallest, *others], sigma)

    @classmethod
    def drug_binary(cls) -> Bandit:
        """Create the drug trial's five treatments, with reward 1 for a patient who responds (see `datasets`)."""
        return cls(datasets.drug_binary(), names=datasets.NAMES)

    @classmethod
    def drug_leveled(cls, reading: str = "exclusive", table: int = 1) -> Bandit:
        """Create the drug trial's five treatments, with a reward by level of response (see `datasets`)."""
        return cls(datasets.drug_leveled(reading, table), names=datasets.NAMES)

    @cached_property
    def means(self) -> tuple[float, ...]:
        """Expected reward of each arm."""
        return tuple(arm.mean for arm in self.arms)

    @property
    def sigma(self) -> float:
        """The largest sub-Gaussian sigma of the arms."""
        return max(arm.sigma for arm in self.arms)

    @property
    def best_mean(self) -> float:
        """The largest expected reward."""
        return max(self.means)

    @property
    def best_arms(self) -> tuple[int, ...]:
        """All arms whose mean ties for best: recommending any of them is not an error."""
        best = self.best_mean
        return tuple(arm for arm, mean in enumerate(self.means) if mean == best)

    @property
    def gaps(self) -> tuple[float, ...]:
        """The gap Delta of each arm, in the order of the arms; 0 for the best."""
        best = self.best_mean
        return tuple(best - mean for mean in self.means)

    @property
    def smallest_gap(self) -> float:
        """Delta_2: the gap of the second-best arm; 0 if the best is tied."""
        return sorted(self.gaps)[1]

    @property
    def complexity(self) -> float:
        """H: the sum of Delta_k^-2 over all arms except one best arm; infinite if the best is tied, or nearly so."""
        others = sorted(self.gaps)[1:]
        return math.inf if others[0] < TIED else math.fsum(gap**-2 for gap in others)

    @property
    def spread(self) -> float:
        """The largest difference between two means."""
        return self.best_mean - min(self.means)

    def require_bound(self, bound: float) -> None:
        """Raise InvalidValueError if two means differ by more than `bound`."""
        if not (isinstance(bound, float) and bound == math.inf):  # the bound of policies made for any means
            validation.spread_within(validation.positive("bound", bound), self.spread)


def check_bandit(bandit: Any) -> Bandit:
    """Return `bandit` if it is a Bandit."""
    if not isinstance(bandit, Bandit):
        raise InvalidValueError(f"`bandit` must be a Bandit but got {show(bandit)}.")
    return bandit
