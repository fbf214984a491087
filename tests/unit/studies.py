"""Studies in memory for tests, and rewards for them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dbcare import Study
from dbcare.live.memory import MemoryStore
from dbcare.live.settings import Settings

NAMES = ("A", "B", "C")


def study_of(**given_settings: Any) -> Study:
    """A study in a store of its own."""
    settings: dict[str, Any] = {"arms": NAMES, "cost": 1e-3, "sigma": 1.0} | given_settings
    store = MemoryStore()
    store.create("s", Settings(**settings).to_dict(), 0.0)
    return Study(store, "s")


def rewards(seed: int, apart: float = 0.4) -> Callable[[str], float]:
    generator = np.random.default_rng(seed)
    return lambda arm: float(generator.normal(apart * NAMES.index(arm), 1.0))
