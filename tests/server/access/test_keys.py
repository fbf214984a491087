"""Keys that expire: refused from that moment on, with the sessions they opened, in memory and in a database."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from dbcare.base.times import Lease
from dbcare.errors import InvalidValueError
from dbcare.server.access.keys import Keys, Sessions
from dbcare.server.access.records import AccessRecords, MemoryRecords, SqlRecords
from dbcare.studies.stores.sql.store import SqlStore

DAY = 86_400.0


@pytest.fixture(params=["memory", "sqlite"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AccessRecords]:
    if request.param == "memory":
        yield MemoryRecords()
        return
    store = SqlStore(f"sqlite:///{tmp_path / 'keys.db'}")
    yield SqlRecords(store)
    store.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of day, which a test can change."""
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("expires", "seconds"), [("90d", 90 * DAY), ("12h", DAY / 2), (30, 30.0), (timedelta(days=1), DAY)]
)
def test_a_key_is_valid_until_it_expires(
    records: AccessRecords, clock: list[float], expires: Lease, seconds: float
) -> None:
    keys, sessions = Keys(records), Sessions(records)
    key, text = keys.create("shop", "worker", expires)
    assert key.expires is not None
    assert datetime.fromisoformat(key.expires).timestamp() == clock[0] + seconds
    clock[0] += seconds - 1.0
    cookie = sessions.open(key)
    assert keys.find(text) == key
    assert key.seconds_left() == 1.0
    assert sessions.find(cookie) is not None
    clock[0] += 1.0
    assert keys.find(text) is None
    assert sessions.find(cookie) is None
    assert keys.list_all() == [key]
    assert keys.any(), "access without a key never comes back"


def test_by_default_a_key_never_expires(records: AccessRecords, clock: list[float]) -> None:
    keys = Keys(records)
    key, text = keys.create("shop", "worker")
    clock[0] += 100_000 * DAY
    assert key.expires is None
    assert keys.find(text) == key
    assert key.seconds_left() == float("inf")


def test_an_expired_key_can_be_revoked(records: AccessRecords, clock: list[float]) -> None:
    keys = Keys(records)
    key, _ = keys.create("shop", "worker", "1s")
    clock[0] += 2.0
    keys.revoke(key.id)
    assert [listed.revoked is None for listed in keys.list_all()] == [False]


@pytest.mark.parametrize("expires", ["90", "soon", "", "-1d", 0, -5.0, float("nan"), "4000d", True])
def test_an_expiry_must_be_a_duration(records: AccessRecords, expires: Lease) -> None:
    with pytest.raises(InvalidValueError, match=r"^`expires` must be"):
        Keys(records).create("shop", "worker", expires)
    assert records.list_keys() == []
