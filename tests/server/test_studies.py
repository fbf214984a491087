"""What the service keeps of the studies that are open."""

import gc
import time
import weakref
from pathlib import Path

import pytest

import dbcare
from dbcare.server.studies import OpenStudies
from dbcare.studies.stores.open import open_store


def test_a_study_that_nobody_uses_for_ten_minutes_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is freed when another study is looked up; reopening it finds all of its rewards."""
    address, minutes, clock = f"sqlite:///{tmp_path / 'studies.db'}", [0], time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + 60.0 * minutes[0])
    for name in ("idle", "busy"):
        study = dbcare.create_study(name, arms=["A", "B"], cost=0.01, sigma=1.0, storage=address)
        study.add([("A", 1.0), ("B", 0.5)])
    studies = OpenStudies(open_store(address))
    idle, busy = (weakref.ref(studies.get(name)) for name in ("idle", "busy"))
    for minutes[0], is_open in ((9, True), (11, False)):
        studies.get("busy")
        gc.collect()
        assert (idle() is not None) == is_open
    assert studies.get("busy") is busy()
    assert studies.get("idle").status().rewards == 2
    open_store(address).close()
