"""Instances on which to compare policies: the paper's settings, and random ones."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dbcare import Bandit, Loss, Risk
from dbcare.lab import paper
from dbcare.lab.experiments import definition
from dbcare.lab.experiments.bandits import SHAPES, draw_gaps
from dbcare.theory import budgets

STRIDE = 4  # through the paper's 40 points per axis


@dataclass(frozen=True)
class Cell:
    """A bandit, the risk to minimize, and the B given to policies."""

    name: str
    bandit: Bandit
    risk: Risk
    bound: float

    @property
    def epochs(self) -> float:
        """N*(K): the number of pulls of each arm that the paper's budget allows."""
        arms = len(self.bandit.arms)
        return float(budgets.epoch_budget(self.risk.loss, arms, self.risk.single_cost, self.bandit.sigma))


def paper_cells() -> Iterator[Cell]:
    """Yield every fourth point of every panel of the paper's figures."""
    for name in paper.NAMES:
        experiment = definition.load(paper.find_definition(name))
        for loss in experiment.losses:
            for setting in experiment.settings:
                points = list(zip(setting.bandits, setting.costs, setting.x, strict=True))
                for bandit, cost, x in points[STRIDE // 2 :: STRIDE]:
                    title = f"{name}, {setting.title}, {experiment.axis} {x:.3g}"
                    yield Cell(title, bandit, Risk(loss, cost), setting.bound)


def random_cells(count: int, seed: int) -> Iterator[Cell]:
    """Yield random instances: K log-uniform in 2..100, c in 1e-5..1e-2, smallest gap in 0.05..2 standard deviations.

    Gaussian (sigma = 1) and Bernoulli arms alternate; gaps have five shapes; both losses occur. Bernoulli gaps are
    shrunk if they would not fit into (0, 1), and the best rate is uniform over the remaining range.
    """
    generator = np.random.default_rng(seed)
    for number in range(count):
        arms = min(100, int(2.0 * math.exp(generator.uniform(0.0, math.log(101.0 / 2.0)))))
        cost = 10.0 ** generator.uniform(-5.0, -2.0)
        gap = 0.05 * 40.0 ** generator.uniform()
        shape = SHAPES[generator.integers(len(SHAPES))]
        gaps = np.concatenate([[0.0], draw_gaps(shape, arms, generator)])
        loss = list(Loss)[number // 2 % 2]
        if number % 2 == 0:
            bandit = Bandit.gaussian((-gap * gaps).tolist())
        else:
            gaps *= min(0.5 * gap, 0.95 / gaps.max())
            best = generator.uniform(gaps.max() + 0.01, 0.99)
            bandit = Bandit.bernoulli((best - gaps).tolist())
        kind = "Gaussian" if number % 2 == 0 else "Bernoulli"
        name = f"{number}: {kind}, {shape}, K = {arms}, c = {cost:.2g}, gap {bandit.smallest_gap:.3g}"
        yield Cell(name, bandit, Risk(loss, cost), max(bandit.spread, 1.0 if number % 2 else 0.0))
