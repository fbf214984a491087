"""Studies in memory for tests."""

from typing import Any

from dbcare.studies.settings import Settings
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.memory import MemoryStore
from tests.suites.studies.checks import NAMES


def create_memory_study(**settings: Any) -> StoredStudy:
    """Create a study of three arms, unless the settings say otherwise, in a store of its own."""
    defaults: dict[str, Any] = {"arms": NAMES, "cost": 1e-3, "sigma": 1.0}
    store = MemoryStore()
    store.create("s", Settings(**defaults | settings).to_dict(), 0.0)
    return StoredStudy(store, "s")
