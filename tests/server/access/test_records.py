"""Keys and sessions, in memory and in a database: the same checks for both kinds of records."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbcare.errors import InvalidValueError
from dbcare.server.access.keys import SESSION_SECONDS, Key, Keys, Sessions, make_digest
from dbcare.server.access.records import (
    AccessRecords,
    KeyRecord,
    MemoryRecords,
    SessionRecord,
    SqlRecords,
    open_records,
)
from dbcare.server.access.roles import Role
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.stores.sql.store import SqlStore


@pytest.fixture(params=["memory", "sqlite"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AccessRecords]:
    if request.param == "memory":
        yield MemoryRecords()
        return
    store = SqlStore(f"sqlite:///{tmp_path / 'keys.db'}")
    yield SqlRecords(store)
    store.close()


def test_a_key_is_found_by_its_text(records: AccessRecords) -> None:
    keys = Keys(records)
    key, text = keys.create("shop", "worker")
    assert (key.name, key.role, key.revoked) == ("shop", Role.WORKER, None)
    assert keys.find(text) == key
    wrong_secret = text[:-1] + ("0" if text[-1] != "0" else "1")
    unknown = text.replace(key.id, "0" * 12)
    for wrong in (wrong_secret, unknown, "", "dbc", f" {text}", f"{text}\n", text.upper()):
        assert keys.find(wrong) is None


def test_records_have_no_secrets(records: AccessRecords) -> None:
    key, text = Keys(records).create("shop", "worker")
    cookie = Sessions(records).open(key)
    record = records.find_key(key.id)
    assert record is not None
    assert text.split("_")[2] not in str(record)
    assert records.find_session(cookie) is None


def test_keys_are_listed_oldest_first_with_revoked_ones(records: AccessRecords) -> None:
    for identity, created, revoked in (("b", 2.0, None), ("c", 2.0, 9.0), ("a", 3.0, None), ("d", 1.0, None)):
        records.add_key(KeyRecord(identity, f"key {identity}", "viewer", "salt", "hash", created, revoked))
    assert [record.id for record in records.list_keys()] == ["d", "b", "c", "a"]
    keys = Keys(records).list_all()
    assert keys[0] == Key("d", "key d", Role.VIEWER, "1970-01-01T00:00:01+00:00")
    assert keys[2].revoked == "1970-01-01T00:00:09+00:00"


def test_a_key_was_ever_created(records: AccessRecords) -> None:
    """A revoked key counts too: access without a key never comes back."""
    keys = Keys(records)
    assert not keys.any()
    key, _ = keys.create("shop", "worker")
    keys.revoke(key.id)
    assert keys.any()
    assert Keys(records).any()


def test_a_key_is_revoked_once_and_for_good(records: AccessRecords) -> None:
    keys = Keys(records)
    key, text = keys.create("shop", "worker")
    other, other_text = keys.create("other", "viewer")
    keys.revoke(key.id)
    assert keys.find(text) is None
    assert keys.find(other_text) == other
    first = records.find_key(key.id)
    for identity in (key.id, "unknown"):
        with pytest.raises(InvalidValueError, match=f"`key` must be the id of an active key but got '{identity}'"):
            keys.revoke(identity)
    assert records.find_key(key.id) == first


@pytest.mark.parametrize(("name", "role"), [("", "viewer"), ("a\nb", "viewer"), ("x" * 201, "viewer"), ("me", "owner")])
def test_invalid_keys_are_not_created(records: AccessRecords, name: str, role: str) -> None:
    with pytest.raises(InvalidValueError, match=r"`name` must be a string|`role` must be one of viewer, worker, admin"):
        Keys(records).create(name, role)
    assert records.list_keys() == []


def test_a_session_is_found_by_its_cookie(records: AccessRecords) -> None:
    sessions = Sessions(records)
    key, _ = Keys(records).create("me", "admin")
    cookies = [sessions.open(key) for _ in range(2)]
    first, second = map(sessions.find, cookies)
    assert first is not None
    assert second is not None
    assert first.key == key
    assert first.issued(first.csrf)
    assert not first.issued(second.csrf)
    assert not first.issued(None)
    assert sessions.find("planted") is None
    assert sessions.find("") is None


def test_a_closed_session_has_ended(records: AccessRecords) -> None:
    sessions = Sessions(records)
    key, _ = Keys(records).create("me", "admin")
    cookies = [sessions.open(key) for _ in range(2)]
    sessions.close(cookies[0])
    sessions.close(cookies[0])
    sessions.close("unknown")
    assert sessions.find(cookies[0]) is None
    assert sessions.find(cookies[1]) is not None


def test_an_expired_session_has_ended(records: AccessRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lasts as long as it should, and the next one that is opened removes it."""
    sessions = Sessions(records)
    key, _ = Keys(records).create("me", "admin")
    now = time.time()
    cookie = sessions.open(key)
    session_hash = make_digest("", cookie)
    for seconds, is_found in ((SESSION_SECONDS - 60.0, True), (SESSION_SECONDS + 60.0, False)):
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda seconds=seconds: now + seconds)
            assert (sessions.find(cookie) is not None) is is_found
    assert records.find_session(session_hash) is not None
    later = now + SESSION_SECONDS + 60.0
    records.add_session(SessionRecord("another", key.id, "token", later + 1.0), later)
    assert records.find_session(session_hash) is None
    assert records.find_session("another") == SessionRecord("another", key.id, "token", later + 1.0)


def test_sessions_end_with_their_key(records: AccessRecords) -> None:
    keys, sessions = Keys(records), Sessions(records)
    (key, _), (other, _) = keys.create("me", "admin"), keys.create("other", "viewer")
    mine, theirs = sessions.open(key), sessions.open(other)
    keys.revoke(key.id)
    assert sessions.find(mine) is None
    assert sessions.find(theirs) is not None


def test_only_one_of_many_threads_revokes_a_key(records: AccessRecords) -> None:
    key, _ = Keys(records).create("me", "admin")
    results: list[bool] = []
    threads = [
        threading.Thread(target=lambda: results.append(records.revoke_key(key.id, time.time()))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False] * 7 + [True]


def test_keys_in_a_database_outlive_the_process(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'keys.db'}"
    first, second = SqlStore(address), SqlStore(address)
    key, text = Keys(open_records(first)).create("me", "admin")
    cookie = Sessions(open_records(first)).open(key)
    assert Keys(open_records(second)).find(text) == key
    assert Sessions(open_records(second)).find(cookie) is not None
    first.close()
    second.close()


def test_other_stores_have_records_in_memory() -> None:
    assert isinstance(open_records(MemoryStore()), MemoryRecords)
