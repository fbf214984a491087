"""Seeds derived from the user's: independent streams for the bandits of a pool."""

import numpy as np


def derive_seed(seed: int, *place: int) -> int:
    """Return the seed for a place, such as a bandit's; different places have independent streams."""
    return int(np.random.SeedSequence(seed, spawn_key=place).generate_state(1, np.uint64)[0] >> np.uint64(2))
