"""Bandits by name, and random ones, for experiments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.errors import InvalidValueError
from dbcare.policies.build import refuse_unknown, require_all
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


BANDITS: dict[str, Callable[..., Bandit]] = {
    "gaussian": Bandit.gaussian,
    "bernoulli": Bandit.bernoulli,
    "two-arm": Bandit.two_arm,
    "two-arm-bernoulli": Bandit.two_arm_bernoulli,
    "one-sparse": Bandit.one_sparse,
    "linear-decay": Bandit.linear_decay,
    "random-gaps": make_random_gaussian,
    "random-gaps-bernoulli": make_random_bernoulli,
    "drug-binary": Bandit.drug_binary,
    "drug-leveled": Bandit.drug_leveled,
}


def build_bandit(name: str, options: dict[str, Any]) -> Bandit:
    """Build the bandit called `name`; an unknown name or option is an error that lists the valid ones.

    Underscores serve for hyphens, as in the names of the paper's experiments.
    """
    if isinstance(name, str) and (hyphenated := name.replace("_", "-")) in BANDITS:
        name = hyphenated
    make = BANDITS[checks.one_of("bandit", name, BANDITS)]
    parameters = inspect.signature(make).parameters
    refuse_unknown(f"Options of {name}", options, [option for option in parameters if option != "bound"])
    require_all(name, parameters, options)
    return make(**options)
