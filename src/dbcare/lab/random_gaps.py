"""Random bandits: gaps of one of several shapes, as multiples of the smallest gap."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.errors import InvalidValueError
from dbcare.problem.bandits import Bandit

SHAPES = ("one best", "linear", "two close", "random", "geometric")
LOWEST_RATE, HIGHEST_RATE = 0.01, 0.99  # of Bernoulli arms


def draw_gaps(shape: str, arms: int, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the gaps of all arms except the best, as multiples of the smallest.

    "one best": all 1. "linear": from 1 to 2 in equal steps. "two close": 1, then all 4. "random": 1, then uniform in 1
    to 5, ascending. "geometric": from 1 to 6 in equal ratios. Only "random" uses the generator.
    """
    others = arms - 1
    if shape == "one best":
        return np.ones(others)
    if shape == "linear":
        return np.linspace(1.0, 2.0, others) if others > 1 else np.ones(1)
    if shape == "two close":
        return np.array([1.0] + [4.0] * (others - 1))
    if shape == "random":
        return np.sort(np.concatenate([[1.0], generator.uniform(1.0, 5.0, others - 1)]))
    return np.geomspace(1.0, 6.0, others) if others > 1 else np.ones(1)


def make_random_gaussian(arms: int, gap: float, shape: str = "random", seed: int = 0, sigma: float = 1.0) -> Bandit:
    """Create Gaussian arms with this smallest gap; the same seed gives the same multiples of it for every gap."""
    gaps, _ = _draw(arms, gap, shape, seed)
    return Bandit.gaussian((-gaps).tolist(), sigma)


def make_random_bernoulli(arms: int, gap: float, shape: str = "random", seed: int = 0) -> Bandit:
    """Create Bernoulli arms with this smallest gap; the best rate is uniform over those for which all gaps fit."""
    gaps, generator = _draw(arms, gap, shape, seed)
    lowest = gaps.max() + LOWEST_RATE
    if lowest > HIGHEST_RATE:
        largest = (HIGHEST_RATE - LOWEST_RATE) * gap / gaps.max()
        raise InvalidValueError(
            f"`gap` must be at most {largest:.3g} for rates of {LOWEST_RATE:g} to {HIGHEST_RATE:g}, as the worst of "
            f"these arms is {gaps.max() / gap:.3g} gaps below the best, but got {gap:g}."
        )
    best = lowest + (HIGHEST_RATE - lowest) * generator.uniform()
    return Bandit.bernoulli((best - gaps).tolist())


def _draw(arms: int, gap: float, shape: str, seed: int) -> tuple[npt.NDArray[np.float64], np.random.Generator]:
    """Return the gaps of all arms, the best first, and the generator that drew them."""
    count, smallest = checks.arms(arms), checks.positive("gap", gap)
    generator = np.random.default_rng(checks.whole("seed", seed, at_least=0))
    multiples = draw_gaps(checks.one_of("shape", shape, SHAPES), count, generator)
    return smallest * np.concatenate([[0.0], multiples]), generator
