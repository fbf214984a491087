"""The yardstick: racing as a careful NumPy user would write it, all runs of a batch advanced together.

Written apart from the library, from the formulas of the paper. Finished runs are taken out of the arrays; a dropped
arm's sum is set to minus infinity, where it stays.
"""

import numpy as np


def race(
    means: np.ndarray, sigma: float, delta: float, max_pulls: int, runs: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Recommended arm and pulls of each run."""
    generator = np.random.Generator(np.random.SFC64(seed))
    arms = len(means)
    recommended = np.zeros(runs, np.int64)
    pulls = np.zeros(runs, np.int64)
    active = np.arange(runs)
    sums = np.zeros((runs, arms))
    made = np.zeros(runs, np.int64)
    survivors = np.full(runs, arms)
    epoch = 0
    while active.size:
        epoch += 1
        drawn = generator.standard_normal(sums.shape)
        drawn *= sigma
        drawn += means
        sums += drawn
        made += survivors
        boundary = np.sqrt(4.0 * sigma**2 * epoch * np.log(arms * epoch / delta))
        threshold = sums.max(axis=1) - boundary
        behind = sums < threshold[:, None]
        if behind.any():
            sums[behind] = -np.inf
            survivors = (sums > -np.inf).sum(axis=1)
        done = (survivors == 1) | (made + survivors > max_pulls)
        if done.any():
            recommended[active[done]] = sums[done].argmax(axis=1)
            pulls[active[done]] = made[done]
            keep = ~done
            active, sums, made, survivors = active[keep], sums[keep], made[keep], survivors[keep]
    return recommended, pulls
