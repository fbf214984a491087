"""Studies in memory for tests."""

from typing import Any

from dbcare import Study
from dbcare.live.settings import Settings
from dbcare.live.stores.memory import MemoryStore
from dbcare.testing.studies.checks import NAMES


def study_of(**given_settings: Any) -> Study:
    """A study in a store of its own."""
    settings: dict[str, Any] = {"arms": NAMES, "cost": 1e-3, "sigma": 1.0} | given_settings
    store = MemoryStore()
    store.create("s", Settings(**settings).to_dict(), 0.0)
    return Study(store, "s")
