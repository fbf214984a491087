"""Reward families: the distributions of the reward of one pull.

Each family knows its mean, its sub-Gaussian sigma, and how to sample. Bounded families report
sigma = (largest - smallest) / 2 by Hoeffding's lemma: 1/2 for Bernoulli. The paper does not state its sigma for them.
Families with finitely many outcomes expose them as `outcomes`, so engines treat them alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError

Array = npt.NDArray[np.float64]


@runtime_checkable
class Reward(Protocol):
    """What a bandit needs to know about an arm."""

    @property
    def mean(self) -> float:
        """The expected reward of a pull."""

    @property
    def sigma(self) -> float:
        """The sub-Gaussian parameter: E exp(t(X - mean)) <= exp(t^2 sigma^2 / 2) for every t."""

    def sample(self, generator: np.random.Generator, size: int) -> Array:
        """Draw `size` independent rewards."""


@dataclass(frozen=True)
class Gaussian:
    """Normal rewards with standard deviation `sigma`.

    Parameters
    ----------
    mean : float
        Expected reward.
    sigma : float
        Standard deviation.

    Examples
    --------
    >>> from dbcare import Gaussian
    >>> Gaussian(mean=0.5, sigma=2.0).sigma
    2.0
    """

    mean: float
    sigma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", checks.real("mean", self.mean))
        object.__setattr__(self, "sigma", checks.positive("sigma", self.sigma))

    def sample(self, generator: np.random.Generator, size: int) -> Array:
        return generator.normal(self.mean, self.sigma, size)


@dataclass(frozen=True)
class Categorical:
    """Finitely many values with their probabilities.

    Parameters
    ----------
    values : tuple of float
        The possible rewards.
    probabilities : tuple of float
        The probability of each; they sum to 1.

    Examples
    --------
    >>> from dbcare import Categorical
    >>> Categorical((0.0, 1.0, 5.0), (0.5, 0.25, 0.25)).mean
    1.5
    """

    values: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        values = _check_numbers("values", self.values)
        probabilities = _check_numbers("probabilities", self.probabilities)
        if len(values) != len(probabilities):
            raise InvalidValueError(
                f"`probabilities` must be as long as `values` ({len(values)}) but got {len(probabilities)}."
            )
        for index, probability in enumerate(probabilities):
            checks.unit(f"probabilities[{index}]", probability)
        total = math.fsum(probabilities)
        if abs(total - 1.0) > 1e-9:
            raise InvalidValueError(f"`probabilities` must sum to 1 but got {total}.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "probabilities", tuple(p / total for p in probabilities))

    @cached_property
    def mean(self) -> float:
        return math.fsum(v * p for v, p in zip(self.values, self.probabilities, strict=True))

    @property
    def sigma(self) -> float:
        return _half_range(self.values)

    @property
    def outcomes(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The values and their probabilities."""
        return self.values, self.probabilities

    def sample(self, generator: np.random.Generator, size: int) -> Array:
        return generator.choice(np.asarray(self.values), size, p=np.asarray(self.probabilities))


@dataclass(frozen=True)
class Bernoulli:
    """Reward 1 with probability `mean`, else 0.

    Parameters
    ----------
    mean : float
        Probability of a reward of 1.

    Examples
    --------
    >>> from dbcare import Bernoulli
    >>> Bernoulli(0.3).sigma
    0.5
    """

    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", checks.unit("mean", self.mean))

    @property
    def sigma(self) -> float:
        return 0.5

    @property
    def outcomes(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The values and their probabilities."""
        return (0.0, 1.0), (1.0 - self.mean, self.mean)

    def sample(self, generator: np.random.Generator, size: int) -> Array:
        return (generator.random(size) < self.mean).astype(np.float64)


@dataclass(frozen=True)
class Empirical:
    """Rewards drawn with replacement from observed `data`.

    Parameters
    ----------
    data : tuple of float
        Observed rewards.

    Examples
    --------
    >>> from dbcare import Empirical
    >>> Empirical((0.0, 1.0, 2.0)).mean
    1.0
    """

    data: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", _check_numbers("data", self.data))

    @cached_property
    def mean(self) -> float:
        return math.fsum(self.data) / len(self.data)

    @property
    def sigma(self) -> float:
        return _half_range(self.data)

    @cached_property
    def outcomes(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The distinct values and the share of the data that each makes up."""
        values, counts = np.unique(np.asarray(self.data), return_counts=True)
        return tuple(values.tolist()), tuple((counts / len(self.data)).tolist())

    def sample(self, generator: np.random.Generator, size: int) -> Array:
        return generator.choice(np.asarray(self.data), size)


def _check_numbers(name: str, values: Any) -> tuple[float, ...]:
    listed = checks.items(name, values, "a sequence of numbers")
    numbers = tuple(checks.real(f"{name}[{index}]", value) for index, value in enumerate(listed))
    if not numbers:
        raise InvalidValueError(f"`{name}` must not be empty but got {show(values)}.")
    return numbers


def _half_range(values: tuple[float, ...]) -> float:
    return (max(values) - min(values)) / 2.0
