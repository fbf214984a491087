"""Bandits: arms with known laws of reward, also those that share blocks, and the paper's data.

Source: Genovese et al. 2013, Table 2, week 16. Counts of patients who reached ACR20 / ACR50 / ACR70, out of all
treated. The ACR20 counts give the paper's binary means. They are of 236 patients; the paper says 237. The trial's
registry, NCT00928512, has one more on 25 mg: 54 started.

We have not seen the ACR50 and ACR70 columns themselves. Four tables of whole numbers fit all five leveled means of the
paper (0.230, 0.227, 0.200, 0.196, 0.102) and are listed in `LEVELED_TABLES`. The one other figure that we know, ACR50
of 9/43 for 150 mg, rules out the fourth. That SECUKINUMAB is the first is our choice: in all others, 10 patients on
75 mg reach ACR50 and none of them ACR70.

Policies never see a bandit. Gaps are Delta_k = best mean - mean_k, and complexity is H = sum over k >= 2 of
Delta_k^-2 (Section 3 of the paper).

Rewards in one block move together, so a policy that compares arms within blocks sees less noise. Where a policy has no
blocks of its own, each of its pulls is in a new one.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError
from dbcare.problem.rewards import Bernoulli, Categorical, Empirical, Gaussian, Reward


class Treatment(NamedTuple):
    """One treatment of the trial: the number of patients, and how many reached each response level."""

    name: str
    patients: int
    acr20: int
    acr50: int
    acr70: int


SECUKINUMAB = (
    Treatment("300 mg", 41, 22, 7, 2),
    Treatment("75 mg", 49, 23, 9, 1),
    Treatment("150 mg", 43, 20, 9, 2),
    Treatment("placebo", 50, 18, 3, 0),
    Treatment("25 mg", 53, 18, 8, 4),
)

NAMES = tuple(treatment.name for treatment in SECUKINUMAB)
LEVELED_TABLES: tuple[dict[str, tuple[int, int]], ...] = (  # ACR50 and ACR70 where a table differs from SECUKINUMAB
    {},
    {"75 mg": (10, 0), "25 mg": (7, 5)},
    {"75 mg": (10, 0), "25 mg": (14, 0)},
    {"75 mg": (10, 0), "150 mg": (5, 3), "25 mg": (13, 3)},
)


def drug_binary() -> tuple[Bernoulli, ...]:
    """Return arms with reward 1 for a patient who reaches ACR20; sigma 1/2."""
    return tuple(Bernoulli(treatment.acr20 / treatment.patients) for treatment in SECUKINUMAB)


def drug_leveled(reading: str, table: int) -> tuple[Categorical, ...]:
    """Return arms with reward 0.2, 0.5 or 0.7 by response level, else 0; sigma 0.35 (half the range).

    `exclusive` is the paper's reading: the three rates are treated as mutually exclusive, so that
    P(0.2) = ACR20, P(0.5) = ACR50, P(0.7) = ACR70. `nested` counts each patient once, at the best level
    reached: 0.2*P20 + 0.3*P50 + 0.2*P70. The two have different means and different best arms.

    `table`, from 1 to 4, chooses among `LEVELED_TABLES`.
    """
    checks.one_of("reading", reading, ("exclusive", "nested"))
    changes = LEVELED_TABLES[checks.whole("table", table, at_least=1, at_most=len(LEVELED_TABLES)) - 1]
    arms = []
    for treatment in SECUKINUMAB:
        at20, (at50, at70) = treatment.acr20, changes.get(treatment.name, (treatment.acr50, treatment.acr70))
        if reading == "nested":
            at20, at50 = at20 - at50, at50 - at70
        none = treatment.patients - at20 - at50 - at70
        shares = tuple(count / treatment.patients for count in (none, at20, at50, at70))
        arms.append(Categorical((0.0, 0.2, 0.5, 0.7), shares))
    return tuple(arms)


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
        arms = tuple(checks.items("arms", self.arms, "a sequence of reward families"))
        checks.arms(len(arms))
        for index, arm in enumerate(arms):
            if not isinstance(arm, Reward):
                raise InvalidValueError(f"`arms[{index}]` must be a reward family but got {show(arm)}.")
        object.__setattr__(self, "arms", arms)
        if self.names is not None:
            names = tuple(checks.items("names", self.names, f"{len(arms)} distinct names"))
            if not all(isinstance(name, str) for name in names) or not len(arms) == len(names) == len(set(names)):
                raise InvalidValueError(f"`names` must be {len(arms)} distinct names but got {show(names)}.")
            object.__setattr__(self, "names", names)
        if self.bound is not None:
            object.__setattr__(self, "bound", checks.positive("bound", self.bound))
            self.require_bound(self.bound)

    @classmethod
    def gaussian(
        cls, means: Iterable[float], sigma: float | Iterable[float] = 1.0, *, bound: float | None = None
    ) -> Bandit:
        """Create normal arms, with one `sigma` for all or one per arm."""
        mean_list = checks.items("means", means, "one number per arm")
        single = isinstance(sigma, numbers.Real | str) or not isinstance(sigma, Iterable)
        sigmas = [sigma] * len(mean_list) if single else checks.items("sigma", sigma, "one number or one per arm")
        if len(sigmas) != len(mean_list):
            raise InvalidValueError(
                f"`sigma` must be one number or one per arm ({len(mean_list)}) but got {len(sigmas)}."
            )
        arms = tuple(Gaussian(mean, deviation) for mean, deviation in zip(mean_list, sigmas, strict=True))
        return cls(arms, bound=bound)

    @classmethod
    def bernoulli(cls, means: Iterable[float], *, bound: float | None = None) -> Bandit:
        """Create arms that yield 1 with the given probabilities, else 0."""
        rates = checks.items("means", means, "one number per arm")
        return cls(tuple(Bernoulli(mean) for mean in rates), bound=bound)

    @classmethod
    def categorical(
        cls, values: Sequence[float], probabilities: Iterable[Sequence[float]], *, bound: float | None = None
    ) -> Bandit:
        """Create arms over the same `values`, with one row of probabilities per arm."""
        listed = tuple(checks.items("values", values, "a sequence of numbers"))
        rows = checks.items("probabilities", probabilities, "one row of probabilities per arm")
        return cls(tuple(Categorical(listed, row) for row in rows), bound=bound)

    @classmethod
    def empirical(cls, data: Iterable[Sequence[float]], *, bound: float | None = None) -> Bandit:
        """Create arms that resample observed rewards, one sequence per arm."""
        rows = checks.items("data", data, "one sequence of rewards per arm")
        return cls(tuple(Empirical(rewards) for rewards in rows), bound=bound)

    @classmethod
    def two_arm(cls, gap: float, sigma: float = 1.0) -> Bandit:
        """Create Gaussian arms with means +-gap/2 (Section 4 of the paper)."""
        half = checks.non_negative("gap", gap) / 2.0
        return cls.gaussian((half, -half), sigma)

    @classmethod
    def two_arm_bernoulli(cls, gap: float) -> Bandit:
        """Create Bernoulli arms with means 1/2 +- gap/2 (Section 4 of the paper)."""
        half = checks.unit("gap", gap) / 2.0
        return cls.bernoulli((0.5 + half, 0.5 - half))

    @classmethod
    def one_sparse(cls, arms: int, gap: float, sigma: float = 1.0) -> Bandit:
        """Create one arm with mean `gap` and the others with mean 0 (appendix on experiments): H = (K-1)/gap^2."""
        count = checks.arms(arms)
        return cls.gaussian([checks.non_negative("gap", gap)] + [0.0] * (count - 1), sigma)

    @classmethod
    def linear_decay(cls, arms: int, gap: float, sigma: float = 1.0) -> Bandit:
        """Create arms whose gaps grow linearly from `gap` to 2*gap (appendix on experiments).

        mean_1 = gap, mean_k = -gap * (k-2)/(K-2) for k = 2..K; requires at least 3 arms.
        """
        count = checks.arms(arms, at_least=3)
        smallest = checks.non_negative("gap", gap)
        others = [-smallest * rank / (count - 2) for rank in range(count - 1)]
        return cls.gaussian([smallest, *others], sigma)

    @classmethod
    def drug_binary(cls) -> Bandit:
        """Create the drug trial's five treatments, with reward 1 for a patient who responds (see `datasets`)."""
        return cls(drug_binary(), names=NAMES)

    @classmethod
    def drug_leveled(cls, reading: str = "exclusive", table: int = 1) -> Bandit:
        """Create the drug trial's five treatments, with a reward by level of response (see `datasets`)."""
        return cls(drug_leveled(reading, table), names=NAMES)

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
            checks.spread_within(checks.positive("bound", bound), self.spread)


def check_bandit(bandit: Any) -> Bandit:
    """Return `bandit` if it is a Bandit."""
    if not isinstance(bandit, Bandit):
        raise InvalidValueError(f"`bandit` must be a Bandit but got {show(bandit)}.")
    return bandit


@dataclass(frozen=True)
class GaussianBlocks(Bandit):
    """Gaussian arms whose rewards are correlated within a block, and may drift together.

    The reward of arm k in block b, after t pulls of the run, is

    mean_k + sigma_k * (sqrt(correlation) * u_b + sqrt(1 - correlation) * e) + drift * sin(2 pi (t / period + phase)),

    where u_b is one standard normal number for all arms of the block, whenever they are pulled, e a new one for each
    pull, and the phase is uniform, one for each run.

    Parameters
    ----------
    arms : tuple of Gaussian
        The distribution of each arm's rewards without drift; `of` builds them.
    names : tuple of str, optional
        Names of the arms.
    bound : float, optional
        The B of the paper: no two means differ by more.
    correlation : float
        Correlation of two arms' rewards in the same block, from 0 to 1.
    drift : float
        Amplitude of the sine wave that all arms share.
    period : float
        Number of pulls in one wave.

    Examples
    --------
    >>> from dbcare import Risk, evaluate
    >>> from dbcare.policies import Uniform
    >>> from dbcare.problem import GaussianBlocks
    >>> bandit = GaussianBlocks.of([0.5, 0.0], correlation=0.9)
    >>> evaluate(Uniform(arms=2, pulls=5), bandit, Risk.simple_regret(1e-3), runs=100).engine
    'direct'
    """

    correlation: float = 0.0
    drift: float = 0.0
    period: float = 300.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for index, arm in enumerate(self.arms):
            if not isinstance(arm, Gaussian):
                raise InvalidValueError(f"`arms[{index}]` must be a Gaussian but got {show(arm)}.")
        checks.set_fields(
            self,
            correlation=checks.unit("correlation", self.correlation),
            drift=checks.non_negative("drift", self.drift),
            period=checks.positive("period", self.period),
        )

    @classmethod
    def of(
        cls,
        means: Iterable[float],
        sigma: float | Iterable[float] = 1.0,
        correlation: float = 0.0,
        drift: float = 0.0,
        period: float = 300.0,
    ) -> GaussianBlocks:
        """Create arms with these means, and one `sigma` for all or one per arm."""
        return cls(Bandit.gaussian(means, sigma).arms, correlation=correlation, drift=drift, period=period)


@dataclass(frozen=True, init=False)
class ScoreTable(Bandit):
    """Recorded scores that are replayed: a finite pool of blocks, each with one score per arm.

    Each run takes the rows in a random order of its own, the same for all arms, and begins again after the last one.
    The mean of an arm is the mean of its column, so regret is about these very blocks.

    Parameters
    ----------
    scores : sequence of sequences of float
        One row per block, with one finite score per arm; an array is kept as a tuple of tuples.
    names : tuple of str, optional
        Names of the arms.
    bound : float, optional
        The B of the paper: no two means differ by more.

    Examples
    --------
    >>> from dbcare.problem import ScoreTable
    >>> table = ScoreTable([[1, 0], [1, 1], [0, 0], [1, 0]])
    >>> table.means, table.blocks
    ((0.75, 0.25), 4)
    """

    arms: tuple[Reward, ...] = field(init=False, repr=False, compare=False)  # the columns
    scores: tuple[tuple[float, ...], ...] = field(kw_only=True)

    def __init__(
        self, scores: Iterable[Sequence[float]], names: tuple[str, ...] | None = None, bound: float | None = None
    ) -> None:
        rows = _check_scores(scores)
        arms = tuple(Empirical(column) for column in zip(*rows, strict=True))
        checks.set_fields(self, scores=rows, arms=arms, names=names, bound=bound)
        super().__post_init__()

    @property
    def blocks(self) -> int:
        """Number of blocks in the pool."""
        return len(self.scores)


BlockBandit = GaussianBlocks | ScoreTable


def _check_scores(scores: Iterable[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Return the rows as tuples of numbers; a score that is not one is an error that names its row and column."""
    checked: list[tuple[float, ...]] = []
    for row, values in enumerate(checks.items("scores", scores, "rows with one score per arm")):
        listed = checks.items(f"scores[{row}]", values, "a row with one score per arm")
        if checked and len(listed) != len(checked[0]):
            raise InvalidValueError(
                f"`scores[{row}]` must have {len(checked[0])} scores, as the rows above, but got {len(listed)}."
            )
        checked.append(tuple(_check_score(f"scores[{row}][{column}]", each) for column, each in enumerate(listed)))
    if not checked:
        raise InvalidValueError(f"`scores` must have at least one row but got {show(scores)}.")
    return tuple(checked)


def _check_score(name: str, value: Any) -> float:
    # Answers are often recorded as right or wrong.
    return float(value) if isinstance(value, bool | np.bool_) else checks.real(name, value)
