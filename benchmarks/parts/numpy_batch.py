"""The baseline: elimination as a careful NumPy user would write it, advancing all runs of a batch together.

The boundary, last epochs and cap come from the policy's tables; the loop is independent of the library. Finished runs
are removed from the arrays; a dropped arm's sum is set to minus infinity and stays there.
"""

from collections.abc import Callable

import numpy as np

from dbcare.policies.elimination.elimination import EliminationTables
from dbcare.problem.bandits import Bandit
from dbcare.problem.rewards import Gaussian

Draw = Callable[[np.ndarray], np.ndarray]  # draws rewards of all arms for the runs with the given numbers


def eliminate(tables: EliminationTables, arms: int, runs: int, draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    """Simulate `runs` runs; return the recommended arm and the pulls of each."""
    recommended = np.zeros(runs, np.int64)
    pulls = np.zeros(runs, np.int64)
    active = np.arange(runs)
    sums = np.zeros((runs, arms))
    made = np.zeros(runs, np.int64)
    survivors = np.full(runs, arms)
    epoch = 0
    while active.size:
        epoch += 1
        sums += draw(active)
        made += survivors
        threshold = sums.max(axis=1) - tables.boundary[tables.row[survivors] + epoch]
        dropped = sums < threshold[:, None]
        if dropped.any():
            sums[dropped] = -np.inf
            survivors = (sums > -np.inf).sum(axis=1)
        done = (survivors == 1) | (epoch >= tables.last_epoch[survivors]) | (made + survivors > tables.max_pulls)
        if done.any():
            recommended[active[done]] = sums[done].argmax(axis=1)
            pulls[active[done]] = made[done]
            keep = ~done
            active, sums, made, survivors = active[keep], sums[keep], made[keep], survivors[keep]
    return recommended, pulls


def make_draw(bandits: list[Bandit], runs: int, seed: int) -> Draw:
    """Return a function that draws rewards for a batch of `runs` runs on each of the bandits, one after another."""
    generator = np.random.Generator(np.random.SFC64(seed))
    arms = len(bandits[0].arms)
    if isinstance(bandits[0].arms[0], Gaussian):
        sigma = bandits[0].sigma
        means = np.repeat([bandit.means for bandit in bandits], runs, axis=0)

        def draw_gaussian(active: np.ndarray) -> np.ndarray:
            drawn = generator.standard_normal((active.size, arms))
            drawn *= sigma
            drawn += means[active]
            return drawn

        return draw_gaussian
    # A reward starts at its smallest value and climbs one step for each threshold that a uniform number exceeds.
    outcomes = [[arm.outcomes for arm in bandit.arms] for bandit in bandits]
    values = np.repeat([[value for value, _ in row] for row in outcomes], runs, axis=0)
    thresholds = np.cumsum(np.repeat([[chance for _, chance in row] for row in outcomes], runs, axis=0), axis=2)

    def draw_finite(active: np.ndarray) -> np.ndarray:
        uniform = generator.random((active.size, arms))
        drawn = values[active, :, 0].copy()
        for level in range(1, values.shape[2]):
            drawn += (uniform > thresholds[active, :, level - 1]) * (
                values[active, :, level] - values[active, :, level - 1]
            )
        return drawn

    return draw_finite
